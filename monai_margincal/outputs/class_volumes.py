"""Volumes of the segmented classes in millilitres, one row per scan in a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from monai.config import KeysCollection
from monai.transforms import MapTransform

from ..datasets.case_files import scan_of
from ..files import replacing
from ..geometry import voxel_volume_mm3


class SaveClassVolumesd(MapTransform):
    """Write the volume of every class but the background, in millilitres, as a row of a CSV file.

    Columns: ``image``, ``voxel_volume_mm3``, ``cropped_to`` (what the scan was cropped to, if it was), then ``NAME_voxels``
    and ``NAME_ml`` per class, and ``error``: why a scan has no numbers. A row of the same image is replaced, other rows stay;
    the file is whole at any time.

    Args:
        keys: key of the class map, (1, X, Y, Z) of an integral dtype, a MetaTensor on the scan's own grid.
        path: the CSV file.
        class_names: names of the classes by id; the first is the background.
        allow_missing_keys: skip a key that is absent.

    Raises:
        ValueError: ``class_names`` has fewer than two names; on call: the map holds a class without a name, its affine spans
            no volume, or the file on disk has other columns.

    Example:
        >>> import tempfile
        >>> from monai.data import MetaTensor
        >>> mask = MetaTensor(torch.ones(1, 10, 10, 10, dtype=torch.uint8), meta={"filename_or_obj": "ct.nii.gz"})
        >>> path = Path(tempfile.mkdtemp()) / "volumes.csv"
        >>> _ = SaveClassVolumesd("pred", path, ["background", "lesion"])({"pred": mask})
        >>> print(path.read_text().strip())
        image,voxel_volume_mm3,cropped_to,lesion_voxels,lesion_ml,error
        ct.nii.gz,1.0,,1000,1.0,
    """

    def __init__(
        self,
        keys: KeysCollection,
        path: str | os.PathLike[str],
        class_names: Sequence[str] = ("background", "lesion"),
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        if len(class_names) < 2:
            raise ValueError(f"class_names must name the background and at least one class, got {list(class_names)}")
        self.path = Path(path)
        self.class_names = list(class_names)
        self.columns = ["image", "voxel_volume_mm3", "cropped_to"]
        self.columns += [f"{name}_{unit}" for name in self.class_names[1:] for unit in ("voxels", "ml")]
        self.columns += ["error"]

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Write the row of ``data``; pass it through."""
        items = dict(data)
        for key in self.key_iterator(items):
            self._write(self._row(items[key]))
        return items

    def write_error(self, scan: str, reason: str) -> None:
        """Write a row without numbers.

        Args:
            scan: file or folder of the scan.
            reason: why there are none.

        Raises:
            ValueError: the file on disk has other columns.
        """
        self._write({**dict.fromkeys(self.columns, ""), "image": scan, "error": reason})

    def _row(self, mask: Any) -> dict[str, str]:
        scan, volume = scan_of(mask.meta), voxel_volume_mm3(mask.affine.cpu())
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
