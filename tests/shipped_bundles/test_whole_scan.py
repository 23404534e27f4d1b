"""The bundle on a whole scan as hospitals have it: 512 x 512 x 61, NRRD, axes towards left and posterior."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import SimpleITK
from metrics_rows import last_metrics
from monai.data.utils import orientation_ras_lps
from shared import SHARED, needs_shared

PATTERNS = {"image_pattern": "{case}_image.nrrd", "label_pattern": "{case}_label.nrrd"}

#: the narrowest network that group norm with 4 groups allows, so that 61 slices of 512 x 512 take seconds on a CPU
NARROW = {"features": [8, 16, 32, 64, 128]}


@needs_shared
@pytest.mark.slow
def test_train_evaluate_and_infer_on_a_whole_scan(command, tmp_path):
    data = SHARED / "data" / "lung_ct"
    given = {**PATTERNS, **NARROW, "dataset_dir": data}
    trained = command(
        tmp_path,
        ("train",),
        **given,
        train_cases="lung2",
        val_cases="lung1",
        epochs=3,
        val_interval=3,
        cache_rate=1.0,
        patch_size=[192, 192],
        learning_rate=0.001,
    )
    assert trained.output.count("train_loss: ") == 3
    assert '"counts": [\n  15966140,\n  24644\n ]' in (tmp_path / "eval" / "class_counts.json").read_text()

    del given["label_pattern"]
    command(tmp_path, ("inference",), **given, sw_batch_size=4, cases="lung2", output_dir="masks")
    mask = nibabel.load(tmp_path / "masks" / "lung2_image_mask.nii.gz")
    scan = SimpleITK.ReadImage(str(data / "lung2_image.nrrd"))
    assert mask.shape == scan.GetSize() == (512, 512, 61)
    assert mask.get_data_dtype() == np.uint8
    lps = np.eye(4)
    lps[:3, :3] = np.reshape(scan.GetDirection(), (3, 3)) @ np.diag(scan.GetSpacing())
    lps[:3, 3] = scan.GetOrigin()
    assert np.abs(mask.affine - orientation_ras_lps(lps)).max() < 1e-4
    again = SimpleITK.ReadImage(str(tmp_path / "masks" / "lung2_image_mask.nii.gz"))
    assert again.GetPixelID() == SimpleITK.sitkUInt8
    assert again.GetSize() == scan.GetSize()
    for part in ("GetOrigin", "GetSpacing", "GetDirection"):
        assert np.allclose(getattr(again, part)(), getattr(scan, part)(), atol=1e-4), part
    marked = np.asarray(mask.dataobj) == 1
    assert marked.any()

    command(tmp_path, ("train", "evaluate"), **given, label_pattern=PATTERNS["label_pattern"], val_cases="lung2")
    metrics = last_metrics(tmp_path / "eval" / "metrics.csv")
    truth = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(data / "lung2_label.nrrd"))).T == 1
    assert metrics["val_iou"] == pytest.approx((marked & truth).sum() / (marked | truth).sum(), abs=1e-12)
