"""The processes of one job end cleanly: no thread of theirs outlives the interpreter."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from monai_margincal.processes import end_process_group, group_size, own_rank, start_process_group
from monai_margincal.processes.interrupts import advice_when_interrupted, advise_when_interrupted

THREADS_AT_EXIT = Path(__file__).parents[1] / "threads_at_exit"

WORKER = """
import os
import torch
import torch.distributed as dist
from monai_margincal.processes import end_process_group, start_process_group

def work():
    network = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    network.itself = [network]  # a cycle, as an engine with handlers is
    gathered = [None, None]
    dist.all_gather_object(gathered, dist.get_rank())
    os.write(1, f"gathered {gathered}\\n".encode())  # at once: the other process writes there too
    %(end)s

%(start)s
work()
"""


def run_two(tmp_path, start, end):
    """Two processes of the worker; exit code and what they print."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER % {"start": start, "end": end})
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(THREADS_AT_EXIT)}
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_no_thread_of_gloo_outlives_the_interpreter(tmp_path):
    """pytorch/pytorch pull request 179291: the last tensor of a collective is dropped by a thread, too late."""
    code, output = run_two(tmp_path, "start_process_group('cpu')", "end_process_group()")
    assert code == 0, output
    assert output.count("gathered [0, 1]") == 2
    assert "threads of gloo at exit" not in output


def test_torch_alone_leaves_them(tmp_path):
    """Why this module exists; when torch mends it, this fails and the module can go."""
    _, output = run_two(tmp_path, "dist.init_process_group('gloo')", "dist.destroy_process_group()")
    # of one at least: after its crash the launcher may end the other one early
    assert "threads of gloo at exit" in output


@pytest.fixture
def group_of_the_caller(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


def test_a_group_of_the_caller_is_kept(group_of_the_caller):
    start_process_group("cpu")
    assert dist.group.WORLD is group_of_the_caller


def test_without_a_group_one_process_does_it_all():
    assert (own_rank(), group_size()) == (0, 1)


def test_a_group_of_one(group_of_the_caller):
    assert (own_rank(), group_size()) == (0, 1)


def test_ranks_are_told_apart_without_torch():
    """Counting files needs neither its seconds nor its memory."""
    code = """
import sys
from monai_margincal.processes import end_process_group, gather, own_rank, share_of
assert (own_rank(), share_of("ab"), gather(lambda: 1)) == (0, ["a", "b"], [1])
end_process_group()
print(sorted({"torch", "numpy", "monai"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_ended_twice(group_of_the_caller):
    end_process_group()
    assert not dist.is_initialized()
    end_process_group()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_device_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(Exception, match=r"CUDA|NCCL|nccl"):
        start_process_group("cuda:0", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    if dist.is_initialized():
        dist.destroy_process_group()


def test_what_was_advised_does_not_hold_the_network_of_a_group_that_has_ended(tmp_path):
    """The advice of a training refers to its network, and that to the group, whose threads would outlive the interpreter."""
    network = torch.nn.Linear(1, 1)
    held = weakref.ref(network)
    advise_when_interrupted(lambda network=network: str(network))
    start_process_group("cpu", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    end_process_group()
    assert advice_when_interrupted() == ""
    del network
    gc.collect()
    assert held() is None
