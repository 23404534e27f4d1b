"""The choice of outputs as configurations and shells give it, and the files of a failed scan."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from monai.data import MetaTensor

import monai_margincal
from monai_margincal.outputs import Outputs
from monai_margincal.outputs.kind import KINDS
from monai_margincal.outputs.outputs import chosen_kinds

#: what each kind declares: postfix, ending, grid, whether it needs the logits
DECLARED = {
    "mask": ("mask", ".nii.gz", "scan", False),
    "volumes": (None, None, "scan", False),
    "probability": ("probability", ".nii.gz", "scan", True),
    "overlay": ("overlay", ".png", "network", False),
    "frame_film": (None, None, "scan", False),
    "frame_mask": ("mask", ".png", "scan", False),
    "frame_overlay": ("overlay", ".png", "scan", False),
    "dicom_seg": ("seg", ".dcm", "scan", False),
}
#: as messages list them
KNOWN = re.escape(str(sorted(DECLARED)))


def test_the_kinds_and_what_they_declare():
    found = {
        name: (getattr(kind, "postfix", None), getattr(kind, "ending", None), kind.grid, kind.needs_logits)
        for name, kind in KINDS.items()
    }
    assert found == DECLARED


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["mask", "overlay"], ["mask", "overlay"]),  # a configuration, or --outputs "['mask','overlay']"
        (("mask", "overlay"), ["mask", "overlay"]),  # --outputs mask,overlay
        ("overlay", ["overlay"]),  # --outputs overlay
        ("mask, overlay", ["mask", "overlay"]),  # an arguments file
        (["overlay,mask", "mask"], ["overlay", "mask"]),
    ],
)
def test_a_choice_however_it_is_written(given, meant):
    assert chosen_kinds(given) == meant
    assert [output.kind for output in Outputs(given, "out").chosen] == meant


@pytest.mark.parametrize("given", ["", [], (), [""]])
def test_no_output_at_all_is_refused(given):
    with pytest.raises(ValueError, match=rf"kinds of output: found .*expected some of {KNOWN}"):
        Outputs(given, "out")


def test_unknown_names_are_refused_and_the_known_listed():
    known = f"expected some of {KNOWN}"
    with pytest.raises(ValueError, match=f"unknown kind of output 'masks', {known}"):
        Outputs("masks", "out")
    with pytest.raises(ValueError, match=f"unknown kind of output 'True', {known}"):
        Outputs([True], "out")
    with pytest.raises(ValueError, match=f"unknown kind of output 'masc', {known}"):
        Outputs("mask", "out", masc={"postfix": "x"})
    with pytest.raises(TypeError, match="postfixx"):
        Outputs("mask", "out", mask={"postfixx": "x"})
    with pytest.raises(ValueError, match=r"class_names: found \['lesion'\], expected the background and at least one"):
        Outputs("mask", "out", class_names=["lesion"])


def test_logits_are_asked_for_only_where_an_output_needs_them():
    assert not Outputs("mask,volumes,overlay", "out").needs_logits
    assert Outputs("mask,probability", "out").needs_logits


def test_files_of_an_earlier_run_are_set_aside_whatever_it_wrote(tmp_path, caplog):
    """Also those of kinds that this run is not asked for, under the postfix that is configured; other scans' files stay."""
    names = ["ct_seg2.nii.gz", "ct_probability.nii.gz", "ct_overlay.png", "ct_seg.dcm"]
    others = ["ct_mask.nii.gz", "ct2_overlay.png", "volumes.csv"]
    (tmp_path / "x").mkdir()
    for name in names + others:
        (tmp_path / "x" / name).write_text(name)
    outputs = Outputs("mask", tmp_path, data_root_dir="/data", mask={"postfix": "seg2"})
    with caplog.at_level(logging.WARNING):
        outputs.note_failure("/data/x/ct.nii.gz", "damaged")
    found = {path.name: path.read_text() for path in (tmp_path / "x").iterdir()}
    assert found == {**{f"{name}.outdated": name for name in names}, **{name: name for name in others}}
    assert len(caplog.messages) == 4
    outputs.note_failure("in memory", "damaged")


def test_what_this_run_wrote_keeps_its_name(tmp_path):
    """A scan whose DICOM SEG fails has a mask of this run, and perhaps pictures of an earlier one."""
    scan = MetaTensor(torch.ones(1, 2, 2, 2, dtype=torch.uint8), meta={"filename_or_obj": "/data/ct.nii.gz"})
    (tmp_path / "ct_overlay.png").write_text("old")
    outputs = Outputs("mask,probability", tmp_path, data_root_dir="/data")
    outputs.save(outputs.chosen[0], {"pred": scan}, "pred")
    outputs.note_failure("/data/ct.nii.gz", "/data/ct.nii.gz: no probability")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ct_mask.nii.gz", "ct_overlay.png.outdated"]
    Outputs("mask", tmp_path, data_root_dir="/data").note_failure("/data/ct.nii.gz", "the next run reads nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ct_mask.nii.gz.outdated", "ct_overlay.png.outdated"]


def test_results_are_known_by_place_and_name(tmp_path):
    """Whatever an earlier run wrote, under the postfix that is configured; a scan elsewhere may be called a mask."""
    data = tmp_path / "data"
    for folder in ("out/x", "series", "out2/new"):
        (data / folder).mkdir(parents=True)
    (data / "series" / "IM1").write_text("")
    outputs = Outputs("volumes", data / "out", data_root_dir=data, mask={"postfix": "seg2"})
    names = {
        "out": True,
        "out/x/ct_seg2.nii.gz": True,
        "out/x/ct_probability.nii.gz": True,
        "out/x/ct_seg.dcm": True,
        "out/x/ct_mask.nii.gz": False,
        "out/x/ct.nii.gz": False,
        "x/ct_seg2.nii.gz": False,
        "series": False,
    }
    assert {name: outputs.is_result(data / name) for name in names} == names
    (tmp_path / "link").symlink_to(data / "out")
    assert outputs.is_result(tmp_path / "link" / "ct_seg2.nii.gz")
    assert Outputs("mask", data / "out2" / "new").is_result(data / "out2"), "a folder of nothing but results"
    assert not Outputs("mask", data / "series" / "new").is_result(data / "series"), "a series with results in it"


EXTENT = '''
"""The extent: along which slices a scan has foreground."""

from __future__ import annotations

from monai_margincal.files import write_text

from ..kind import ScanFile


class Extent(ScanFile):
    """``NAME_extent.txt``: the first and the last slice with foreground."""

    kind = "extent"
    postfix = "extent"
    ending = ".txt"

    def save(self, items, key):
        slices = items[key].as_tensor().any(dim=(0, 1, 2)).nonzero().flatten().tolist()
        write_text(self.path(items[key].meta), f"{slices[0]} {slices[-1]}\\n")
'''


def test_a_new_output_is_a_module_and_a_word_in_the_configuration(tmp_path):
    """In a copy of the package: nothing else is touched, and the shipped bundle writes it."""
    package = Path(monai_margincal.__file__).parent
    copy = shutil.copytree(package, tmp_path / "monai_margincal", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "outputs" / "kinds" / "extent.py").write_text(EXTENT)
    bundle = package.parent / "bundles" / "covid19_ct_lesion_coplenet"
    line = [sys.executable, "-m", "monai.bundle", "run", "--config_file", str(bundle / "configs" / "inference.json")]
    flags = {"bundle_root": bundle, "cases": "lung2", "outputs": "extent", "output_dir": "eval", "num_workers": "0"}
    for key, value in flags.items():
        line += [f"--{key}", str(value)]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = [path for path in (tmp_path / "eval").rglob("*") if path.is_file()]
    assert written.name == "lung2_extent.txt"
    first, last = map(int, written.read_text().split())
    assert 0 <= first < last < 24
