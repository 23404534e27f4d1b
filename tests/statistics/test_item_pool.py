"""Workers that count items: the same counts, whatever a transform raises, and a message that names what was being counted."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from monai.transforms import LoadImaged

from monai_margincal.counting.case_record import CaseRecord
from monai_margincal.statistics.item_pool import count_items
from monai_margincal.statistics.items import LabelItems


class Stubborn(Exception):
    """Cannot be sent to another process: it is made of two arguments and remembers one."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} {reason}")


class Trouble:
    """A transform that ends badly for the items whose file name says how."""

    def __call__(self, item: dict[str, object]) -> dict[str, object]:
        name = Path(str(item["label"])).name
        if name.startswith("interrupt"):
            raise Stubborn(name, "is stubborn")
        if name.startswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        return dict(LoadImaged("label")(item))


def _items(folder: Path, names: list[str]) -> LabelItems:
    data = []
    for number, name in enumerate(names):
        path = folder / f"{name}.nii.gz"
        nib.save(nib.Nifti1Image((np.arange(24).reshape(2, 3, 4) <= number).astype(np.uint8), np.eye(4)), path)
        data.append({"label": str(path)})
    return LabelItems(data, Trouble(), "label", None, None, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3, 20])
def test_workers_count_what_this_process_counts(tmp_path: Path, workers: int) -> None:
    items = _items(tmp_path, [f"case{number}" for number in range(7)])
    alone = dict(count_items(items, range(7), 0))
    together = dict(count_items(items, range(7), workers))
    assert sorted(together) == list(range(7))
    assert {index: record.to_dict() for index, record in together.items()} == {  # type: ignore[union-attr]
        index: record.to_dict()  # type: ignore[union-attr]
        for index, record in alone.items()
    }
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_what_a_transform_raises_is_told_even_if_it_cannot_be_sent(tmp_path: Path) -> None:
    items = _items(tmp_path, ["case0", "interrupt1", "case2"])
    results = dict(count_items(items, range(3), 2))
    assert "interrupt1.nii.gz is stubborn" in str(results[1])
    assert [type(results[index]).__name__ for index in (0, 2)] == ["CaseRecord", "CaseRecord"]


class Unseedable(LabelItems):
    """Its error is none of an item's: what calls the transforms is broken."""

    def count(self, index: int) -> CaseRecord:
        raise LookupError(f"no seed for {index}")


@pytest.mark.slow
def test_any_other_error_comes_out_as_in_one_process(tmp_path: Path) -> None:
    items = Unseedable([{"label": "a"}, {"label": "b"}], None, "label", None, None, seed=0)
    for workers in (0, 2):
        with pytest.raises(LookupError, match="no seed for"):
            list(count_items(items, range(2), workers))


@pytest.mark.slow
def test_a_worker_that_dies_is_told_with_the_item_that_it_was_counting(tmp_path: Path) -> None:
    items = _items(tmp_path, ["case0", "die1", "case2"])
    with pytest.raises(RuntimeError, match=r"worker process of count_labels died, it was counting .*die1\.nii\.gz"):
        list(count_items(items, range(3), 1))
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_no_process_is_left_if_the_caller_stops(tmp_path: Path) -> None:
    results = count_items(_items(tmp_path, [f"case{number}" for number in range(9)]), range(9), 2)
    next(results)
    assert len(multiprocessing.active_children()) == 2
    results.close()
    assert not multiprocessing.active_children()
