"""The first thing that a run does."""

from __future__ import annotations

import copy
import logging
import sys

import monai
import numpy as np
import pytest
import torch
import torch.distributed as dist
from monai.bundle import ConfigParser

from monai_margincal.bundle import prepare_run
from monai_margincal.processes import end_process_group

CONFIG = {
    "epochs": 3,
    "seed": 4,
    "train": {
        "every": 1,
        "trainer": {"_target_": "builtins.dict", "max_epochs": "@epochs", "interval": "@train#every"},
    },
    "run": ["$@train#trainer"],
    "initialize": [{"_target_": "monai_margincal.bundle.prepare_run", "seed": "@seed"}],
}


@pytest.fixture(autouse=True)
def as_before():
    kept = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    yield
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = kept
    monai.utils.set_determinism(None)
    torch.use_deterministic_algorithms(False)


def prepare(**changed):
    parser = ConfigParser(copy.deepcopy(CONFIG))
    parser.update(changed)
    try:
        parser.get_parsed_content("initialize")
    except RuntimeError as error:
        raise error.__cause__ from None


def test_the_seed_decides_every_stream():
    drawn = []
    for seed in (4, 4, 5):
        prepare(seed=seed)
        drawn.append((torch.rand(()).item(), np.random.rand()))  # noqa: NPY002
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[2][0]
    assert drawn[0][1] != drawn[2][1]


@pytest.mark.parametrize("search", [False, True])
def test_cudnn(search):
    prepare(**{"initialize#0#cudnn_benchmark": search})
    assert (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic) == (search, not search)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("epochz", 1, "unknown key 'epochz' \\(did you mean 'epochs'\\?\\)"),
        ("max_epochs", 1, "unknown key 'max_epochs' \\(did you mean 'train#trainer#max_epochs'\\?\\)"),
        ("train#evry", 1, "unknown key 'train#evry' \\(did you mean 'train#every'\\?\\)"),
        ("train#trainer#amp", "False", "train#trainer#amp: found the text 'False', expected True or False"),
    ],
)
def test_a_flag_that_would_do_nothing_or_the_opposite(key, value, message):
    with pytest.raises(ValueError, match=message):
        prepare(**{key: value})


def test_what_monai_reads_itself_may_be_a_text():
    prepare(**{"train#trainer#_disabled_": "false"})


def test_several_processes_need_their_configuration(monkeypatch):
    """Each would train the same network and write the same files."""
    monkeypatch.setattr(dist, "is_torchelastic_launched", lambda: True)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"found several processes, expected one: .*multi_gpu_train\.json"):
        prepare()
    monkeypatch.setenv("WORLD_SIZE", "1")
    prepare()


@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch was built without gloo")
def test_the_group_of_a_launcher(monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
        monkeypatch.setenv(name, value)
    try:
        prepare(**{"initialize#0#distributed": True})
        assert dist.get_world_size() == 1
        assert logging.root.manager.disable < logging.INFO, "the first process logs"
    finally:
        end_process_group()


@pytest.mark.parametrize("is_command_line", [True, False])
def test_only_a_program_of_our_own_decides_what_becomes_of_freed_memory(monkeypatch, is_command_line):
    module, calls = sys.modules["monai_margincal.bundle.prepare_run"], []
    monkeypatch.setattr(module, "is_command_line", lambda: is_command_line)
    monkeypatch.setattr(module, "keep_freed_memory", lambda: calls.append("kept"))
    monkeypatch.setattr(sys, "argv", ["monai.bundle", "run"])
    prepare()
    assert calls == (["kept"] if is_command_line else [])


def test_outside_of_a_configuration():
    with pytest.raises(RuntimeError, match="must be called by MONAI's config parser"):
        prepare_run()
