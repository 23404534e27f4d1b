"""A kind of output is known from its definition on, under a name that is its own."""

from __future__ import annotations

import pytest
import torch

from monai_margincal.outputs import Destination, Output, ScanFile
from monai_margincal.outputs import kind as registry


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "KINDS", dict(registry.KINDS))


def test_a_class_with_a_name_is_known_and_one_without_is_not():
    class Text(ScanFile):
        ending = ".txt"

    class Note(Text):
        kind = "note"
        postfix = "note"

        def save(self, items, key):
            self.path(items[key].meta).write_text("seen")

    assert registry.KINDS["note"] is Note
    assert Text not in registry.KINDS.values()
    meta = {"filename_or_obj": "/data/a/ct.nii.gz"}
    assert Note(Destination("/out", data_root_dir="/data")).path(meta).as_posix() == "/out/a/ct_note.txt"
    assert Note(Destination("/out"), postfix="n").path(meta).as_posix() == "/out/ct_n.txt"


def test_two_kinds_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"two kinds of output are named 'mask': .*kinds\.mask and "):

        class Other(ScanFile):
            kind = "mask"


def test_what_a_kind_may_leave_out():
    class Silent(Output):
        kind = "silent"

        def save(self, items, key):
            pass

    output = Silent(Destination("/out"))
    output.note_failure("a.nii.gz", "damaged")
    assert output.reasons is None
    with pytest.raises(NotImplementedError, match="the output 'silent' is not made from logits"):
        output.from_logits(torch.zeros(2, 1, 1, 1))
