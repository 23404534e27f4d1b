"""Image/label folders: paired by case name, or refused with the names that do not pair."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import DataLoader, Dataset
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, Orientationd, RandCropByLabelClassesd, Spacingd
from shared import SHARED, needs_shared

from monai_margincal.datasets import folder_datalist
from monai_margincal.formats import IMAGE_SUFFIXES
from monai_margincal.samples import sample_dir


def make(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.touch()
    return root


def pairs(data):
    return [(item["case"], Path(item["image"]).name, Path(item["label"]).name) for item in data]


def test_pairs_by_name_when_positions_disagree(tmp_path):
    """Sorted by position these would pair a.nii with a_2.nrrd: '.' sorts before '_'."""
    make(tmp_path, "images/a.nii", "images/a_2.nii", "labels/a-seg.nrrd", "labels/a_2-seg.nrrd")
    data = folder_datalist(tmp_path, "images/{case}.nii", "labels/{case}-seg.nrrd")
    assert pairs(data) == [("a", "a.nii", "a-seg.nrrd"), ("a_2", "a_2.nii", "a_2-seg.nrrd")]
    assert all(Path(item[key]).is_absolute() for item in data for key in ("image", "label"))


@pytest.mark.parametrize("ending", [*IMAGE_SUFFIXES, ".NII.GZ"])
def test_any_known_ending(tmp_path, ending):
    make(
        tmp_path,
        f"images/case.1{ending}",
        "labels/case.1.nii.gz",
        "images/._case.1.nii.gz",
        "images/notes.txt",
        "images/sub/",
    )
    (item,) = folder_datalist(tmp_path)
    assert (item["case"], Path(item["image"]).name) == ("case.1", f"case.1{ending}")


def test_a_header_with_its_data_file_is_one_image(tmp_path):
    make(tmp_path, "images/a.mhd", "images/a.raw", "images/b.nhdr", "images/b.raw.gz")
    assert [item["case"] for item in folder_datalist(tmp_path, label=None)] == ["a", "b"]


def test_one_flat_folder_and_one_folder_per_case(tmp_path):
    make(
        tmp_path,
        "lung1_image.nrrd",
        "lung1_label.nrrd",
        "p1/ct.nii.gz",
        "p1/seg.nii.gz",
        "p2/ct.nii.gz",
        "p2/seg.nii.gz",
    )
    assert pairs(folder_datalist(tmp_path, "{case}_image.nrrd", "{case}_label.nrrd")) == [
        ("lung1", "lung1_image.nrrd", "lung1_label.nrrd")
    ]
    assert [item["case"] for item in folder_datalist(tmp_path, "{case}/ct.*", "{case}/seg.nii.gz")] == ["p1", "p2"]


def test_folders_of_dicom_files(tmp_path):
    """A template without an ending stands for folders; names of series hold dots."""
    make(tmp_path, "scans/1.2.840.1/a", "scans/1.2.840.2/b", "scans/README", "scans/.cache/x")
    data = folder_datalist(tmp_path, "scans/{case}", label=None)
    assert [item["case"] for item in data] == ["1.2.840.1", "1.2.840.2"]
    assert all(Path(item["image"]).is_dir() for item in data)
    assert "label" not in data[0]


@pytest.mark.parametrize(
    "template", ["{case}/CT 1.2.840.7", "{case}/1.2.840", "{case}/series.v2", "v1.0/{case}.dicom", "v1.0/CT.{case}"]
)
def test_folders_whose_names_hold_dots(tmp_path, template):
    """Also folders of one fixed name in the folder of each case."""
    for case in ("p1", "p2"):
        make(tmp_path, f"{template.format(case=case)}/IM0")
    data = folder_datalist(tmp_path, template, label=None)
    assert [(item["case"], Path(item["image"]).is_dir()) for item in data] == [("p1", True), ("p2", True)]


def test_a_known_ending_stands_for_files_alone(tmp_path):
    make(tmp_path, "a.nii", "b.nii/IM0", "c.mgz", "d.NII")
    assert [item["case"] for item in folder_datalist(tmp_path, "{case}.nii", label=None)] == ["a"]
    assert [item["case"] for item in folder_datalist(tmp_path, "{case}.mgz", label=None)] == ["c"]


def test_names_are_taken_literally(tmp_path):
    make(tmp_path, "im[1]/a*b.nii", "im[1]/c.nii", "im1/d.nii")
    assert [item["case"] for item in folder_datalist(tmp_path, "im[1]/{case}.nii", None)] == ["a*b", "c"]


def test_cases_choose_and_order(tmp_path):
    make(tmp_path, *(f"images/{i}.nii" for i in range(12)), *(f"labels/{i}.nii" for i in range(11)))
    assert [item["case"] for item in folder_datalist(tmp_path, cases=[10, "2", 1])] == ["10", "2", "1"]
    with pytest.raises(FileNotFoundError, match=r"no label for the cases 11: .*labels/\{case\}\.\*"):
        folder_datalist(tmp_path, cases=["11"])
    with pytest.raises(FileNotFoundError, match="no image for the cases x, y"):
        folder_datalist(tmp_path, cases=["1", "x", "y"])
    with pytest.raises(ValueError, match="`cases` is an empty list"):
        folder_datalist(tmp_path, cases=[])
    with pytest.raises(ValueError, match="more than once: 1"):
        folder_datalist(tmp_path, cases=["1", 1])


def test_relative_root_and_home(tmp_path, monkeypatch):
    make(tmp_path, "data/images/a.nii", "data/labels/a.nii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder_datalist("data") == folder_datalist("~/data") == folder_datalist(tmp_path / "data")


def test_missing_folder_is_named(tmp_path):
    """model-zoo pull 789: a wrong dataset_dir did nothing and exited 0."""
    with pytest.raises(FileNotFoundError, match=f"data set folder not found: {tmp_path}/nowhere"):
        folder_datalist(tmp_path / "nowhere")


def test_nothing_that_fits_names_folder_and_pattern(tmp_path):
    make(tmp_path, "imagesTr/a.nii.gz")
    with pytest.raises(
        FileNotFoundError, match=rf"no image found: nothing in {tmp_path} fits the pattern 'images/{{case}}\.\*'"
    ):
        folder_datalist(tmp_path)
    make(tmp_path, "images/a.nii.gz")
    with pytest.raises(
        FileNotFoundError, match=rf"no label found: nothing in {tmp_path} fits the pattern 'labels/{{case}}\.\*'"
    ):
        folder_datalist(tmp_path)


def test_unpaired_files_are_named(tmp_path):
    make(tmp_path, *(f"images/{name}.nii" for name in "abc"), *(f"labels/{name}.nii" for name in "bcdef"))
    with pytest.raises(
        ValueError, match=r"do not pair up: no label .* for the images images/a\.nii; no image .* labels labels/d\.nii"
    ):
        folder_datalist(tmp_path)


def test_hundreds_of_unpaired_files_stay_readable(tmp_path):
    make(tmp_path, "labels/z.nii", *(f"images/{i:03}.nii" for i in range(300)))
    with pytest.raises(ValueError, match="and 290 more") as raised:
        folder_datalist(tmp_path)
    assert len(str(raised.value)) < 1000


def test_two_files_for_one_case_are_named(tmp_path):
    make(tmp_path, "images/a.nii", "images/a.nii.gz", "images/b.nii", "labels/a.nii", "labels/b.nii")
    with pytest.raises(ValueError, match=r"more than one image .* images/a\.nii, images/a\.nii\.gz"):
        folder_datalist(tmp_path)
    assert pairs(folder_datalist(tmp_path, cases=["b"])) == [("b", "b.nii", "b.nii")]


@pytest.mark.parametrize("template", ["images/*.nii", "{case}/{case}.nii", "", "/data/{case}.nii"])
def test_bad_templates_are_refused(tmp_path, template):
    make(tmp_path, "images/a.nii")
    with pytest.raises(ValueError, match=r"image pattern must be a relative path that holds \{case\} exactly once"):
        folder_datalist(tmp_path, template, None)


@settings(deadline=None, max_examples=40)
@given(
    names=st.sets(
        st.text("ab1._-[]", min_size=1, max_size=6).filter(lambda name: not name.startswith(".")), min_size=1
    ),
    template=st.sampled_from(["images/{case}.*", "images/{case}.nii.gz", "x_{case}_ct.nii.gz", "{case}/scan.nii.gz"]),
)
def test_every_name_comes_back(tmp_path_factory, names, template):
    root = tmp_path_factory.mktemp("names")
    make(root, *(template.replace("{case}", name).replace(".*", ".nii.gz") for name in names))
    assert [item["case"] for item in folder_datalist(root, template, None)] == sorted(names)


def test_the_case_name_passes_transforms_and_collation():
    """No key of a data list may begin with ``image_`` or ``label_``: Spacingd and others take such keys for metadata."""
    data = folder_datalist(sample_dir("lung_ct"))
    assert not [key for item in data for key in item if key.startswith(("image_", "label_"))]
    keys = ["image", "label"]
    transform = Compose(
        [
            LoadImaged(keys),
            EnsureChannelFirstd(keys),
            Orientationd(keys, axcodes="RAS", labels=(("L", "R"), ("P", "A"), ("I", "S"))),
            Spacingd(keys, pixdim=(2.0, 2.0, 5.0), mode=("bilinear", "nearest")),
            RandCropByLabelClassesd(keys, "label", (32, 32, 1), num_classes=2, num_samples=2),
        ]
    )
    (batch,) = DataLoader(Dataset(data, transform), batch_size=2)
    assert batch["case"] == ["lung1", "lung1", "lung2", "lung2"]
    assert batch["image"].shape == torch.Size([4, 1, 32, 32, 1])


@needs_shared
def test_real_folders():
    lung = folder_datalist(SHARED / "data" / "lung_ct", "{case}_image.nrrd", "{case}_label.nrrd")
    assert pairs(lung) == [(f"lung{i}", f"lung{i}_image.nrrd", f"lung{i}_label.nrrd") for i in (1, 2)]
    series = folder_datalist(SHARED / "data" / "dicom", "monai_ct_dicom/{case}", None)
    assert [item["case"] for item in series] == ["CT_DICOM"]
    with pytest.raises(ValueError, match=r"no image of the pattern .* for the labels"):
        folder_datalist(SHARED / "data" / "hippocampus_mr")


def test_templates_combine_with_every_layout(tmp_path):
    for i, (image, label) in enumerate(
        itertools.product(["im/{case}.*", "{case}-im.mha"], ["lb/{case}.*", "{case}/lb.nii"])
    ):
        root = make(
            tmp_path / str(i), *(t.replace("{case}", c).replace(".*", ".nrrd") for c in "xy" for t in (image, label))
        )
        assert [item["case"] for item in folder_datalist(root, image, label)] == ["x", "y"]


def test_what_is_no_path_no_pattern_or_one_name(tmp_path):
    """In a configuration, where nobody has typed it; names may be numbers, and one needs no list."""
    make(tmp_path, "images/7.nii", "images/True.nii")
    with pytest.raises(TypeError, match="data set folder: found 2025, expected a path"):
        folder_datalist(2025)
    with pytest.raises(TypeError, match=r"the image pattern: found \{'case'\}, expected a text that holds \{case\}"):
        folder_datalist(tmp_path, {"case"})
    for cases in (7, "7", [7], ("7",)):
        assert [item["case"] for item in folder_datalist(tmp_path, label=None, cases=cases)] == ["7"]
    assert [item["case"] for item in folder_datalist(tmp_path, label=None, cases=True)] == ["True"]


def test_a_pattern_may_begin_in_the_folder_itself(tmp_path):
    make(tmp_path, "a.nii", "labels/a.nii", "%b/c.nii")
    assert pairs(folder_datalist(tmp_path, "./{case}.*", "./labels/{case}.*")) == [("a", "a.nii", "a.nii")]
    assert folder_datalist(tmp_path, "./%b/{case}.nii", None)[0]["case"] == "c"


def test_groups_of_a_folder(tmp_path):
    make(
        tmp_path,
        *(f"{kind}/{case}.nii" for kind in ("images", "labels") for case in ("p1_left", "p1_right", "p2_left")),
    )
    (tmp_path / "cases.csv").write_text("case,age,patient\np1_left,5,01\np1_right,5,01\np2_left,7,02\nmore,7,03\n")
    asked = (
        {"groups": tmp_path / "cases.csv"},
        {"groups": str(tmp_path / "cases.csv"), "group_column": "patient"},
        {"groups": {"p1_left": "01", "p1_right": "01", "p2_left": "02"}},
    )
    for given_groups in asked:
        assert [item["group"] for item in folder_datalist(tmp_path, **given_groups)] == ["01", "01", "02"]
    by_pattern = folder_datalist(tmp_path, label=None, cases="p2_left", group_pattern="{group}_*")
    assert [(item["case"], item["group"]) for item in by_pattern] == [("p2_left", "p2")]
    (tmp_path / "cases.csv").write_text("case,patient\np1_left,01\n")
    with pytest.raises(
        ValueError, match=r"cases.csv: found no group for 'p1_right', 'p2_left', expected one for every case"
    ):
        folder_datalist(tmp_path, groups=tmp_path / "cases.csv")


def test_a_folder_for_each_patient(tmp_path):
    files = [f"{p}/{scan}/{kind}.nii.gz" for p in ("p1", "p2") for scan in ("a", "b") for kind in ("ct", "lesion")]
    make(tmp_path, *files, "p2/b.x/ct.nii", "p3/notes.txt", ".p/a/ct.nii.gz", "p1/.a/ct.nii.gz")
    data = folder_datalist(tmp_path, "{group}/{case}/ct.nii.gz", "{group}/{case}/lesion.nii.gz")
    assert [(item["case"], item["group"]) for item in data] == [
        ("p1/a", "p1"),
        ("p1/b", "p1"),
        ("p2/a", "p2"),
        ("p2/b", "p2"),
    ]
    assert data[3]["label"] == f"{tmp_path}/p2/b/lesion.nii.gz"
    one = folder_datalist(tmp_path, "{group}/{case}/ct.*", None, cases=["p2/b.x"])
    assert [(Path(item["image"]).name, item["group"]) for item in one] == [("ct.nii", "p2")]
    series = folder_datalist(tmp_path, "{group}/{case}", None)
    assert [item["case"] for item in series] == ["p1/a", "p1/b", "p2/a", "p2/b", "p2/b.x"]


def test_a_patient_in_the_name_of_a_file(tmp_path):
    make(tmp_path, *(f"{name}_{kind}.nii" for name in ("v_1_001", "v_1_002", "v_2_001") for kind in ("image", "label")))
    data = folder_datalist(tmp_path, "{group}_{case}_image.nii", "{group}_{case}_label.nii")
    assert [(item["group"], item["case"]) for item in data] == [
        ("v_1", "v_1/001"),
        ("v_1", "v_1/002"),
        ("v_2", "v_2/001"),
    ]
    turned = folder_datalist(tmp_path, "v_{case}_{group}_image.nii", None)
    assert [(item["group"], item["case"]) for item in turned] == [("001", "001/1"), ("001", "001/2"), ("002", "002/1")]
    with pytest.raises(
        ValueError, match=r"\['{group}_{case}_image.nii', '{case}_label.nii'\]: found {group} in one of them"
    ):
        folder_datalist(tmp_path, "{group}_{case}_image.nii", "{case}_label.nii")
    with pytest.raises(
        ValueError, match=r"holds {case} exactly once and {group} at most once, found '{group}/{group}/{case}'"
    ):
        folder_datalist(tmp_path, "{group}/{group}/{case}", None)
    with pytest.raises(ValueError, match="case 'v_1/001' in the group 'v_1', expected 'x', as the table says"):
        folder_datalist(tmp_path, "{group}_{case}_image.nii", None, groups={item["case"]: "x" for item in data})
