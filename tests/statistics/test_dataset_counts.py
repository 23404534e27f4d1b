"""`count_labels` over every kind of data, with workers, transforms, caches and faults."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import torch
from monai.data import CacheDataset, DataLoader, Dataset
from monai.transforms import (
    Compose,
    EnsureChannelFirstd,
    Lambdad,
    LoadImaged,
    RandCropByPosNegLabeld,
    RandSpatialCropd,
    ScaleIntensityd,
    Spacingd,
)
from shared import SHARED, needs_shared

import monai_margincal
from monai_margincal.statistics import count_labels, scan_labels

LOAD = [LoadImaged("label"), EnsureChannelFirstd("label")]


def volume(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 3, (12, 10, 8)).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for case in range(6):
        nib.save(nib.Nifti1Image(volume(case), np.diag([-1.0, 1.0, 2.0, 1.0])), tmp_path / f"case_{case}.nii.gz")
    return tmp_path


TRUTH = {f"case_{case}": tuple(np.bincount(volume(case).ravel(), minlength=3).tolist()) for case in range(6)}
TOTAL = np.array(list(TRUTH.values())).sum(axis=0).tolist()


def data_list(folder: Path) -> list[dict[str, str]]:
    return [{"label": str(path)} for path in sorted(folder.glob("*.nii.gz"))]


@pytest.mark.parametrize("kind", ["pattern", "paths", "strings", "list", "one-element lists"])
def test_files_in_every_form(folder: Path, kind: str) -> None:
    paths = sorted(folder.glob("*.nii.gz"))
    data: Any = {
        "pattern": f"{folder}/*.nii.gz",
        "paths": paths,
        "strings": [str(path) for path in paths],
        "list": data_list(folder),
        "one-element lists": [{"label": [path]} for path in paths],
    }[kind]
    counts = count_labels(data, num_classes=3)
    assert dict(counts.cases or {}) == TRUTH
    assert counts.counts.tolist() == TOTAL
    assert counts.counts.dtype == np.int64
    assert counts.source == "raw label files"


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_neither_workers_nor_order_matter(folder: Path, num_workers: int) -> None:
    """pytorch/issues/98316: identical for any worker count and file order."""
    items = data_list(folder)
    random.Random(num_workers).shuffle(items)
    assert count_labels(items, num_classes=3, num_workers=num_workers) == count_labels(data_list(folder), num_classes=3)


def test_single_file_and_named_key(folder: Path) -> None:
    assert count_labels(folder / "case_1.nii.gz").counts.tolist() == list(TRUTH["case_1"])
    assert count_labels([{"mask": folder / "case_1.nii.gz"}], key="mask").cases == {"case_1": TRUTH["case_1"]}


def test_paths_in_lists_of_one_are_paths(folder: Path) -> None:
    """The image and the annotated ids of a case are found again, however its label is named."""
    plain = [{"label": str(folder / "case_0.nii.gz"), "image": "t1.nii", "drawn": [0, 1, 2]}]
    listed = [{**plain[0], "label": [plain[0]["label"]], "image": ["t1.nii"]}]
    first, second = (scan_labels(data, num_classes=3, annotated_key="drawn") for data in (plain, listed))
    assert first == second
    assert second.cases[0].annotated == (0, 1, 2)
    assert second.images == {plain[0]["label"]: "t1.nii"}


def test_the_classes_get_their_names(folder: Path) -> None:
    assert count_labels(data_list(folder), num_classes=3, names=["nothing", "organ", "lesion"]).labels == (
        "0 nothing",
        "1 organ",
        "2 lesion",
    )
    with pytest.raises(ValueError, match="counts has 3 entries, but names has 2"):
        count_labels(data_list(folder), num_classes=3, names=["nothing", "organ"])


@pytest.mark.parametrize("dataset_type", [Dataset, CacheDataset])
def test_dataset_is_counted_with_its_transforms(folder: Path, dataset_type: Any) -> None:
    options = {"progress": False} if dataset_type is CacheDataset else {}
    dataset = dataset_type(data_list(folder), Compose(LOAD), **options)
    counts = count_labels(dataset, num_classes=3)
    assert dict(counts.cases or {}) == TRUTH
    assert counts.source == "after LoadImaged -> EnsureChannelFirstd"


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_dataloader_is_counted_batch_by_batch(folder: Path, num_workers: int, batch_size: int) -> None:
    loader = DataLoader(
        Dataset(data_list(folder), Compose(LOAD)), batch_size=batch_size, num_workers=num_workers, shuffle=True
    )
    assert dict(count_labels(loader, num_classes=3).cases or {}) == TRUTH


def test_plain_torch_loader_and_pairs() -> None:
    pairs = [(torch.zeros(1, 4), torch.tensor([[k % 3, 1, 1, 2]])) for k in range(5)]
    expected = [2, 12, 6]
    assert count_labels(pairs, num_classes=3).counts.tolist() == expected
    assert count_labels(torch.utils.data.DataLoader(pairs, batch_size=2), num_classes=3).counts.tolist() == expected


def test_arrays_in_a_data_list() -> None:
    data = [{"label": volume(0)[None]}, {"label": torch.from_numpy(volume(1))[None]}]
    counts = count_labels(data, num_classes=3)
    assert counts.cases == {"item_00000": TRUTH["case_0"], "item_00001": TRUTH["case_1"]}
    assert counts.source == "labels as the data set gives them"


def test_crops_of_one_volume_count_together(folder: Path) -> None:
    """DAFormer/pull/8: what a crop pipeline leaves is not what the files hold, and the result says so."""
    crop = RandCropByPosNegLabeld("label", "label", (4, 4, 4), num_samples=3)
    counts = count_labels(data_list(folder), num_classes=3, transform=Compose([*LOAD, crop]))
    assert counts.total == 6 * 3 * 64
    assert set(counts.cases or {}) == set(TRUTH)
    assert counts.source == "after LoadImaged -> EnsureChannelFirstd -> RandCropByPosNegLabeld (random, seed 0)"


@pytest.mark.parametrize("as_dataset", [False, True])
def test_random_transforms_depend_on_the_seed_alone(folder: Path, as_dataset: bool) -> None:
    chain = Compose([*LOAD, RandSpatialCropd("label", (5, 5, 5), random_size=False)])
    chain.set_random_state(7)
    state = chain.transforms[2].R.get_state()[1].tolist()

    def count(seed: int) -> Any:
        if as_dataset:
            return count_labels(Dataset(data_list(folder), chain), num_classes=3, seed=seed)
        return count_labels(data_list(folder), num_classes=3, transform=chain, seed=seed)

    assert count(1) == count(1)
    assert count(1).counts.tolist() != count(2).counts.tolist()
    # the caller's own transform draws on as if nothing had been counted
    assert chain.transforms[2].R.get_state()[1].tolist() == state


def test_spacing_changes_the_counts_and_the_source(folder: Path) -> None:
    chain = Compose([*LOAD, Spacingd("label", (2.0, 2.0, 2.0), mode="nearest")])
    counts = count_labels(data_list(folder), num_classes=3, transform=chain)
    assert counts.total == 6 * 6 * 5 * 8 or counts.total < sum(TOTAL)
    assert counts.source == "after LoadImaged -> EnsureChannelFirstd -> Spacingd"
    record = scan_labels(data_list(folder), num_classes=3, transform=chain).cases[0]
    assert record.voxel_volume == pytest.approx(8.0)


@pytest.mark.slow
def test_workers_of_a_transform_chain_are_spawned(folder: Path) -> None:
    chain = Compose([*LOAD, RandSpatialCropd("label", (5, 5, 5), random_size=False)])
    alone = count_labels(data_list(folder)[:3], num_classes=3, transform=chain)
    assert count_labels(data_list(folder)[:3], num_classes=3, transform=chain, num_workers=2) == alone


def run_script(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    script = Path(str(arguments[0])) / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


@pytest.mark.slow
def test_file_workers_need_no_main_guard(folder: Path) -> None:
    """MONAI/issues/7238: the multi-process analyzer dies without the guard; this works."""
    done = run_script(
        """
        import sys
        from monai_margincal.statistics import count_labels
        print(count_labels(sys.argv[1] + "/*.nii.gz", num_classes=3, num_workers=2).counts.tolist())
        """,
        folder,
    )
    assert done.stdout.splitlines() == [str(TOTAL)], done.stderr
    assert done.returncode == 0


@pytest.mark.slow
def test_transform_workers_without_main_guard_say_so(folder: Path) -> None:
    """MONAI/issues/7238: a readable message, and an end."""
    done = run_script(
        """
        import sys
        from pathlib import Path
        from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged
        from monai_margincal.statistics import count_labels
        data = [{"label": str(path)} for path in sorted(Path(sys.argv[1]).glob("*.nii.gz"))]
        chain = Compose([LoadImaged("label"), EnsureChannelFirstd("label")])
        print(count_labels(data, num_classes=3, transform=chain, num_workers=2).counts.tolist())
        """,
        folder,
    )
    assert done.returncode != 0
    assert "put the call under `if __name__ == '__main__':`" in done.stderr.splitlines()[-1]


def test_undeclared_ids_are_the_union(folder: Path) -> None:
    nib.save(nib.Nifti1Image(np.full((2, 2, 2), 517, np.int16), np.eye(4)), folder / "extra.nii.gz")
    counts = count_labels(f"{folder}/*.nii.gz")
    assert counts.ids == (0, 1, 2, 517)
    assert counts.cases["extra"] == (0, 0, 0, 8)  # type: ignore[index]


def test_ignored_voxels_are_counted_apart(folder: Path) -> None:
    counts = count_labels(f"{folder}/*.nii.gz", num_classes=2, ignore_index=2)
    assert counts.counts.tolist() == TOTAL[:2]
    assert counts.ignored == TOTAL[2]
    in_chain = count_labels(data_list(folder), num_classes=2, ignore_index=2, transform=Compose(LOAD))
    assert in_chain.counts.tolist() == TOTAL[:2]
    assert in_chain.ignored == TOTAL[2]


def test_case_of_a_class_that_is_missing_gets_no_share_of_it(folder: Path) -> None:
    """Class ids are ids: a case without class 1 counts 0 for it, and not its neighbour's voxels."""
    nib.save(nib.Nifti1Image(np.full((2, 2, 2), 2, np.uint8), np.eye(4)), folder / "only_2.nii.gz")
    assert count_labels(f"{folder}/*.nii.gz").cases["only_2"] == (0, 0, 8)  # type: ignore[index]


def test_same_file_for_two_images_counts_twice(folder: Path) -> None:
    path = str(folder / "case_0.nii.gz")
    scan = scan_labels([{"image": "t1", "label": path}, {"image": "t2", "label": path}], num_classes=3)
    assert scan.counts.counts.tolist() == [2 * n for n in TRUTH["case_0"]]
    assert scan.cases[0].labels == 2


def test_cases_of_equal_file_names_stay_apart_in_a_transform_chain(tmp_path: Path) -> None:
    items = []
    for case in range(2):
        (tmp_path / f"case_{case}").mkdir()
        path = tmp_path / f"case_{case}" / "seg.nii.gz"
        nib.save(nib.Nifti1Image(volume(case), np.eye(4)), path)
        items.append({"label": str(path)})
    expected = {"case_0/seg": TRUTH["case_0"], "case_1/seg": TRUTH["case_1"]}
    assert count_labels(items, num_classes=3).cases == expected
    assert count_labels(items, num_classes=3, transform=Compose(LOAD)).cases == expected


class _Endless(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Any:
        yield {"label": torch.zeros(1, 3)}


def test_loader_of_an_iterable_data_set() -> None:
    loader = torch.utils.data.DataLoader(_Endless(), batch_size=1)
    assert count_labels(loader, num_classes=2).counts.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], ValueError, "data is empty"),
        (Dataset([]), ValueError, "empty Dataset"),
        ("/nowhere/*.nii.gz", FileNotFoundError, r"/nowhere/\*\.nii\.gz: the pattern matches no file"),
        ("/nowhere/case.nii.gz", FileNotFoundError, "no such file"),
        ([{"label": "/nowhere/case.nii.gz"}], FileNotFoundError, "no such file"),
        ([{"image": "x"}], ValueError, r"data\[0\] has no key 'label', found \['image'\]"),
        ({"label": "x"}, TypeError, "single item"),
        (_Endless(), TypeError, "data is a _Endless without a length, expected a DataLoader over it"),
        (7, TypeError, "data is a int, expected a MONAI data list"),
        ([{"label": ["a.nii", "b.nii"]}], ValueError, "is a list of 2 files"),
        ([{"label": 3}], TypeError, "found int"),
    ],
)
def test_unusable_data(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        count_labels(data, num_classes=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_workers": -1}, ValueError, "num_workers is -1"),
        ({"num_workers": 1.5}, TypeError, "num_workers must be an integer"),
        ({"on_error": "skip"}, ValueError, "on_error is 'skip', expected 'raise' or 'report'"),
        ({"num_classes": 2, "ids": [1]}, ValueError, "num_classes is 2"),
    ],
)
def test_invalid_arguments(folder: Path, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        count_labels(f"{folder}/*.nii.gz", **arguments)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_one_bad_file_stops_the_count_with_its_name(folder: Path, num_workers: int) -> None:
    (folder / "case_3.nii.gz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"case_3\.nii\.gz: found"):
        count_labels(f"{folder}/*.nii.gz", num_classes=3, num_workers=num_workers)


@pytest.mark.parametrize(("num_workers", "in_chain"), [(0, False), (2, False), (0, True)])
def test_bad_files_are_reported_and_left_out_never_silently(folder: Path, num_workers: int, in_chain: bool) -> None:
    (folder / "case_3.nii.gz").write_bytes((folder / "case_3.nii.gz").read_bytes()[:-20])
    nib.save(nib.Nifti1Image(np.array([[[9]]], np.uint8), np.eye(4)), folder / "case_4.nii.gz")
    arguments: dict[str, Any] = {"transform": Compose(LOAD)} if in_chain else {}
    with pytest.warns(
        UserWarning, match=r"2 case\(s\) could not be counted and are not in the result \(4 are\)"
    ) as caught:
        counts = count_labels(data_list(folder), num_classes=3, num_workers=num_workers, on_error="report", **arguments)
    assert "case_3.nii.gz" in str(caught[0].message)
    assert "9 (1 voxel)" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert set(counts.cases or {}) == {"case_0", "case_1", "case_2", "case_5"}
    failures = scan_labels(f"{folder}/*.nii.gz", num_classes=3, on_error="report").failures
    assert sorted(Path(failure.place).name for failure in failures) == ["case_3.nii.gz", "case_4.nii.gz"]


def test_only_bad_files(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no case could be counted: 6 failed, the first with: .*case_0"):
        count_labels(f"{folder}/*.nii.gz", num_classes=1, on_error="report")


def test_fault_in_a_chain_names_the_file(folder: Path) -> None:
    chain = Compose([*LOAD, ScaleIntensityd("label", minv=0.0, maxv=0.5)])
    with pytest.raises(ValueError, match=r"case_0\.nii\.gz: found values that are not integers: 0\.25"):
        count_labels(data_list(folder), num_classes=3, transform=chain)
    with pytest.raises(ValueError, match=r"case_0\.nii\.gz: the transforms failed: .*"):
        count_labels(
            data_list(folder), num_classes=3, transform=Compose([LoadImaged("label"), Lambdad("label", _fail)])
        )


def _fail(label: Any) -> Any:
    raise RuntimeError("on purpose")


def test_progress_is_quiet_without_a_terminal(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    count_labels(f"{folder}/*.nii.gz", num_classes=3)
    assert capfd.readouterr() == ("", "")


def test_which_reader_took_each_file(folder: Path) -> None:
    np_path = folder / "plain.nii"
    nib.save(nib.Nifti1Image(volume(0), np.eye(4)), np_path)
    scan = scan_labels([np_path, folder / "case_0.nii.gz"], num_classes=3)
    assert {record.name: record.reader for record in scan.cases} == {
        "plain": "NIfTI, stream raw",
        "case_0": "NIfTI, stream gzip (isal)",
    }


def test_public_name() -> None:
    assert monai_margincal.count_labels is count_labels


@needs_shared
def test_hippocampus_totals() -> None:
    """The complete real training set: equal to a loop of np.unique over nibabel."""
    assert SHARED is not None
    pattern = f"{SHARED}/data/hippocampus_mr/labels/*.nii.gz"
    counts = count_labels(pattern, num_classes=3)
    assert counts.counts.tolist() == [40142680, 468552, 412360]
    oracle = np.zeros(3, np.int64)
    for path in sorted((SHARED / "data" / "hippocampus_mr" / "labels").glob("*.nii.gz")):
        values, repeats = np.unique(np.asanyarray(nib.load(path).dataobj), return_counts=True)
        oracle[values.astype(int)] += repeats
    assert counts.counts.tolist() == oracle.tolist()
    assert len(counts.cases or {}) == 262
