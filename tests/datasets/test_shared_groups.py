"""Groups on both sides: known ones are errors, suspected ones warnings, and ordinary numbering is neither."""

from __future__ import annotations

import itertools
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared import SHARED, needs_shared

from monai_margincal.datasets import assign_groups, find_shared_groups, split_datalist, warn_of_shared_groups
from monai_margincal.datasets.shared_groups import suggested_group


def parts_of(names, share=0.3):
    return split_datalist([{"case": name} for name in sorted(names)], {"training": None, "validation": share})


@pytest.mark.parametrize(
    ("case", "group"),
    [
        ("LIDC-IDRI-0004_R_1", "LIDC-IDRI-0004"),
        ("LIDC-IDRI-0004_nod1", "LIDC-IDRI-0004"),
        ("patient1_seq2_0089", "patient1_seq2"),
        ("patient2_seq5_0001_l", "patient2_seq5"),
        ("sub-01_ses-2_T1w", "sub-01"),
        ("BraTS19_TCIA01_147_1", "BraTS19_TCIA01_147"),
        ("pat 3 slice 7", "pat 3"),
        ("Säugling1_2", "Säugling1"),
        ("1.2.840.10008_3", "1.2.840.10008"),
        ("hippocampus_001", None),
        ("IDRiD_01", None),
        ("case_001", None),
        ("lung1", None),
        ("spleen_8_image", None),
        ("BraTS2021_00012", None),
        ("case_2023_001", None),
        ("20230105_7", None),
        ("1.3.6.1.4.1.14519.5.2.1.6279.6001", None),
        ("a1b2c3d4_e5f6a7", None),
        ("", None),
    ],
)
def test_what_a_name_suggests(case, group):
    assert suggested_group(case) == group


@given(
    before=st.text("abcXYZ_- ", max_size=12),
    numbers=st.lists(st.integers(0, 10**6), min_size=2, max_size=30, unique=True),
    after=st.text("abcXYZ_- ", max_size=6),
)
def test_one_number_is_never_a_finding(before, numbers, after):
    data = [{"case": f"{before}{number}{after}"} for number in numbers]
    assert find_shared_groups({"training": data[::2], "validation": data[1::2]}) == []


@given(
    patients=st.sets(st.integers(0, 999), min_size=2, max_size=9),
    between=st.sampled_from(["_", "-", "_R_", " slice ", "_nod", "-ses-"]),
)
def test_the_same_two_scans_of_each_patient_always_are(patients, between):
    parts = {
        part: [{"case": f"P{patient:03}{between}{scan}"} for patient in patients] for scan, part in enumerate("ab")
    }
    (found,) = find_shared_groups(parts)
    first = f"P{min(patients):03}"
    assert found.files == (f"{first}{between}0", f"{first}{between}1")
    assert f"the group {first!r}" in found.message
    assert f"and {len(patients) - 1} more in two parts" in found.message


@pytest.mark.parametrize(
    "names",
    [
        [f"case_{index:03}" for index in range(1, 40)],
        [f"hippocampus_{index:03}" for index in range(1, 40)],
        [f"Task04_hippocampus_{index:03}" for index in range(1, 40)],  # one data set
        [f"BraTS2021_{index:05}" for index in range(40)] + [f"BraTS2020_{index:05}" for index in range(40)],
        [f"LIDC-IDRI-{index:04}_nod1" for index in range(40)],  # one each
        [str(index) for index in range(40)],
        ["lung1", "lung2"],
        [chr(97 + index) for index in range(20)],
    ],
    ids=lambda names: names[0],
)
def test_ordinary_numbering_is_no_finding(names):
    assert find_shared_groups(parts_of(names)) == []


@pytest.mark.parametrize(
    "names",
    [
        [f"LIDC-IDRI-{patient:04}_R_{nodule}" for patient in range(9) for nodule in range(1, 1 + patient % 3)],
        [f"patient{p}_seq{s}_{frame:04}" for p, s, frame in itertools.product((1, 2), (1, 2), range(9))],
        [f"sub-{subject:02}_ses-{session}_T1w" for subject in range(9) for session in (1, 2)],
    ],
    ids=lambda names: names[0],
)
def test_frames_and_repeated_scans_are(names):
    found = find_shared_groups(parts_of(names, 0.4))
    assert [(finding.severity, finding.kind) for finding in found] == [("warning", "group in two parts")]
    assert "expected every group (patient, film) in one part: say the groups with `groups` or `group_pattern`" in str(
        found[0]
    )
    grouped = assign_groups([{"case": name} for name in names], group_pattern="{group}_*")
    assert find_shared_groups(split_datalist(grouped, {"training": None, "validation": 0.4})) == []


def test_known_groups_count_and_not_the_names():
    names = ["p_1_1", "p_1_2", "p_2_1"]
    parts = {"training": [{"case": "p_1_1", "group": "x"}], "validation": [{"case": "p_1_2", "group": "y"}]}
    assert find_shared_groups(parts) == []
    parts["test"] = [{"case": "p_2_1", "group": "x"}]
    (found,) = find_shared_groups(parts)
    assert (found.severity, found.files) == ("error", ("p_1_1", "p_2_1"))
    assert (
        found.message
        == "found the group 'x' in 'training' ('p_1_1') and in 'test' ('p_2_1'), expected every group in one part"
    )
    with pytest.raises(ValueError, match="group_pattern"):
        assign_groups([{"case": name} for name in names], group_pattern="q{group}")


def test_names_of_files_where_no_case_is_named():
    parts = {
        "training": [{"image": "/a/v1_1.png"}, {"image": "/a/v2_1.png"}],
        "validation": [{"image": "/a/v1_2.png", "label": "/l/x.png"}],
    }
    assert find_shared_groups(parts)[0].files == ("v1_1", "v1_2")


def test_the_warning_names_the_line_that_splits():
    def split():
        warn_of_shared_groups({"a": [{"case": "p_1_1"}, {"case": "p_2_1"}], "b": [{"case": "p_1_2"}]})

    expected = r"names that suggest the group 'p_1' in 'a' \('p_1_1'\) and in 'b' \('p_1_2'\)"
    with pytest.warns(UserWarning, match=expected) as caught:
        split()
    assert caught[0].lineno == sys._getframe().f_lineno - 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_shared_groups(parts_of([f"case_{index}" for index in range(9)]))


@needs_shared
@pytest.mark.parametrize(
    ("folder", "suspected"),
    [
        ("lidc_nodules", True),  # several nodules of a patient
        ("vocalfolds", True),  # frames of a film
        ("lidc_cubes", False),  # one nodule each
        ("hippocampus_mr", False),
        ("idrid_lesions", False),
        ("lung_ct", False),
    ],
)
def test_real_data(folder, suspected):
    images = SHARED / "data" / folder
    images = images / "images" if (images / "images").is_dir() else images
    names = {path.name.split(".")[0] for path in images.iterdir() if path.suffix in (".gz", ".png")}
    assert len(names) > 1
    assert bool(find_shared_groups(parts_of(names))) == suspected
