"""The table of volumes: every class in millilitres, one row per scan, in a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from monai.data import MetaTensor

from ...datasets.case_files import scan_of
from ...files import locked, printable, replacing
from ...geometry import voxel_volume_mm3
from ..kind import Destination, Output


class VolumeTable:
    """A CSV file with a row per scan: the volume of every class but the background, in millilitres.

    Columns: ``image``, ``voxel_volume_mm3``, ``cropped_to`` (what the scan was cropped to, if it was), then ``NAME_voxels``
    and ``NAME_ml`` per class, and ``error``: why a scan has no numbers. A row for the same image is replaced; other rows stay,
    even those that other processes write at the same time. The file is complete at all times.

    Args:
        path: the CSV file.
        class_names: names of the classes by id; the first is the background.

    Example:
        >>> import tempfile
        >>> from monai.data import MetaTensor
        >>> mask = MetaTensor(torch.ones(1, 10, 10, 10, dtype=torch.uint8), meta={"filename_or_obj": "scan.nii.gz"})
        >>> path = Path(tempfile.mkdtemp()) / "volumes.csv"
        >>> VolumeTable(path, ["background", "liver"]).write(mask)
        >>> print(path.read_text().strip())
        image,voxel_volume_mm3,cropped_to,liver_voxels,liver_ml,error
        scan.nii.gz,1.0,,1000,1.0,
    """

    def __init__(self, path: str | os.PathLike[str], class_names: Sequence[str]) -> None:
        self.path = Path(path)
        self.class_names = list(class_names)
        self.columns = ["image", "voxel_volume_mm3", "cropped_to"]
        self.columns += [f"{name}_{unit}" for name in self.class_names[1:] for unit in ("voxels", "ml")]
        self.columns += ["error"]

    def write(self, mask: MetaTensor) -> None:
        """Write the row of a scan.

        Args:
            mask: class ids, (1, X, Y, Z) of an integral dtype, on the scan's own grid.

        Raises:
            ValueError: the map holds a class without a name, its affine spans no volume, or the file on disk has other columns.
        """
        self._write(self._row(mask))

    def write_error(self, scan: str, reason: str) -> None:
        """Write a row without numbers.

        Args:
            scan: file or folder of the scan.
            reason: why there are none.

        Raises:
            ValueError: the file on disk has other columns.
        """
        self._write({**dict.fromkeys(self.columns, ""), "image": printable(scan), "error": printable(reason)})

    def _row(self, mask: MetaTensor) -> dict[str, str]:
        scan, volume = printable(scan_of(mask.meta)), voxel_volume_mm3(mask.affine.cpu())
        voxels = torch.bincount(mask.as_tensor().flatten(), minlength=len(self.class_names)).tolist()
        if len(voxels) > len(self.class_names):
            raise ValueError(f"{scan}: found class {len(voxels) - 1}, expected one of {self.class_names}")
        row = {
            "image": scan,
            "voxel_volume_mm3": repr(round(volume, 9)),
            "cropped_to": str(mask.meta.get("cropped_to", "")),
            "error": "",
        }
        for name, number in list(zip(self.class_names, voxels, strict=True))[1:]:
            row |= {f"{name}_voxels": str(number), f"{name}_ml": repr(round(number * volume / 1000, 6))}
        return row

    def _write(self, row: dict[str, str]) -> None:
        # the jobs of an array share one table
        with locked(self.path):
            self._replace(row)

    def _replace(self, row: dict[str, str]) -> None:
        rows: dict[str, dict[str, str]] = {}
        if self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file)
                if reader.fieldnames != self.columns:
                    raise ValueError(f"{self.path}: found the columns {reader.fieldnames}, expected {self.columns}")
                rows = {known["image"]: known for known in reader}
        rows[row["image"]] = row
        with replacing(self.path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows.values())


class Volumes(Output):
    """``volumes.csv``, see `VolumeTable`. A scan that failed has a row that says why.

    Args:
        destination: where the results go.
        file: the CSV file; a relative path begins at the folder of all results.
    """

    kind = "volumes"

    def __init__(self, destination: Destination, file: str | os.PathLike[str] = "volumes.csv") -> None:
        super().__init__(destination)
        self.table = VolumeTable(Path(destination.output_dir) / file, destination.class_names)
        self.reasons = self.table.path

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Write the row of the scan."""
        self.table.write(items[key])

    def note_failure(self, scan: str, reason: str) -> None:
        """Write a row without numbers."""
        self.table.write_error(scan, reason)
