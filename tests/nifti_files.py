"""NIfTI files whose headers say in different ways, or in contradiction, where their voxels lie."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np

SHAPE = (9, 8, 4)
STRAIGHT = np.diag([-0.7, -0.7, 5.0, 1.0])
SHIFTED = STRAIGHT.copy()
SHIFTED[:3, 3] = 5, 7, 9
_C, _S = np.cos(0.35), np.sin(0.35)
TURNED = np.array([[_C, -_S, 0, -10], [_S, _C, 0, 20], [0, 0, 1, -300], [0, 0, 0, 1]]) @ STRAIGHT
TILTED = TURNED + np.array([[0, 0, 0.4, 0]] + [[0] * 4] * 3)
METRES = TURNED.copy()
METRES[:3] /= 1000
MICROMETRES = TURNED.copy()
MICROMETRES[:3] *= 1000

#: name -> sform and its code, qform and its code, pixdim, unit of length, the affine in mm that the standard gives
GEOMETRIES = {
    "both alike": ((STRAIGHT, 1), (STRAIGHT, 1), None, "mm", STRAIGHT),
    "sform alone, pixdim 1": ((STRAIGHT, 2), (None, 0), (1, 1, 1), "mm", STRAIGHT),
    "sform alone, three digits": ((TURNED.round(3), 1), (None, 0), (0.7, 0.7, 5), "mm", TURNED.round(3)),
    "sform alone, tilted": ((TILTED, 1), (None, 0), (0.7, 0.7, 5), "mm", TILTED),
    "sform before qform": ((STRAIGHT, 1), (SHIFTED, 1), None, "mm", STRAIGHT),
    "sform of a template": ((TURNED, 4), (STRAIGHT, 1), None, "mm", TURNED),
    "sform turned, qform aligned": ((TURNED, 3), (SHIFTED, 2), None, "mm", TURNED),
    "qform alone": ((None, 0), (TURNED, 1), None, "mm", TURNED),
    "qform, code of sform 0": ((SHIFTED, 0), (TURNED, 2), None, "mm", TURNED),
    "metres": ((METRES, 1), (None, 0), None, "meter", TURNED),
    "metres in the qform": ((None, 0), (METRES, 1), None, "meter", TURNED),
    "micrometres": ((MICROMETRES, 1), (None, 0), None, "micron", TURNED),
    "no unit": ((TURNED, 1), (TURNED, 1), None, "unknown", TURNED),
}


def save_nifti(path: Path, name: str, voxels: np.ndarray | None = None, header=nibabel.Nifti1Image) -> np.ndarray:
    """Write the file of a geometry; the affine in mm that it has."""
    (sform, sform_code), (qform, qform_code), pixdim, unit, expected = GEOMETRIES[name]
    voxels = np.arange(np.prod(SHAPE), dtype=np.int16).reshape(SHAPE) if voxels is None else voxels
    image = header(voxels, None)
    image.header.set_xyzt_units(unit)
    image.header.set_qform(qform, qform_code)
    image.header.set_sform(sform, sform_code)
    if qform is None:
        zooms = np.linalg.norm(sform[:3, :3], axis=0) if pixdim is None else pixdim
        image.header["pixdim"][1:4] = zooms
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(image, path)
    return expected
