"""The bundle's network as a TensorRT engine: exported as the bundle's page says, run as its inferer runs it.

    python -m gpu.tensorrt --device cuda:0 --output results/

Writes the seconds of the network part over a scan, uncompiled and as an engine, and the share of voxels whose class differs. An
engine needs an NVIDIA GPU: on a CPU a TorchScript program stands in for it, so that everything around it runs.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from monai.bundle import ConfigParser, ckpt_export, trt_export

from monai_margincal.bundle import bundle_dir
from monai_margincal.inferers import VolumeSliceInferer, load_tensorrt_program

BUNDLE = Path(bundle_dir("covid19_ct_lesion_coplenet"))
BATCH = 8


def export(device: torch.device, plane: int, path: Path) -> None:
    """Write the bundle's network, with the weights that come with it."""
    common: dict[str, Any] = {
        "net_id": "network_def",
        "filepath": str(path),
        "ckpt_file": str(BUNDLE / "models" / "model.pt"),
        "meta_file": str(BUNDLE / "configs" / "metadata.json"),
        "config_file": str(BUNDLE / "configs" / "inference.json"),
    }
    if device.type == "cuda":
        shape, batches = [BATCH, 1, plane, plane], [1, BATCH, BATCH]
        trt_export(**common, precision="fp16", input_shape=shape, dynamic_batchsize=batches)
    else:
        ckpt_export(**common)


def _network(device: torch.device) -> torch.nn.Module:
    parser = ConfigParser()
    parser.read_config(str(BUNDLE / "configs" / "inference.json"))
    network = parser.get_parsed_content("network_def")
    network.load_state_dict(torch.load(BUNDLE / "models" / "model.pt", weights_only=True))
    return network.eval().to(device)


def _seconds(call: Callable[[], torch.Tensor], device: torch.device) -> tuple[float, torch.Tensor]:
    """Best of three after the first, and the result."""
    spent = []
    for _ in range(4):
        begun = time.perf_counter()
        result = call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        spent.append(time.perf_counter() - begun)
    return min(spent[1:]), result


def measure(device: torch.device, plane: int, slices: int, folder: Path) -> list[dict[str, Any]]:
    """One row for the network, one for the engine."""
    path = folder / "model_trt.ts"
    begun = time.perf_counter()
    export(device, plane, path)
    exporting = time.perf_counter() - begun
    scan = torch.rand(1, 1, plane, plane, slices, generator=torch.Generator().manual_seed(0)).to(device)
    on_gpu = device.type == "cuda"
    layout = torch.channels_last if on_gpu else torch.contiguous_format
    network = _network(device).to(memory_format=layout)
    inferer = VolumeSliceInferer((plane, plane), sw_batch_size=BATCH, decide=True, channels_last=on_gpu)
    with torch.no_grad(), torch.autocast("cuda", enabled=on_gpu):
        plain, expected = _seconds(lambda: inferer(scan, network), device)
    engine = load_tensorrt_program(path, device)
    inferer = VolumeSliceInferer((plane, plane), sw_batch_size=BATCH, decide=True)
    with torch.no_grad():
        fast, found = _seconds(lambda: inferer(scan, engine), device)
    path.unlink()
    about = {"device": str(device), "torch": torch.__version__, "shape": f"{plane}x{plane}x{slices}"}
    different = float((found != expected).double().mean())
    return [
        {**about, "name": "ours", "seconds": plain, "export_seconds": 0.0, "different": 0.0},
        {**about, "name": "TensorRT", "seconds": fast, "export_seconds": exporting, "different": different},
    ]


def main(arguments: list[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--plane", type=int, default=512)
    parser.add_argument("--slices", type=int, default=300)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    rows = measure(torch.device(options.device), options.plane, options.slices, options.output)
    with (options.output / "tensorrt.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
