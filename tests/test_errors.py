"""One line about an error: the cause, not what MONAI and PyTorch wrap around it, also from a worker process."""

from __future__ import annotations

import re

import pytest
from monai.bundle import ConfigParser
from monai.data import Dataset
from monai.transforms import Compose, LoadImaged
from torch.utils.data import DataLoader

from monai_margincal.errors import CaseError, naming_files, root_cause, root_message


def fail(message="epochs must be positive,\n  found 0"):
    try:
        raise EOFError("the end")
    except EOFError as cause:
        raise ValueError(message) from cause


def caught(action, *arguments):
    with pytest.raises(Exception) as raised:
        action(*arguments)
    return raised.value


def test_what_says_most_is_taken_not_what_came_first():
    """Our errors explain what a library could not do; the library's words are the cause of them."""
    assert root_message(caught(fail)) == "ValueError: epochs must be positive, found 0"
    assert root_message(KeyError("x")) == "KeyError: 'x'"
    assert root_message(StopIteration()) == "StopIteration"


@pytest.mark.parametrize("item", ["$__import__('json').loads('{')", {"_target_": "json.loads", "s": "{"}])
def test_through_monais_expressions_and_components(item):
    error = caught(ConfigParser({"inner": item, "outer": "$@inner", "most": "$@outer"}).get_parsed_content, "most")
    assert root_cause(error)[0] == "JSONDecodeError"
    assert "\n" not in root_message(error)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("$@low - @high / 2", "TypeError: unsupported operand type(s) for /: 'str' and 'int' in $@low - @high / 2"),
        ({"_target_": "math.sqrt", "y": 1}, "TypeError: math.sqrt() takes no keyword arguments in math.sqrt"),
        ("$@table[@high]", "KeyError: 'x' in $@table[@high]"),
    ],
)
def test_errors_without_a_place_get_that_of_the_configuration(item, message):
    config = {"low": 1, "high": "x", "table": {"a": 1}, "item": item, "run": "$@item + 1"}
    assert root_message(caught(ConfigParser(config).get_parsed_content, "run")) == message


class Broken(Dataset):
    """Items that fail as MONAI's transforms do, with or without the files named."""

    def __init__(self, files):
        super().__init__([0], None)
        self.files = files

    def _transform(self, index):
        def work():
            Compose([lambda _: fail()])(0)

        if self.files is None:
            return work()
        with naming_files(self.files):
            return work()


@pytest.mark.parametrize("workers", [0, 1])
def test_out_of_a_worker_process(workers, tmp_path):
    message = "ValueError: epochs must be positive, found 0"
    assert root_message(caught(list, DataLoader(Broken(None), num_workers=workers))) == message
    error = caught(list, DataLoader(Broken({"image": tmp_path, "case": "a"}), num_workers=workers))
    assert isinstance(error, CaseError)
    assert root_message(error) == f"{tmp_path}: cannot be read or prepared: {message}"


def test_files_are_named_once(tmp_path):
    image, label = tmp_path / "a.nii", tmp_path / "b.nii"
    for path in (image, label):
        path.write_text("no image")
    with pytest.raises(CaseError) as raised, naming_files({"image": str(image), "label": str(label), "case": "a"}):
        LoadImaged("image", reader="ITKReader")({"case": "a", "image": str(image)})
    assert str(raised.value).count("a.nii") == 1
    with pytest.raises(CaseError) as raised, naming_files({"image": str(image), "label": str(label), "case": "a"}):
        raise EOFError("the file ended")
    assert str(raised.value) == f"{image}, {label}: cannot be read or prepared: EOFError: the file ended"
    with pytest.raises(CaseError) as raised, naming_files({"image": str(image)}):
        raise ValueError(f"{image} is empty")
    assert str(raised.value) == f"{image} is empty"
    with pytest.raises(CaseError, match=r"^TypeError: nothing to name$"), naming_files(None):
        raise TypeError("nothing to name")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (EOFError("the end"), "a.nii: cannot be read, expected a label: EOFError: the end"),
        (ValueError("a.nii: found no voxel"), "a.nii: found no voxel"),
        (RuntimeError("a.nii: found no voxel"), "a.nii: found no voxel"),
        (ValueError("no reader for a.nii"), "a.nii: cannot be read, expected a label: ValueError: no reader for a.nii"),
    ],
)
def test_a_message_begins_with_its_file(error, message):
    named = naming_files("a.nii", "cannot be read, expected a label", raises=ValueError)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"), named:
        raise error


def test_a_missing_file_keeps_its_type_among_value_errors():
    message = r"^item 7: the transforms failed: FileNotFoundError: b\.nii$"
    named = naming_files("item 7", "the transforms failed", raises=ValueError)
    with pytest.raises(FileNotFoundError, match=message), named:
        raise FileNotFoundError("b.nii")
    with pytest.raises(CaseError, match=message), naming_files("item 7", "the transforms failed"):
        raise FileNotFoundError("b.nii")


def test_an_error_of_the_right_kind_passes_unchanged():
    class Gap(ValueError):
        pass

    gap = Gap("series: a slice is missing")
    with pytest.raises(Gap) as raised, naming_files("series", raises=ValueError):
        raise gap
    assert raised.value is gap


def test_an_endless_message_is_cut():
    text = root_message(RuntimeError("size mismatch " * 1000))
    assert len(text) < 750
    assert text.endswith(" ...")


def test_a_hidden_context_stays_hidden():
    def hide():
        try:
            fail()
        except ValueError:
            raise RuntimeError("Failed to evaluate it") from None

    assert root_message(caught(hide)) == "RuntimeError: Failed to evaluate it"
