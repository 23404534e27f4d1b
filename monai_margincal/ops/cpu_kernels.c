/* The margin-calibrated log-loss and the sums of an overlap loss for float32 logits and class indices, on a CPU.
 *
 * The mathematics is that of block.py and overlap_block.py, where it is derived. A tile of voxels is copied channel by channel into a
 * few rows that stay in the cache; every loop along a row is one that the compiler turns into vector instructions. Nothing is called
 * from outside, so that the file needs a compiler and no header but the language's own. Compile without -ffast-math: NaN has to stay
 * NaN.
 *
 * A chunk is a fixed number of tiles of one case. It writes partial results of its own, which the caller adds up in order, so results
 * do not depend on the number of threads.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* joins the loops along rows of two classes, and then makes no vector instructions of them */
#pragma GCC optimize("no-loop-unroll-and-jam")
#endif
#include <stdint.h>

#define MOST_VOXELS 512 /* of a tile; a multiple of LANES */
#define LANES 16
#define LARGEST 1.2676506002282294e30f /* 2^100 */

typedef struct {
    const float *logits;
    const void *target;
    float *gradient;
    float *loss_map;
    const float *voxel_scale;
    const float *slopes; /* (cases, 2, classes): of the hits, of the predicted sums */
    const uint8_t *annotated; /* (cases, classes) */
    const float *margin_negative, *margin_positive, *weight_negative, *weight_positive; /* (classes,) each */
    float *rows; /* (threads, 3, classes, tile) */
    double *losses; /* (cases, chunks) */
    int64_t *counts; /* (cases, chunks): voxels that count */
    int64_t *wrong; /* (cases, chunks): voxels with a label that is not allowed */
    double *sums; /* (cases, chunks, 3, classes) */
    int64_t voxels, channels, classes, chunks, tiles_per_chunk, tile;
    int64_t logits_case, logits_channel, target_case, gradient_case, gradient_channel;
    int64_t ignore;
    int32_t has_ignore, label_kind, margin, want_gradient, want_sums, want_slopes, holds_margin, squared;
    float unit, scale;
} Problem;

typedef union {
    float number;
    int32_t bits;
} Word;

/* e^x for x <= 0; below -87 what e^-87 is, NaN for NaN */
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    Word shifted, power;
    shifted.number = x * 1.44269504f + 12582912.0f; /* rounds to a whole number in the low bits */
    float whole = shifted.number - 12582912.0f;
    float rest = x - whole * 0.693359375f;
    rest = rest + whole * 2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    power.bits = (shifted.bits - 0x4b400000 + 127) << 23;
    return sum * power.number;
}

/* log(1 + t) for 0 <= t <= 1, as 2 artanh(t / (2 + t)): small t are not rounded away */
static inline float log_one_plus(float t) {
    float u = t / (2.0f + t);
    float square = u * u;
    float sum = 1.0f / 15;
    sum = sum * square + 1.0f / 13;
    sum = sum * square + 1.0f / 11;
    sum = sum * square + 1.0f / 9;
    sum = sum * square + 1.0f / 7;
    sum = sum * square + 1.0f / 5;
    sum = sum * square + 1.0f / 3;
    return 2.0f * u * (sum * square + 1.0f);
}

/* Labels as they are stored: a class, WRONG, or IGNORED. All in one type, so that the compiler makes vector instructions of it. */
enum { WRONG = -1, IGNORED = -2 };
#define READ(TYPE, WIDE, WHOLE)                                                                                        \
    {                                                                                                                  \
        const TYPE *restrict from = (const TYPE *)problem->target + at;                                                \
        const WIDE ignore = has_ignore ? (WIDE)problem->ignore : IGNORED, most = (WIDE)(problem->classes - 1);         \
        const WIDE ignored = has_ignore ? IGNORED : WRONG;                                                             \
        for (int64_t i = 0; i < inside; i++) {                                                                         \
            WIDE value = (WIDE)from[i], found = value < 0 ? (WIDE)WRONG : value;                                       \
            found = value > most ? (WIDE)WRONG : found;                                                                \
            found = WHOLE ? found : (WIDE)WRONG;                                                                       \
            label[i] = (int32_t)(value == ignore ? ignored : found);                                                   \
        }                                                                                                              \
    }

/* Classes of voxels and whether they count (0 and no beyond the end of the tile); returns how many labels are wrong. */
static int64_t read_labels(const Problem *problem, int64_t at, int64_t inside, int32_t *restrict label, int32_t *restrict valid) {
    const int32_t has_ignore = problem->has_ignore;
    int32_t wrong = 0;
    switch (problem->label_kind) {
    case 0: READ(uint8_t, int32_t, 1) break;
    case 1: READ(int8_t, int32_t, 1) break;
    case 2: READ(int16_t, int32_t, 1) break;
    case 3: READ(int32_t, int32_t, 1) break;
    case 4: READ(int64_t, int64_t, 1) break;
    case 5: READ(float, float, (float)(int32_t)value == value) break;
    default: READ(double, double, (double)(int32_t)value == value)
    }
    for (int64_t i = inside; i < (inside + LANES - 1) / LANES * LANES; i++) label[i] = IGNORED;
    for (int64_t i = 0; i < (inside + LANES - 1) / LANES * LANES; i++) {
        valid[i] = label[i] >= 0;
        wrong += label[i] == WRONG;
        label[i] = label[i] < 0 ? 0 : label[i];
    }
    return wrong;
}

/* Largest and second largest score of every voxel and their classes; the first of equal ones wins. */
static void two_largest(int64_t n, const float *restrict scores, const int32_t *active, int64_t number, int64_t tile, float *restrict largest,
                        float *restrict second, int32_t *restrict first_class, int32_t *restrict second_class) {
    const float *row = scores + active[0] * tile;
    for (int64_t i = 0; i < n; i++) {
        largest[i] = row[i];
        second[i] = -__builtin_inff();
        first_class[i] = active[0];
        second_class[i] = active[1];
    }
    for (int64_t a = 1; a < number; a++) {
        int32_t c = active[a], always = a == 1;
        row = scores + c * tile;
        for (int64_t i = 0; i < n; i++) {
            float score = row[i];
            int above = score > largest[i];
            /* the second class comes second whatever it holds: NaN never compares as greater */
            int between = (score > second[i]) | always;
            second_class[i] = above ? first_class[i] : between ? c : second_class[i];
            second[i] = above ? largest[i] : between ? score : second[i];
            first_class[i] = above ? c : first_class[i];
            largest[i] = above ? score : largest[i];
        }
    }
}

static void only_largest(int64_t n, const float *restrict scores, const int32_t *active, int64_t number, int64_t tile,
                         float *restrict largest) {
    for (int64_t i = 0; i < n; i++) largest[i] = scores[active[0] * tile + i];
    for (int64_t a = 1; a < number; a++) {
        const float *row = scores + active[a] * tile;
        for (int64_t i = 0; i < n; i++) largest[i] = row[i] > largest[i] ? row[i] : largest[i];
    }
}

/* Loss of every voxel; slopes of every class, the gradient with respect to the logits after `through_the_maximum`. */
static void margin_terms(const Problem *problem, int64_t n, const float *restrict scores, float *restrict slopes, const int32_t *active, int64_t number,
                         const float *largest, const float *second, const int32_t *first_class, const int32_t *second_class,
                         const int32_t *label, float *restrict loss) {
    float rest[MOST_VOXELS], of_first[MOST_VOXELS];
    float unit = problem->unit;
    for (int64_t i = 0; i < n; i++) loss[i] = rest[i] = of_first[i] = 0;
    for (int64_t a = 0; a < number; a++) {
        int32_t c = active[a];
        const float *row = scores + c * problem->tile;
        float *out = slopes + c * problem->tile;
        float rho_negative = problem->margin_negative[c], rho_positive = problem->margin_positive[c];
        float weight_negative = problem->weight_negative[c], weight_positive = problem->weight_positive[c];
        for (int64_t i = 0; i < n; i++) {
            int is_first = first_class[i] == c, is_true = label[i] == c;
            float margin = row[i] - (is_first ? second[i] : largest[i]);
            float excess = unit * (is_true ? rho_positive - margin : margin + rho_negative);
            float weight = is_true ? weight_positive : weight_negative;
            float distance = excess < 0 ? -excess : excess;
            float tail = exponential(-distance);
            float term = (excess > 0 ? excess : 0.0f) + log_one_plus(tail);
            term = excess == excess ? term : excess;
            loss[i] += weight * term;
            float sigma = (excess >= 0 ? 1.0f : tail) / (1.0f + tail);
            float slope = weight * (is_true ? -sigma : sigma);
            rest[i] += is_first ? 0.0f : slope;
            of_first[i] = is_first ? slope : of_first[i];
            out[i] = slope;
        }
    }
    if (!problem->want_gradient) return;
    for (int64_t a = 0; a < number; a++) {
        int32_t c = active[a];
        float *out = slopes + c * problem->tile;
        for (int64_t i = 0; i < n; i++)
            out[i] -= (first_class[i] == c ? rest[i] : 0.0f) + (second_class[i] == c ? of_first[i] : 0.0f);
    }
}

/* e to the score less the largest one, and one over their sum, 0 in voxels that do not count. */
static void exponents(int64_t n, const float *restrict scores, float *restrict shares, const int32_t *active, int64_t number,
                      int64_t tile, const float *restrict largest, const int32_t *restrict valid, float *restrict share) {
    for (int64_t i = 0; i < n; i++) share[i] = 0;
    for (int64_t a = 0; a < number; a++) {
        const float *row = scores + active[a] * tile;
        float *out = shares + active[a] * tile;
        for (int64_t i = 0; i < n; i++) {
            float exponent = exponential(row[i] - largest[i]);
            out[i] = exponent;
            share[i] += exponent;
        }
    }
    for (int64_t i = 0; i < n; i++) share[i] = valid[i] ? 1.0f / share[i] : 0.0f;
}

static void add_sums(const Problem *problem, int64_t n, const float *restrict shares, const float *restrict share,
                     const int32_t *active, int64_t number, const int32_t *label, const int32_t *valid, double *restrict sums) {
    float square = problem->squared ? 1.0f : 0.0f, plain = problem->squared ? 0.0f : 1.0f;
    for (int64_t a = 0; a < number; a++) {
        int32_t c = active[a];
        const float *row = shares + c * problem->tile;
        float hits = 0, predicted = 0;
        int32_t labelled = 0;
#pragma omp simd reduction(+ : hits, predicted, labelled)
        for (int64_t i = 0; i < n; i++) {
            float probability = row[i] * share[i];
            int32_t is_true = (label[i] == c) & valid[i];
            hits += is_true ? probability : 0.0f;
            predicted += probability * (plain + square * probability);
            labelled += is_true;
        }
        sums[c] += hits;
        sums[problem->classes + c] += predicted;
        sums[2 * problem->classes + c] += labelled;
    }
}

/* Derivative with respect to each probability, weighted by the probabilities: what all classes have in common. */
static void common_slope(const Problem *problem, int64_t n, const float *restrict shares, const float *restrict share,
                         const int32_t *active, int64_t number, const int32_t *label, const float *of_hits,
                         const float *of_predicted, float *restrict inner) {
    float square = problem->squared ? 2.0f : 0.0f, plain = problem->squared ? 0.0f : 1.0f;
    for (int64_t i = 0; i < n; i++) inner[i] = 0;
    for (int64_t a = 0; a < number; a++) {
        int32_t c = active[a];
        const float *row = shares + c * problem->tile;
        float hit = of_hits[c], predicted = of_predicted[c];
        for (int64_t i = 0; i < n; i++) {
            float probability = row[i] * share[i];
            inner[i] += probability * ((label[i] == c ? hit : 0.0f) + predicted * (plain + square * probability));
        }
    }
}

/* Write the gradient of one class: that of the margin loss (NULL: none) times the scale, and that of the overlap (share NULL: none). */
static void write_gradient(int64_t n, float *to, const float *of_margin, const float *restrict scale, const float *restrict row,
                           const float *restrict share, const float *restrict inner, const int32_t *restrict label,
                           const int32_t *restrict valid, int32_t c, float hit, float predicted, int squared) {
    float square = squared ? 2.0f : 0.0f, plain = squared ? 0.0f : 1.0f;
    if (!share) {
        for (int64_t i = 0; i < n; i++) to[i] = valid[i] ? of_margin[i] * scale[i] : 0.0f;
    } else if (of_margin) {
        for (int64_t i = 0; i < n; i++) {
            float probability = row[i] * share[i];
            float slope = (label[i] == c ? hit : 0.0f) + predicted * (plain + square * probability);
            float value = of_margin[i] * scale[i] + probability * (slope - inner[i]);
            to[i] = valid[i] ? value : 0.0f;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            float probability = row[i] * share[i];
            float slope = (label[i] == c ? hit : 0.0f) + predicted * (plain + square * probability);
            to[i] = valid[i] ? probability * (slope - inner[i]) : 0.0f;
        }
    }
}

static void one_tile(const Problem *problem, int64_t chunk, int64_t start, int64_t inside, float *scores) {
    int64_t tile = problem->tile, classes = problem->classes, one_case = chunk / problem->chunks;
    int64_t n = (inside + LANES - 1) / LANES * LANES, number = 0;
    float *slopes = scores + classes * tile, *shares = slopes + classes * tile;
    float largest[MOST_VOXELS], second[MOST_VOXELS], loss[MOST_VOXELS], share[MOST_VOXELS], inner[MOST_VOXELS];
    int32_t label[MOST_VOXELS], valid[MOST_VOXELS], first_class[MOST_VOXELS], second_class[MOST_VOXELS];
    int32_t active[classes];
    const float *of_hits = problem->slopes ? problem->slopes + one_case * 2 * classes : 0;
    problem->wrong[chunk] += read_labels(problem, one_case * problem->target_case + start, inside, label, valid);
    for (int32_t c = 0; c < classes; c++)
        if (!problem->annotated || problem->annotated[one_case * classes + c]) active[number++] = c;
    if (problem->annotated)
        for (int64_t i = 0; i < inside; i++) {
            int unknown = valid[i] && !problem->annotated[one_case * classes + label[i]];
            problem->wrong[chunk] += unknown && number >= 2;
            valid[i] = valid[i] && number >= 2;
        }
    int64_t counted = 0;
    for (int64_t i = 0; i < n; i++) counted += valid[i];
    problem->counts[chunk] += counted;
    if (!problem->logits) return;
    const float *from = problem->logits + one_case * problem->logits_case + start;
    if (counted) {
        for (int64_t c = 0; c < classes; c++) {
            float *row = scores + c * tile;
            const float *logit = from + (problem->channels == 1 ? 0 : c) * problem->logits_channel;
            if (problem->channels == 1 && c == 0) {
                for (int64_t i = 0; i < n; i++) row[i] = 0;
                continue;
            }
            for (int64_t i = 0; i < inside; i++) {
                float score = valid[i] ? logit[i] : 0.0f;
                score = score > LARGEST ? LARGEST : score;
                row[i] = score < -LARGEST ? -LARGEST : score;
            }
            for (int64_t i = inside; i < n; i++) row[i] = 0;
        }
        if (problem->margin) {
            two_largest(n, scores, active, number, tile, largest, second, first_class, second_class);
            margin_terms(problem, n, scores, slopes, active, number, largest, second, first_class, second_class, label, loss);
        } else {
            only_largest(n, scores, active, number, tile, largest);
        }
        if (problem->want_sums || problem->want_slopes)
            exponents(n, scores, shares, active, number, tile, largest, valid, share);
        if (problem->want_sums)
            add_sums(problem, n, shares, share, active, number, label, valid, problem->sums + chunk * 3 * classes);
        if (problem->want_slopes)
            common_slope(problem, n, shares, share, active, number, label, of_hits, of_hits + classes, inner);
    }
    if (!counted || !problem->margin)
        for (int64_t i = 0; i < n; i++) loss[i] = 0;
    double total = 0;
    float per_unit = 1.0f / problem->unit;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++) {
        loss[i] = valid[i] ? loss[i] * per_unit : 0.0f;
        total += loss[i];
    }
    problem->losses[chunk] += total;
    if (problem->loss_map)
        for (int64_t i = 0; i < inside; i++) problem->loss_map[one_case * problem->voxels + start + i] = loss[i];
    if (!problem->want_gradient && !problem->want_slopes) return;
    float scale[MOST_VOXELS];
    for (int64_t i = 0; i < inside; i++)
        scale[i] = problem->voxel_scale ? problem->voxel_scale[one_case * problem->voxels + start + i] : problem->scale;
    for (int64_t k = 0; k < problem->channels; k++) {
        int64_t c = problem->channels == 1 ? 1 : k;
        float *to = problem->gradient + one_case * problem->gradient_case + k * problem->gradient_channel + start;
        if (!counted || (problem->annotated && !problem->annotated[one_case * classes + c])) {
            for (int64_t i = 0; i < inside; i++) to[i] = 0;
            continue;
        }
        const float *of_margin = problem->holds_margin ? to : problem->margin ? slopes + c * tile : 0;
        int both = problem->want_slopes;
        write_gradient(inside, to, of_margin, scale, shares + c * tile, both ? share : 0, inner, label, valid, (int32_t)c,
                       both ? of_hits[c] : 0.0f, both ? of_hits[classes + c] : 0.0f, problem->squared);
    }
}

/* Chunks from `begin` to `end`; `worker` says which of the rows to work in. */
void margincal_chunks(const Problem *problem, int64_t begin, int64_t end, int64_t worker) {
    float *rows = problem->rows + worker * 3 * problem->classes * problem->tile;
    int64_t tiles = (problem->voxels + problem->tile - 1) / problem->tile;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t first = chunk % problem->chunks * problem->tiles_per_chunk, last = first + problem->tiles_per_chunk;
        for (int64_t t = first; t < last && t < tiles; t++) {
            int64_t start = t * problem->tile, left = problem->voxels - start;
            one_tile(problem, chunk, start, left < problem->tile ? left : problem->tile, rows);
        }
    }
}
