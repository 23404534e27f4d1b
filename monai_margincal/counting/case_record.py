"""What is known about one counted case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class CaseRecord:
    """Counts and geometry of one case.

    Attributes:
        name: name of the case, distinct within a scan.
        values: voxels per label value, ``{value: count}``, ignored voxels among them.
        file: the label file, if the case is known to come from one.
        shape: size of the label along its spatial axes; None where several labels of different sizes were counted.
        dtype: type of a voxel when it was counted.
        spacing: distance of neighbouring voxels in mm; None where unknown.
        voxel_volume: volume of a voxel in mm^3; None where unknown.
        affine: voxel indices to mm in RAS orientation, as nested lists; None where unknown.
        reader: where the label came from: the reader of a file, or the transforms.
        annotated: ids that were annotated in this case; None where all were.
        labels: how many labels were counted for this case (crops of one volume, items of one file).
    """

    name: str
    values: Mapping[int, int]
    file: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    spacing: tuple[float, ...] | None = None
    voxel_volume: float | None = None
    affine: list[list[float]] | None = None
    reader: str = ""
    labels: int = 1
    annotated: tuple[int, ...] | None = None

    @property
    def voxels(self) -> int:
        """All voxels of the case."""
        return sum(self.values.values())

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {**asdict(self), "values": {str(value): count for value, count in self.values.items()}}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CaseRecord:
        """The inverse of `to_dict`."""
        fields = dict(content)
        fields["values"] = {int(value): int(count) for value, count in content["values"].items()}
        for name in ("shape", "spacing", "annotated"):
            fields[name] = None if content[name] is None else tuple(content[name])
        return cls(**fields)

    def merged(self, other: CaseRecord) -> CaseRecord:
        """The case with another of its labels added."""
        values = dict(self.values)
        for value, count in other.values.items():
            values[value] = values.get(value, 0) + count
        return CaseRecord(
            self.name,
            dict(sorted(values.items())),
            file=self.file,
            shape=self.shape if self.shape == other.shape else None,
            dtype=self.dtype if self.dtype == other.dtype else "mixed",
            spacing=self.spacing if self.spacing == other.spacing else None,
            voxel_volume=self.voxel_volume if self.voxel_volume == other.voxel_volume else None,
            affine=self.affine if self.affine == other.affine else None,
            reader=self.reader,
            labels=self.labels + other.labels,
            annotated=self.annotated,
        )


@dataclass(frozen=True)
class Failure:
    """A case that could not be counted: its file (or ``"item 7"``), and why."""

    place: str
    message: str
