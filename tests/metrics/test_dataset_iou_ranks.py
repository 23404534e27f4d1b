"""DatasetIoU over several processes."""

from __future__ import annotations

import socket

import pytest
import torch
import torch.distributed as dist

from monai_margincal.metrics import DatasetIoU


def batches_for(rank: int, split: list[int]):
    """`split[rank]` batches of one or two images, the same for a rank wherever it is asked."""
    for i in range(split[rank]):
        g = torch.Generator().manual_seed(100 * rank + i)
        p, t = (torch.randint(0, 3, (1 + i % 2, 1, 5, 4), generator=g) for _ in range(2))
        yield p, t


#: Batches per rank: uneven, one rank without any, none at all.
SPLITS = ([3, 1], [0, 2], [2, 0], [0, 0])


def worker(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    results = []
    metric = DatasetIoU(4, absent="exclude")
    for split in SPLITS:  # one object throughout, as an evaluator uses it every epoch
        metric.reset()
        for p, t in batches_for(rank, split):
            metric(p, t)
        if not sum(split):
            with pytest.raises(ValueError, match="has counted no image"):
                metric.aggregate()
            results.append({"images": len(metric)})
            continue
        results.append(
            {
                "matrix": metric.confusion_matrix,
                "mean": metric.aggregate(),
                "rows": metric.get_buffer(),
                "images": len(metric),
                "image_counts": metric.image_counts,
            }
        )
    torch.save(results, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_equal_one(tmp_path):
    """Uneven numbers of batches, and a rank without any: the same numbers on every rank as in one process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(worker, args=(port, str(tmp_path)), nprocs=2)
    found = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2)]
    for i, split in enumerate(SPLITS):
        if not sum(split):
            assert [results[i]["images"] for results in found] == [0, 0]
            continue
        single = DatasetIoU(4, absent="exclude")
        for rank in range(2):
            for p, t in batches_for(rank, split):
                single(p, t)
        for results in found:
            assert torch.equal(results[i]["matrix"], single.confusion_matrix)
            assert torch.equal(results[i]["mean"], single.aggregate())
            assert torch.equal(results[i]["image_counts"], single.image_counts)
            torch.testing.assert_close(results[i]["rows"], single.get_buffer(), rtol=0, atol=0, equal_nan=True)
            assert results[i]["images"] == len(single)
