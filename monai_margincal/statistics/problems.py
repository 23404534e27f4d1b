"""What usually goes wrong in a data set, looked for before training."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..counting.case_record import CaseRecord
from ..findings import Finding, most_severe_first
from ..formats import describe_label
from ..geometry import GRID_TOLERANCE
from .grid_problems import grid_problems, place_of
from .identity import fingerprint
from .scan import LabelScan
from .size_problems import size_problems

#: A label value in at most this share of the cases is called rare ...
_RARE = 0.1
#: ... and one in at least this share is called usual.
_USUAL = 0.9


def find_problems(
    scan: LabelScan, transformed: LabelScan | None = None, grid_tolerance: float | None = GRID_TOLERANCE
) -> tuple[Finding, ...]:
    """Look through a scan for what usually goes wrong, most severe first.

    Looked for are: cases that could not be counted; classes without a voxel anywhere, or missing in some cases; cases of
    background only; classes that vanish from a case under the transforms; images whose grid differs from their label's; label
    values that contradict the other cases; the same label under two names; voxel sizes far from the others; axes stored in
    different orders or directions; grids that differ within the set (planes among volumes; distances of voxels that differ by
    more than a factor of 2; sizes unlike that of 90 % of the cases); a case that holds most voxels of a class, and a class of a
    handful of voxels that takes most of tau (limits: `monai_margincal.statistics.size_problems`); partial annotation.

    Args:
        scan: the raw labels, from `scan_labels`.
        transformed: the same data after the training transforms, for classes that vanish there.
        grid_tolerance: how far the corners of an image's grid and its label's may lie apart, in voxels, as in
            `monai_margincal.transforms.CheckSameGridd`; None compares shapes only.

    Example:
        >>> from monai_margincal.statistics.scan import scan_labels
        >>> import numpy as np
        >>> scan = scan_labels([{"label": np.array([[0, 0, 1]])}, {"label": np.array([[0, 0, 0]])}], num_classes=2)
        >>> for finding in find_problems(scan):
        ...     print(finding.severity, "|", finding.kind, "|", finding.files)
        warning | background only | ('item_00001',)
        info | class missing in cases | ('item_00001',)
    """
    found = [
        *_failures(scan),
        *_absent_classes(scan),
        *_background_only(scan),
        *_contradicting_values(scan),
        *_duplicates(scan),
        *grid_problems(scan, grid_tolerance),
        *size_problems(scan.counts, {record.name: place_of(record) for record in scan.cases}),
        *_partial_annotation(scan),
    ]
    if transformed is not None:
        found.extend(_failures(transformed))
        found.extend(_vanished(scan, transformed))
    return tuple(most_severe_first(sorted(found, key=lambda finding: (finding.kind, finding.files))))


def _failures(scan: LabelScan) -> Iterable[Finding]:
    for failure in scan.failures:
        yield Finding("error", "not counted", failure.message, (failure.place,))


def _annotates(record: CaseRecord, class_id: int) -> bool:
    return record.annotated is None or class_id in record.annotated


def _absent_classes(scan: LabelScan) -> Iterable[Finding]:
    for class_id, label, total in zip(scan.counts.ids, scan.counts.labels, scan.counts.counts.tolist(), strict=True):
        asked = [record for record in scan.cases if _annotates(record, class_id)]
        lacking = [record for record in asked if not record.values.get(class_id)]
        if total == 0:
            message = f"class {label} has no voxel in any of {len(scan.cases)} cases: it gets no margin and no weight"
            yield Finding("warning", "absent class", message, tuple(place_of(record) for record in asked))
        elif lacking:
            message = f"class {label} occurs in {len(asked) - len(lacking)} of {len(asked)} cases"
            yield Finding("info", "class missing in cases", message, tuple(place_of(record) for record in lacking))


def _background_only(scan: LabelScan) -> Iterable[Finding]:
    for record in scan.cases:
        present = {value for value, count in record.values.items() if count and value != scan.ignore_index}
        if present <= {0}:
            message = (
                f"holds nothing but background ({record.values.get(0, 0)} voxels): crops by foreground cannot use it"
            )
            yield Finding("warning", "background only", message, (place_of(record),))


def _contradicting_values(scan: LabelScan) -> Iterable[Finding]:
    if len(scan.cases) < 4:
        # with fewer there is no telling which are the rule
        return
    sets = {
        record.name: {v for v, count in record.values.items() if count} - {scan.ignore_index} for record in scan.cases
    }
    times = Counter(value for values in sets.values() for value in values)
    for record in scan.cases:
        own = sets[record.name]
        rare = sorted(value for value in own if times[value] <= max(1, _RARE * len(sets)))
        usual = sorted(value for value in times if times[value] >= _USUAL * (len(sets) - 1) and value not in own)
        if rare and usual:
            message = f"uses the label value(s) {rare} where the other cases use {usual}"
            yield Finding("error", "contradicting label values", message, (place_of(record),))
    if 255 in times and scan.ignore_index != 255 and set(times) <= {0, 255}:
        message = "the label values are 0 and 255: a drawn mask, whose class id is 255 and not 1"
        yield Finding(
            "warning",
            "0/255 mask",
            message,
            tuple(place_of(record) for record in scan.cases if 255 in sets[record.name]),
        )


def _duplicates(scan: LabelScan) -> Iterable[Finding]:
    alike: dict[Any, list[CaseRecord]] = defaultdict(list)
    for record in scan.cases:
        if record.file is None or not Path(record.file).is_file():
            continue
        if record.labels > 1:
            message = f"is the label of {record.labels} items: its voxels count {record.labels} times"
            if scan.counts.source == "raw label files":
                yield Finding("info", "label used several times", message, (record.file,))
        # labels that hold a single value are alike without being copies
        if len(record.values) > 1:
            alike[(record.shape, tuple(sorted(record.values.items())))].append(record)
    for records in alike.values():
        if len(records) < 2:
            continue
        by_content: dict[str, list[str]] = defaultdict(list)
        for record in records:
            by_content[_content(Path(str(record.file)))].append(str(record.file))
        for files in by_content.values():
            if len(files) > 1:
                message = f"{len(files)} files hold the same label voxel by voxel: one case under several names"
                yield Finding("warning", "duplicate label", message, tuple(sorted(files)))


def _content(path: Path) -> str:
    """A hash of the voxels, the same for two files that differ in compression or header only."""
    try:
        voxels = np.ascontiguousarray(describe_label(path).load())
    except (ValueError, OSError):
        return fingerprint(path)
    return hashlib.blake2b(voxels.astype(voxels.dtype.newbyteorder("<")).tobytes(), digest_size=16).hexdigest()


def _partial_annotation(scan: LabelScan) -> Iterable[Finding]:
    for class_id, label in zip(scan.counts.ids, scan.counts.labels, strict=True):
        without = [record for record in scan.cases if not _annotates(record, class_id)]
        if without:
            message = f"class {label} is not annotated in {len(without)} cases: its voxels there carry another label"
            yield Finding("info", "partial annotation", message, tuple(place_of(record) for record in without))


def _vanished(scan: LabelScan, transformed: LabelScan) -> Iterable[Finding]:
    after = {place_of(record): record for record in transformed.cases}
    for record in scan.cases:
        later = after.get(place_of(record))
        if later is None:
            continue
        for class_id, label in zip(scan.counts.ids, scan.counts.labels, strict=True):
            before = record.values.get(class_id, 0)
            if before and not later.values.get(class_id):
                message = f"class {label} has {before} voxels in the file and none {transformed.counts.source}"
                yield Finding("warning", "class vanishes", message, (place_of(record),))


def frequency_drift(scan: LabelScan, transformed: LabelScan) -> dict[int, float]:
    """Frequency of every class after the transforms over its frequency in the raw labels; NaN where it was absent.

    Example:
        >>> from monai_margincal.statistics.scan import scan_labels
        >>> import numpy as np
        >>> raw = scan_labels([{"label": np.array([[0, 0, 0, 1]])}], num_classes=2)
        >>> crop = scan_labels([{"label": np.array([[0, 1]])}], num_classes=2)
        >>> {class_id: round(ratio, 3) for class_id, ratio in frequency_drift(raw, crop).items()}
        {0: 0.667, 1: 2.0}
    """
    before, after = scan.counts.frequencies, transformed.counts.frequencies
    later = dict(zip(transformed.counts.ids, after.tolist(), strict=True))
    return {
        class_id: later.get(class_id, 0.0) / share if share > 0 else float("nan")
        for class_id, share in zip(scan.counts.ids, before.tolist(), strict=True)
    }
