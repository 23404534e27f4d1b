"""What figures say, computed from what they show: who is first, by how much, and whether that is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .results import Summary
from .scores import Comparison, seed_interval, signed_points
from .study import Study

__all__ = [
    "classes_say",
    "decoder_gains",
    "decoders_say",
    "differences_say",
    "few_seeds_say",
    "first_letter",
    "in_points",
    "overview_says",
    "sensitivity_says",
]


def in_points(value: float, low: float, high: float) -> str:
    """A difference of fractions of 1 in points, with its interval where there is one.

    Example:
        >>> in_points(0.0012, -0.003, 0.0051), in_points(0.0012, float("nan"), float("nan"))
        ('+0.12 [−0.30, +0.51]', '+0.12')
    """
    text = signed_points(value)
    return text if np.isnan(low) else f"{text} [{signed_points(low)}, {signed_points(high)}]"


def first_letter(text: str) -> str:
    """The text with a capital at its beginning.

    Example:
        >>> first_letter("margins + Dice is first.")
        'Margins + Dice is first.'
    """
    return text[:1].upper() + text[1:]


def few_seeds_say(seeds: int) -> str:
    """A warning, with a space before it, where an interval knows little of training noise."""
    if seeds == 1:
        return " One seed: nothing is known of training noise."
    return f" {seeds} seeds only: the intervals know little of training noise." if seeds < 5 else ""


def differences_say(study: Study, summaries: Sequence[Summary]) -> str:
    """Who is ahead of the best baseline.

    Args:
        study: of the summaries.
        summaries: of one task, protocol and decoder, with a baseline and something to compare with it.
    """
    reference = next(summary for summary in summaries if summary.objective == summary.baseline)
    compared = [summary for summary in summaries if summary.comparison is not None]
    seeds = {summary.objective: len(set(summary.seeds) & set(reference.seeds)) for summary in compared}
    most = max(seeds.values())
    compared = [summary for summary in compared if seeds[summary.objective] == most]
    versus = {summary.objective: summary.comparison for summary in compared if summary.comparison is not None}
    ahead = [name for name, comparison in versus.items() if comparison.low > 0]
    behind = sum(comparison.high < 0 for comparison in versus.values())
    leader = max(ahead or versus, key=lambda name: versus[name].difference)
    baseline = f"the best baseline, {study.label(reference.objective)} ({100 * reference.miou.mean():.2f} %)"
    at = f"{study.label(leader)} at {_interval(versus[leader])} points"
    if ahead:
        said = (
            f"{len(ahead)} of {len(versus)} objectives {_are(ahead)} ahead of {baseline}, first {at}; {behind} behind."
        )
    elif behind == len(versus):
        said = (
            f"{first_letter(study.label(reference.objective))}, a baseline, is first with "
            f"{100 * reference.miou.mean():.2f} %; all {behind} others are behind, the next {at}."
        )
    else:
        said = (
            f"Undecided: no objective is ahead of {baseline}, beyond its interval. Next comes {at}; "
            f"{behind} of {len(versus)} are behind."
        )
    return said + few_seeds_say(most)


def classes_say(study: Study, summaries: Sequence[Summary], class_names: Sequence[str]) -> str:
    """Which objective is first in every foreground class, and how far ahead of the second.

    Args:
        study: of the summaries.
        summaries: of one task, protocol and decoder.
        class_names: background first.
    """
    full = _with_most_seeds(summaries)
    said, undecided = [], 0
    for number, name in enumerate(class_names[1:], start=1):
        ranked = sorted(full, key=lambda summary: -float(summary.per_class_iou[:, number].mean()))
        text = f"{name}: {study.label(ranked[0].objective)} first with {100 * ranked[0].per_class_iou[:, number].mean():.1f} %"
        if len(ranked) > 1:
            lead, low, high = _lead(ranked[0], ranked[1], number)
            open_still = not low > 0
            undecided += open_still
            text += (
                f", {in_points(lead, low, high)} ahead of {study.label(ranked[1].objective)}"
                f"{' (undecided)' if open_still else ''}"
            )
        said.append(text)
    if len(said) > 3:
        return f"In {undecided} of {len(said)} classes the first place is undecided: 95 % intervals over the seeds."
    return first_letter("; ".join(said)) + "." + few_seeds_say(len(full[0].seeds))


def decoder_gains(summaries: Sequence[Summary]) -> dict[str, dict[str, np.ndarray]]:
    """Objective -> decoder -> gain over the first decoder in points, one per seed (S,); empty for a single decoder.

    Args:
        summaries: of one task and protocol, those of the first decoder before the others.
    """
    first = summaries[0].decoder if summaries else ""
    base = {summary.objective: summary for summary in summaries if summary.decoder == first}
    gains: dict[str, dict[str, np.ndarray]] = {}
    for summary in summaries:
        plain = base.get(summary.objective)
        if summary.decoder != first and plain is not None and plain.seeds == summary.seeds:
            gains.setdefault(summary.objective, {})[summary.decoder] = 100 * (summary.miou - plain.miou)
    return gains


def decoders_say(study: Study, summaries: Sequence[Summary]) -> str:
    """How many objectives each decoder helps and harms, and what it does for the first baseline.

    Args:
        study: of the summaries.
        summaries: as for `decoder_gains`, with two decoders at least.
    """
    gains = decoder_gains(summaries)
    most = max(len(values) for found in gains.values() for values in found.values())
    full = {name: found for name, found in gains.items() if all(len(values) == most for values in found.values())}
    first = next((name for name in gains if study.objectives[name].get("group") == "baseline"), None)
    said = []
    for decoder in dict.fromkeys(name for found in full.values() for name in found):
        values = {name: found[decoder] for name, found in full.items() if decoder in found}
        ends = {name: seed_interval(value) for name, value in values.items()}
        means = [float(value.mean()) for value in values.values()]
        if most > 1:
            up = sum(low > 0 for low, _ in ends.values())
            down = sum(high < 0 for _, high in ends.values())
            text = f"with {decoder}, {up} of {len(values)} objectives gain and {down} lose"
            if down + up < len(values):
                text += f", {len(values) - up - down} undecided"
        else:
            text = f"with {decoder} the IoU changes by {_signed(min(means))} to {_signed(max(means))} points"
        if first in values:
            low, high = ends[first]
            text += f" ({study.label(first)} {in_points(float(values[first].mean()) / 100, low / 100, high / 100)})"
        said.append(text)
    tail = f"95 % intervals over the {most} seeds." if most > 1 else "One seed: no interval."
    return first_letter("; ".join(said)) + f". {tail}" + (few_seeds_say(most) if most > 1 else "")


def overview_says(study: Study, summaries: Sequence[Summary], first: str, tasks: Sequence[str]) -> str:
    """Which objective is farthest ahead of the first baseline in every task.

    Args:
        study: of the summaries.
        summaries: of one protocol and decoder.
        first: objective that the others are compared with.
        tasks: in the order in which they are named.
    """
    label = study.label(first)
    said = []
    for task in tasks:
        here = [summary for summary in summaries if summary.task == task and label in summary.against]
        if not here:
            continue
        ahead = [summary for summary in _with_most_seeds(here) if summary.against[label].low > 0]
        if ahead:
            best = max(ahead, key=lambda summary: summary.against[label].difference)
            said.append(f"{study.label(best.objective)} {_interval(best.against[label])} in {_title(study, task)}")
        else:
            said.append(f"none, undecided, in {_title(study, task)}")
    return f"Farthest ahead of {label}, in points: {'; '.join(said)}."


def sensitivity_says(study: Study, chosen: Sequence[Summary], reference: Summary | None) -> str:
    """Which setting is first on the test cases, and which one the validation cases would have chosen.

    Args:
        study: of the summaries.
        chosen: the settings, all over the same seeds.
        reference: the best baseline over these seeds.
    """
    best = max(chosen, key=lambda summary: float(summary.miou.mean()))
    by_validation = max(chosen, key=lambda summary: float(summary.validation_miou.mean()))
    said = f"{_setting(study, best)} is first on the test cases with {100 * best.miou.mean():.2f} %"
    if reference is not None:
        differences = best.miou - reference.miou
        low, high = seed_interval(differences)
        interval = in_points(float(differences.mean()), low, high)
        said += f", {interval} points against the best baseline{'' if low > 0 or high < 0 else ' (undecided)'}"
    if by_validation is best:
        said += "; so it is on the validation cases."
    else:
        said += f"; the validation cases would have chosen {_setting(study, by_validation)}."
    return said + few_seeds_say(len(best.seeds))


def _title(study: Study, task: str) -> str:
    # what follows a colon is detail
    return f"“{str(study.tasks[task].get('title', task)).split(':')[0]}”"


def _setting(study: Study, summary: Summary) -> str:
    tau, upsilon = study.objectives[summary.objective]["tau_upsilon"]
    return f"τ = {tau:g}, υ = {upsilon:g} ({study.label(summary.objective).split(':')[0]})"


def _lead(ours: Summary, theirs: Summary, number: int) -> tuple[float, float, float]:
    """Mean paired difference of one class's IoU, and its interval over the common seeds."""
    common = [seed for seed in ours.seeds if seed in theirs.seeds]
    differences = np.array(
        [
            ours.per_class_iou[ours.seeds.index(seed), number] - theirs.per_class_iou[theirs.seeds.index(seed), number]
            for seed in common
        ]
    )
    return float(differences.mean()), *seed_interval(differences)


def _with_most_seeds(summaries: Sequence[Summary]) -> list[Summary]:
    """Means over fewer seeds come from other training sets, so that no place among the others can be given to them."""
    most = max(len(summary.seeds) for summary in summaries)
    return [summary for summary in summaries if len(summary.seeds) == most]


def _interval(versus: Comparison) -> str:
    return in_points(versus.difference, versus.low, versus.high)


def _signed(points: float) -> str:
    return signed_points(points / 100)


def _are(things: Sequence[object] | Mapping[str, object]) -> str:
    return "is" if len(things) == 1 else "are"
