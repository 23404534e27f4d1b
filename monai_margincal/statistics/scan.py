"""Count the label voxels of a whole data set, case by case, and keep what is known about every case."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ..counting.case_names import case_names
from ..counting.case_record import CaseRecord, Failure
from ..counting.class_counts import ClassCounts
from ..counting.class_ids import as_integer, declared_class_ids
from ..counting.voxel_counts import select_classes
from ..processes import gather, group_size, is_split_by_rank, own_rank, share_of
from .duplicates import label_files
from .file_pool import count_files
from .identity import file_identity
from .journal import Journal
from .sources import Files, Items, resolve_source

if TYPE_CHECKING:
    from .items import LabelItems

RAW_SOURCE = "raw label files"

#: file or item of a case, and its record or what is wrong with it
_Results = Generator[tuple[str, CaseRecord | Exception], None, None]


@dataclass(frozen=True)
class LabelScan:
    """Everything that counting a data set revealed.

    Attributes:
        counts: the class counts, total and per case.
        cases: one record per counted case, by name.
        failures: the cases that could not be counted and are not in ``counts``; only with ``on_error="report"``.
        ignore_index: the label value that was ignored, or None.
        images: image file per label file, where the data list names one.
    """

    counts: ClassCounts
    cases: tuple[CaseRecord, ...]
    failures: tuple[Failure, ...] = ()
    ignore_index: int | None = None
    images: dict[str, str] = field(default_factory=dict)


def scan_labels(
    data: Any,
    key: str = "label",
    num_classes: int | None = None,
    ids: Sequence[int] | None = None,
    ignore_index: int | None = None,
    transform: Any = None,
    num_workers: int = 0,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
    on_error: str = "raise",
    seed: int = 0,
    annotated_key: str | None = None,
) -> LabelScan:
    """Count the voxels per class of a data set and keep the record of every case.

    `count_labels` is this function reduced to its counts; see there for the arguments. This one also keeps the geometry of
    every case, how each file was read, and the cases that failed. Labels that are partial in some cases (one site drew the
    liver, another the spleen) are declared per case: ``annotated_key`` is the key under which an item lists the ids that were
    annotated in it. A voxel of any other class in that case is an error.

    Example:
        >>> import numpy as np
        >>> scan = scan_labels([{"label": np.array([[0, 0, 1]])}, {"label": np.array([[2, 2, 2]])}], num_classes=3)
        >>> [(case.name, case.values) for case in scan.cases]
        [('item_00000', {0: 2, 1: 1}), ('item_00001', {2: 3})]
    """
    declared = declared_class_ids(num_classes, ids)
    ignore_index = None if ignore_index is None else as_integer(ignore_index, "ignore_index")
    num_workers = as_integer(num_workers, "num_workers")
    if num_workers < 0:
        raise ValueError(f"num_workers is {num_workers}, expected 0 or more")
    if on_error not in ("raise", "report"):
        raise ValueError(f"on_error is {on_error!r}, expected 'raise' or 'report'")
    source = resolve_source(data, key, transform)
    question = {"key": key, "ids": declared, "ignore_index": ignore_index}
    images: dict[str, str] = {}
    annotated = _annotations(data, key, annotated_key)
    total: int | None
    results: _Results
    shared = True
    if isinstance(source, Files):
        text, images = RAW_SOURCE, source.images()
        journal = None if cache_dir is None else Journal(cache_dir, {**question, "what": text})
        paths = share_of(source.paths)
        total, results = len(paths), _scan_files(paths, declared, ignore_index, num_workers, journal=journal)
    else:
        # MONAI and torch are imported for data sets alone
        from .items import LabelItems

        dataset = source.dataset if isinstance(source, Items) else getattr(source.loader, "dataset", None)
        items = LabelItems(dataset, source.transform, key, ids=declared, ignore_index=ignore_index, seed=seed)
        if isinstance(source, Items):
            text = items.describe()
            journal = None if cache_dir is None else Journal(cache_dir, {**question, **items.question()})
            indices = share_of(range(len(items)))
            total, results = len(indices), _scan_items(items, indices, num_workers, journal)
        else:
            if cache_dir is not None:
                raise ValueError(
                    "cache_dir is given with a DataLoader, whose batches have no identity: expected its data set"
                )
            shared = is_split_by_rank(source.loader)
            text, total = items.describe(seeded=False), _length(source.loader)
            results = _scan_batches(items, source.loader, shared)
    show = progress and own_rank() == 0

    def work() -> tuple[dict[str, CaseRecord], list[Failure]]:
        return _tally(results, total, on_error, show)

    records: dict[str, CaseRecord] = {}
    failures: list[Failure] = []
    for part, failed in gather(work) if shared else [work()]:
        failures.extend(failed)
        for origin, record in part.items():
            records[origin] = records[origin].merged(record) if origin in records else record
    if not records:
        raise ValueError(
            f"no case could be counted: {len(failures)} failed, the first with: {failures[0].message}"
            if failures
            else "data holds no case, expected at least one"
        )
    cases = _named(records, annotated)
    counts = _class_counts(cases, declared, ignore_index, source=text)
    return LabelScan(counts, cases, tuple(failures), ignore_index, images=images)


def _annotations(data: Any, key: str, annotated_key: str | None) -> dict[str, tuple[int, ...]]:
    """Annotated ids per label file, or per item where the label is not a file."""
    if annotated_key is None:
        return {}
    annotated = {}
    for index, item in enumerate(getattr(data, "data", data)):
        if not isinstance(item, Mapping) or annotated_key not in item:
            raise ValueError(
                f"data[{index}] has no key {annotated_key!r}, expected the annotated ids of every item there"
            )
        ids = declared_class_ids(None, item[annotated_key]) or ()
        files = label_files(item, key)
        annotated[str(files[0]) if len(files) == 1 else f"item_{index:05d}"] = ids
    return annotated


def _tally(
    results: _Results, total: int | None, on_error: str, show: bool
) -> tuple[dict[str, CaseRecord], list[Failure]]:
    """Go through the results of this process: records by the file or name they come from, and what failed."""
    records: dict[str, CaseRecord] = {}
    failures: list[Failure] = []
    # no bar where there is no terminal, nor where there is no standard error at all
    disable = None if show and sys.stderr is not None else True
    bar = tqdm(results, total=total, desc="counting labels", unit="case", disable=disable)
    try:
        for place, result in bar:
            if isinstance(result, CaseRecord):
                origin = result.file or result.name
                records[origin] = records[origin].merged(result) if origin in records else result
            elif on_error == "raise":
                raise result
            else:
                failures.append(Failure(place, str(result)))
    finally:
        bar.close()
        # ends the workers now, not whenever the generator happens to be collected
        results.close()
    return records, failures


def _scan_files(
    paths: Sequence[Path],
    ids: Sequence[int] | None,
    ignore_index: int | None,
    num_workers: int,
    journal: Journal | None,
) -> _Results:
    todo = list(paths)
    identities: dict[Path, str] = {}
    if journal is not None:
        todo = []
        for path in paths:
            try:
                identities[path] = file_identity(path)
            except (ValueError, OSError) as error:
                yield str(path), error
                continue
            known = journal.find(identities[path])
            if known is None:
                todo.append(path)
            else:
                # the path may have been written in another way when it was counted
                yield str(path), replace(known, file=str(path))
    for path, result in count_files(todo, ids, ignore_index, num_workers):
        if journal is not None and isinstance(result, CaseRecord):
            if file_identity(path) == identities[path]:
                journal.add(identities[path], result)
            else:
                result = ValueError(f"{path}: the file changed while it was counted, expected it to stay as it was")
        yield str(path), result


def _scan_items(items: LabelItems, indices: Sequence[int], num_workers: int, journal: Journal | None) -> _Results:
    from .item_pool import count_items

    todo: list[int] = []
    identities: dict[int, str] = {}
    for index in indices:
        if journal is not None:
            try:
                identities[index] = items.identity(index)
            except (ValueError, OSError) as error:
                yield items.place(index), error
                continue
            known = journal.find(identities[index])
            if known is not None:
                yield items.place(index), known
                continue
        todo.append(index)
    for index, result in count_items(items, todo, num_workers):
        if journal is not None and isinstance(result, CaseRecord):
            journal.add(identities[index], result)
        yield items.place(index), result


def _scan_batches(items: LabelItems, loader: Any, shared: bool) -> _Results:
    from .items import count_batches

    # labels of different ranks must not share a number
    numbering = (own_rank(), group_size()) if shared else (0, 1)
    for index, result in count_batches(loader, items, *numbering):
        yield f"item {index}", result


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        # the loader of an iterable data set does not know
        return None


def _class_counts(
    records: Sequence[CaseRecord], ids: Sequence[int] | None, ignore_index: int | None, source: str
) -> ClassCounts:
    """The class counts of all cases; without declared ids the classes are the values that occur."""
    if ids is None:
        ids = sorted({value for record in records for value in record.values} - {ignore_index})
    cases, ignored = {}, 0
    for record in records:
        counted = select_classes(record.values, ids, ignore_index, record.file or record.name)
        strangers = set(record.values) - set(record.annotated or record.values) - {ignore_index}
        if strangers:
            raise ValueError(
                f"{record.file or record.name}: found voxels of the class(es) {sorted(strangers)}, expected only those that are "
                f"annotated in this case: {list(record.annotated or ())}"
            )
        cases[record.name] = counted.counts.tolist()
        ignored += counted.ignored
    totals = [sum(column) for column in zip(*cases.values(), strict=True)]
    return ClassCounts(totals, ids, cases=cases, source=source, ignored=ignored)


def _named(records: dict[str, CaseRecord], annotated: dict[str, tuple[int, ...]]) -> tuple[CaseRecord, ...]:
    """The records under names that are distinct over the whole scan, in the order of the names."""
    files = [record.file for record in records.values() if record.file is not None]
    name_of = dict(zip(files, case_names([Path(file) for file in files]), strict=True))
    named = {}
    for record in records.values():
        name = record.name if record.file is None else name_of[record.file]
        while name in named:
            name += "_"
        named[name] = replace(record, name=name, annotated=annotated.get(record.file or record.name))
    return tuple(named[name] for name in sorted(named))
