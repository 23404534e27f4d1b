"""The README is executable: its test command is the CI's, its examples run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch

from monai_margincal import MarginCalibrationTverskyLoss
from monai_margincal.samples import sample_dir

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_exactly_two_commands_and_ci_runs_the_second_word_for_word():
    demo, tests = (block.strip() for block in blocks("bash"))
    assert demo.endswith("-m monai_margincal demo")
    assert tests in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_script_example_runs():
    (code,) = blocks("python")
    torch.manual_seed(0)
    label = (torch.rand(2, 1, 8, 8) * 2).floor()
    network = torch.nn.Conv2d(1, 2, 1)
    names = {
        "train_files": [{"label": case[0].numpy()} for case in label[:, None]],
        "loader": [{"image": torch.rand(2, 1, 8, 8), "label": label}],
        "network": network,
        "validation_cases": [(network(torch.rand(1, 1, 8, 8))[0].detach(), part) for part in label],
        "logits": network(torch.rand(2, 1, 8, 8)),
    }
    exec(code, names)
    assert network.weight.grad.abs().sum() > 0
    assert names["mask"].shape == (2, 8, 8)


def test_bundle_example_parses():
    from monai.bundle import ConfigParser

    (fragment,) = blocks("json")
    config = json.loads("{" + fragment.strip().rstrip(",") + "}")
    config["class_counts"]["num_classes"] = 2
    config["train"] = {"dataset": {"data": [{"label": f"{sample_dir('lung_ct')}/labels/lung2.nii.gz"}]}}
    loss = ConfigParser(config).get_parsed_content("loss")
    assert isinstance(loss, MarginCalibrationTverskyLoss)


def test_links_lead_somewhere():
    for page in [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "bundles").rglob("*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), (
                    f"{page.relative_to(ROOT)} links to {target}, which is not there"
                )


def test_no_page_speaks_of_a_machine():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp)/", page.read_text(encoding="utf-8")), page
