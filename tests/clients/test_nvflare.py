"""NVFlare: two sites train the bundle for one round in the simulator, as docs/clients.md says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="runs where NVFlare is installed, see tests/clients/run")
pytest.importorskip("monai_nvflare", reason="runs where monai-nvflare is installed, see tests/clients/run")

import torch

from monai_margincal.bundle import bundle_dir
from monai_margincal.samples import sample_dir
from monai_margincal.statistics import count_labels

JOB = Path(__file__).resolve().parents[2] / "docs" / "federated_training_job"
BUNDLE = "covid19_ct_lesion_coplenet"


def job(folder: Path) -> Path:
    """The documented job with the bundle in it and one app per site, so that each trains on a case of its own."""
    counts = count_labels(f"{sample_dir('lung_ct')}/labels/*.nii.gz", num_classes=2)
    shared = {
        "dataset_dir": sample_dir("lung_ct"), "class_counts": counts.counts.tolist(), "device": "cpu", "num_workers": 0,
        "patch_size": [64, 64], "slices_per_volume": 2, "cache_rate": 1.0, "learning_rate": 0.001,
    }  # fmt: skip
    for app, train, other in (("server", None, None), ("site-1", "lung1", "lung2"), ("site-2", "lung2", "lung1")):
        shutil.copytree(JOB / "app", folder / app)
        shutil.copytree(bundle_dir(BUNDLE), folder / app / "config" / BUNDLE, ignore=shutil.ignore_patterns("eval"))
        if train:
            file = folder / app / "config" / "config_fed_client.json"
            config = json.loads(file.read_text())
            given = {**shared, "train_cases": [train], "val_cases": [other]}
            config["components"][0]["args"] |= {"train_kwargs": given, "eval_kwargs": given}
            file.write_text(json.dumps(config))
    meta = json.loads((JOB / "meta.json").read_text())
    meta["deploy_map"] = {app: [app] for app in ("server", "site-1", "site-2")}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


@pytest.mark.slow
def test_two_sites_train_one_round(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    line = [sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", str(job(tmp_path / "job"))]
    done = subprocess.run(
        [*line, "-w", str(workspace), "-n", "2", "-t", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    sites = ("site-1", "site-2")
    for name in ("server", *sites):
        log = (workspace / name / "log.txt").read_text()
        wrong = [text for text in log.splitlines() if re.search(r" - (ERROR|CRITICAL) - |Traceback|No weights", text)]
        assert not wrong, "\n".join(wrong[:20])
        if name in sites:
            (metric,) = re.findall(rf"{name} reported key metric val_iou: (\S+)", log)
            assert 0 <= float(metric) <= 1
            assert "[identity=" + name + ", run=simulate_job] - END_RUN fired" in log

    apps = {name: workspace / name / "simulate_job" / f"app_{name}" for name in ("server", *sites)}
    start = torch.load(Path(bundle_dir(BUNDLE)) / "models" / "model.pt", weights_only=True)
    aggregated = torch.load(apps["server"] / "FL_global_model.pt", weights_only=True)["model"]
    local = [
        torch.load(apps[site] / "config" / BUNDLE / "models" / "checkpoint_epoch=1.pt", weights_only=True)["network"]
        for site in sites
    ]
    assert set(aggregated) == set(start)
    assert not torch.equal(local[0]["in_conv.first.conv.weight"], local[1]["in_conv.first.conv.weight"])
    for name, value in aggregated.items():
        # both sites made the same number of steps, so that the weighted mean is the plain one
        torch.testing.assert_close(value, (local[0][name] + local[1][name]) / 2, rtol=0, atol=1e-6)
    assert any(not torch.equal(value, start[name]) for name, value in aggregated.items())

    command = [sys.executable, "-m", "monai.bundle", "run"]
    for key, value in {
        "config_file": f"{bundle_dir(BUNDLE)}/configs/inference.json",
        "bundle_root": bundle_dir(BUNDLE),
        "checkpoint": apps["server"] / "FL_global_model.pt",
        "output_dir": tmp_path / "masks",
        "cases": "lung2",
        "num_workers": 0,
    }.items():
        command += [f"--{key}", str(value)]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=600)
    assert [*(tmp_path / "masks").rglob("lung2_mask.nii.gz")]
