"""A network where it runs."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from monai_margincal.processes import end_process_group, start_process_group
from monai_margincal.workflows import placed_network


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_network_itself_in_its_layout(channels_last):
    network = torch.nn.Conv2d(4, 3, 3)
    assert placed_network(network, "cpu", channels_last) is network
    assert network.weight.is_contiguous(memory_format=torch.channels_last) is channels_last
    assert network.weight.is_contiguous() is not channels_last


@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch was built without gloo")
def test_several_processes(tmp_path):
    start_process_group("cpu", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    try:
        network = torch.nn.Conv2d(4, 3, 3)
        wrapped = placed_network(network, torch.device("cpu"), distributed=True)
        assert wrapped.module is network
        assert wrapped.device_ids is None
    finally:
        end_process_group()
