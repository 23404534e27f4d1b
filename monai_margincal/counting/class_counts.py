"""Exact voxel counts per label id: what the margins are computed from.

The rules of this room:

* a class is known by its **id**, the value in the label volume, never by a list position;
* counts are int64 and exact at any size; merging is exact and does not depend on the order;
* ids, names and counts travel together, also through JSON;
* no torch is needed to read or write one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..files import write_text
from ..json_files import expect_replaceable, read_json

__all__ = ["ClassCounts"]

_FORMAT = "monai_margincal.class_counts"
_INT64_MAX = int(np.iinfo(np.int64).max)


class ClassCounts:
    """Number of voxels of every class, over all cases and, where known, in each of them.

    Args:
        counts: voxels per class: integers >= 0, one per id (C,). A mapping ``id -> count`` gives ids and counts at once.
        ids: the label value of every class: distinct integers (C,). Default: 0, 1, ..., C - 1.
        names: what the classes are called: distinct, non-empty strings (C,).
        cases: counts of the individual cases, ``{case: (C,) counts}``. They must add up to ``counts``.
        source: one line that says what was counted, for example ``"raw label files"``.
        ignored: voxels that were left out because they carry the ignored label.

    Classes are kept sorted by id and cases by name, so that equal content compares equal, whatever order it came in.

    Raises:
        ValueError: lengths differ, an id or a name is repeated, a count is negative, not integral or beyond int64, the cases
            do not add up.
        TypeError: a count or an id is not a number.

    Example:
        >>> site_a = ClassCounts([90, 10], names=["background", "lesion"])
        >>> site_b = ClassCounts({0: 50, 1: 0}, names=["background", "lesion"])
        >>> site_a + site_b
        ClassCounts({0 background: 140, 1 lesion: 10})
        >>> (site_a + site_b).frequencies.round(4).tolist()
        [0.9333, 0.0667]

        Label ids may have gaps:

        >>> ClassCounts([7, 3], ids=[0, 517]).count_of(517)
        3
    """

    __slots__ = ("_cases", "_counts", "_ids", "_ignored", "_names", "_source")

    def __init__(
        self,
        counts: Sequence[int] | Mapping[int, int] | np.ndarray,
        ids: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        cases: Mapping[str, Sequence[int]] | None = None,
        source: str | None = None,
        ignored: int = 0,
    ) -> None:
        if isinstance(counts, Mapping):
            if ids is not None:
                raise ValueError("counts is a mapping and so carries its ids: found ids as well, expected ids=None")
            ids, counts = list(counts.keys()), list(counts.values())
        values = _integers(counts, "counts")
        labels = list(range(len(values))) if ids is None else _integers(ids, "ids", signed=True)
        if not values:
            raise ValueError("counts is empty: expected one count per class")
        if len(labels) != len(values):
            raise ValueError(f"counts has {len(values)} entries, but ids has {len(labels)}: expected one id per count")
        if len(set(labels)) != len(labels):
            raise ValueError(f"ids must be distinct, found {_repeated(labels)} more than once")
        if names is not None:
            if (
                isinstance(names, str)
                or not isinstance(names, Iterable)
                or not all(isinstance(name, str) and name for name in names)
            ):
                raise ValueError(f"names must be non-empty strings, one per class, found {names!r}")
            if len(names) != len(values):
                raise ValueError(
                    f"counts has {len(values)} entries, but names has {len(names)}: expected one name per class"
                )
            if len(set(names)) != len(names):
                raise ValueError(f"names must be distinct, found {_repeated(names)} more than once")
        order = sorted(range(len(labels)), key=labels.__getitem__)
        self._ids = tuple(labels[i] for i in order)
        self._names = None if names is None else tuple(names[i] for i in order)
        self._counts = _frozen([values[i] for i in order])
        self._ignored = _integers([ignored], "ignored")[0]
        if not isinstance(source, (str, type(None))):
            raise TypeError(f"source must be one line of text, found {source!r}")
        self._source = source
        if not isinstance(cases, (Mapping, type(None))):
            raise TypeError(f"cases must be a mapping of counts per case, found {cases!r}")
        self._cases = None if cases is None else self._checked_cases(cases, order)

    def _checked_cases(self, cases: Mapping[str, Sequence[int]], order: list[int]) -> dict[str, tuple[int, ...]]:
        checked: dict[str, tuple[int, ...]] = {}
        for case in sorted(cases):
            values = _integers(cases[case], f"cases[{case!r}]")
            if len(values) != len(order):
                raise ValueError(f"cases[{case!r}] has {len(values)} counts: expected {len(order)}, one per class")
            checked[case] = tuple(values[i] for i in order)
        sums = [sum(column) for column in zip(*checked.values(), strict=True)] if checked else [0] * len(order)
        if sums != self._counts.tolist():
            raise ValueError(f"the counts of the cases add up to {sums}, but counts is {self._counts.tolist()}")
        return checked

    @property
    def counts(self) -> np.ndarray:
        """Voxels per class, int64 (C,), read-only, in the order of `ids`."""
        return self._counts

    @property
    def ids(self) -> tuple[int, ...]:
        """Label value of every class, ascending."""
        return self._ids

    @property
    def names(self) -> tuple[str, ...] | None:
        """Name of every class in the order of `ids`, or None."""
        return self._names

    @property
    def cases(self) -> Mapping[str, tuple[int, ...]] | None:
        """Counts of every case, ``{case: (C,) counts}``, or None where cases were not recorded."""
        return None if self._cases is None else dict(self._cases)

    @property
    def source(self) -> str | None:
        """What was counted, in one line, or None."""
        return self._source

    @property
    def ignored(self) -> int:
        """Voxels left out because they carry the ignored label."""
        return self._ignored

    @property
    def total(self) -> int:
        """Voxels of all classes together (ignored ones are not among them)."""
        return sum(self._counts.tolist())

    @property
    def frequencies(self) -> np.ndarray:
        """Share of every class, float64 (C,), adding up to 1; all NaN when nothing was counted."""
        total = self.total
        return np.full(len(self), np.nan) if total == 0 else self._counts.astype(np.float64) / total

    @property
    def labels(self) -> tuple[str, ...]:
        """What messages call the classes: ``"1 lesion"`` with names, ``"1"`` without."""
        if self._names is None:
            return tuple(str(i) for i in self._ids)
        return tuple(f"{i} {name}" for i, name in zip(self._ids, self._names, strict=True))

    def count_of(self, label: int) -> int:
        """Voxels of the class with this id.

        Raises:
            KeyError: the id is not among `ids`.
        """
        if label not in self._ids:
            raise KeyError(f"no class has the id {label}: the ids are {list(self._ids)}")
        return int(self._counts[self._ids.index(label)])

    def __add__(self, other: object) -> ClassCounts:
        """Merge two counts of disjoint cases by id; a class that one side does not know counts 0 there.

        Raises:
            ValueError: one id has two names, or a case is in both (it would be counted twice). Cases of two sites that
                happen to share names: merge ``a.prefixed("site_a/") + b.prefixed("site_b/")``.
        """
        if not isinstance(other, ClassCounts):
            return NotImplemented
        ids = sorted({*self._ids, *other._ids})
        names = self._merged_names(other)
        cases = None
        if self._cases is not None and other._cases is not None:
            twice = sorted(self._cases.keys() & other._cases.keys())
            if twice:
                raise ValueError(
                    f"{len(twice)} case(s) are in both counts and would be counted twice, the first is {twice[0]!r}: "
                    "expected disjoint cases (tell sites apart with `prefixed`)"
                )
            sides = ((self, self._cases), (other, other._cases))
            cases = {case: side._spread(ids, values) for side, own in sides for case, values in own.items()}
        totals = [
            a + b for a, b in zip(self._spread(ids, self._counts), other._spread(ids, other._counts), strict=True)
        ]
        parts = sorted({part for counts in (self, other) if counts._source for part in counts._source.split("; ")})
        return ClassCounts(
            totals, ids, names, cases, source="; ".join(parts) or None, ignored=self._ignored + other._ignored
        )

    def __radd__(self, other: object) -> ClassCounts:
        # sum([...]) starts from 0
        return self if other == 0 else NotImplemented

    def _spread(self, ids: Sequence[int], values: Iterable[int]) -> list[int]:
        of = dict(zip(self._ids, (int(value) for value in values), strict=True))
        return [of.get(i, 0) for i in ids]

    def _merged_names(self, other: ClassCounts) -> list[str] | None:
        mine, theirs = (dict(zip(c._ids, c._names, strict=True)) if c._names else None for c in (self, other))
        if mine is None and theirs is None:
            return None
        mine, theirs = mine or {}, theirs or {}
        for i in sorted(mine.keys() & theirs.keys()):
            if mine[i] != theirs[i]:
                raise ValueError(
                    f"the class with id {i} is {mine[i]!r} in one count and {theirs[i]!r} in the other: expected one name"
                )
        names = {**mine, **theirs}
        return [names.get(i, f"class {i}") for i in sorted({*self._ids, *other._ids})]

    def prefixed(self, prefix: str) -> ClassCounts:
        """The same counts with ``prefix`` before the name of every case.

        Example:
            >>> ClassCounts([5, 1], cases={"case_1": [5, 1]}).prefixed("site_a/").cases
            {'site_a/case_1': (5, 1)}
        """
        cases = None if self._cases is None else {prefix + case: values for case, values in self._cases.items()}
        return self._like(self._names, cases)

    def named(self, names: Sequence[str] | Mapping[int, str]) -> ClassCounts:
        """The same counts with these class names, in the order of `ids` or by id."""
        if isinstance(names, Mapping):
            missing = [i for i in self._ids if i not in names]
            if missing:
                raise ValueError(f"names has none for the id(s) {missing}: expected one per id {list(self._ids)}")
            names = [names[i] for i in self._ids]
        return self._like(names, self._cases)

    def _like(self, names: Sequence[str] | None, cases: Mapping[str, Sequence[int]] | None) -> ClassCounts:
        """The same counts with other names or cases."""
        return ClassCounts(self._counts, self._ids, names, cases, source=self._source, ignored=self._ignored)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {
            "format": _FORMAT,
            "version": 1,
            "ids": list(self._ids),
            "names": None if self._names is None else list(self._names),
            "counts": self._counts.tolist(),
            "ignored": self._ignored,
            "source": self._source,
            "cases": None if self._cases is None else {case: list(values) for case, values in self._cases.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str = "class counts") -> ClassCounts:
        """The inverse of `to_dict`; ``where`` names the origin in messages."""
        if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
            found = content.get("format") if isinstance(content, Mapping) else type(content).__name__
            raise ValueError(f"{where}: found format {found!r}, expected {_FORMAT!r} as written by ClassCounts.to_json")
        if content.get("version") != 1:
            raise ValueError(f"{where}: found version {content.get('version')!r}, expected 1")
        missing = [key for key in ("ids", "counts") if key not in content]
        if missing:
            raise ValueError(f"{where}: the key(s) {missing} are missing, found {sorted(content)}")
        try:
            return cls(
                content["counts"],
                content["ids"],
                content.get("names"),
                content.get("cases"),
                source=content.get("source"),
                ignored=content.get("ignored", 0),
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, whole or not at all.

        Args:
            path: the file; an older file of class counts is replaced, any other file is not.

        Raises:
            FileExistsError: the file exists and holds something else.
            OSError: the file cannot be written; the message names it.
        """
        ClassCounts.expect_replaceable(path)
        write_text(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @staticmethod
    def expect_replaceable(path: str | os.PathLike[str]) -> None:
        """Raise now what `to_json` would raise, before there is anything to write.

        Args:
            path: the file that is going to be written.

        Raises:
            FileExistsError: the file exists and holds something other than class counts.
            OSError: the file cannot be written; the message names it.
        """
        refusal = " exists and is not a file of class counts, so it is not overwritten"
        expect_replaceable(path, ClassCounts.from_json, refusal)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> ClassCounts:
        """Read what `to_json` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is not JSON or not a file of class counts; the message names it.
        """
        return cls.from_dict(read_json(path, "a JSON file of class counts"), str(Path(path)))

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClassCounts):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        body = ", ".join(f"{label}: {count}" for label, count in zip(self.labels, self._counts.tolist(), strict=True))
        more = f", {len(self._cases)} cases" if self._cases is not None else ""
        more += f", ignored={self._ignored}" if self._ignored else ""
        more += f", source={self._source!r}" if self._source else ""
        return f"ClassCounts({{{body}}}{more})"


def _integers(values: Iterable[Any], what: str, signed: bool = False) -> list[int]:
    """Python integers (exact at any size) from numbers of any integral kind."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a sequence of integers, found {values!r}")
    result = []
    for value in values:
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{what} must be integers, found {value!r}")
        if value != value or value in (float("inf"), float("-inf")) or value != int(value):
            raise ValueError(f"{what} must be integers (voxels, not frequencies), found {value!r}")
        if not signed and value < 0:
            raise ValueError(f"{what} must not be negative, found {value!r}")
        if abs(value) > _INT64_MAX:
            raise ValueError(f"{what} must fit into int64 (at most {_INT64_MAX}), found {value!r}")
        result.append(int(value))
    return result


def _frozen(values: list[int]) -> np.ndarray:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def _repeated(values: Sequence[Any]) -> list[Any]:
    return sorted({value for value in values if list(values).count(value) > 1})
