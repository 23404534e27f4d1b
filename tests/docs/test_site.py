"""What the documentation site derives from the package: every public name, verb and key has its place, links lead to pages."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import monai_margincal
from monai_margincal.cli import build_parser
from monai_margincal.experiments.study_keys import BLOCK_KEYS, OBJECTIVE_KEYS, STUDY_KEYS, TASK_KEYS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUNDLE = "covid19_ct_lesion_coplenet"
sys.path.insert(0, str(DOCS))
from _site.drawings import drawings_inline  # noqa: E402
from _site.flow_chart import CHART, FREQUENT, RARE, TRAINED, anchor, flow_chart  # noqa: E402
from _site.links import links_of_site  # noqa: E402
from _site.reference import write_reference  # noqa: E402


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    write_reference(folder)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}


def test_every_public_name_has_an_entry(reference: dict[str, str]) -> None:
    entries = "\n".join(text for name, text in reference.items() if name.startswith("python/")).splitlines()
    for name in set(monai_margincal.__all__) - {"__version__"}:
        assert (
            entries.count(f".. autoclass:: monai_margincal.{name}")
            + entries.count(f".. autofunction:: monai_margincal.{name}")
            == 1
        ), name


def test_every_verb_shows_its_help(reference: dict[str, str]) -> None:
    verbs = next(action.choices for action in build_parser()._actions if action.dest == "verb")
    assert verbs is not None
    for verb in verbs:
        assert f"\n## margincal {verb}\n" in reference["command_line.md"]


def test_every_key_of_a_study_has_a_row(reference: dict[str, str]) -> None:
    page = reference["study_files.md"]
    for keys in (STUDY_KEYS, TASK_KEYS, OBJECTIVE_KEYS, BLOCK_KEYS):
        for name, key in keys.items():
            assert f"\n| `{name}` | {'yes' if key.is_needed else ''} | " in page


def test_every_key_of_json_has_a_row(reference: dict[str, str]) -> None:
    part = reference["command_line.md"].partition("\n## margincal margins\n")[2].partition("\n## ")[0]
    assert "\n| `classes` | a list of id, name, voxels, share, rho_0k and rho_k0 |\n" in part


@pytest.mark.parametrize(
    "bundle", sorted(path.parents[1].name for path in ROOT.glob("bundles/*/configs/metadata.json"))
)
def test_every_key_of_a_bundle_is_in_its_table(reference: dict[str, str], bundle: str) -> None:
    page = reference[f"bundles/{bundle}.md"]
    for file in ("train.json", "inference.json"):
        for key, value in json.loads((ROOT / "bundles" / bundle / "configs" / file).read_text()).items():
            if not isinstance(value, dict | list) or not any(isinstance(part, dict | str) for part in value):
                assert f"\n| `{key}` | " in page, key


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("docs/index.md", "../README.md", "index.md"),
        ("docs/study/README.md", "../../README.md#limits", "../index.md#limits"),
        ("docs/index.md", "method.md", "method.md"),
        ("docs/index.md", f"../bundles/{BUNDLE}/docs/README.md", f"reference/bundles/{BUNDLE}.md"),
        (f"bundles/{BUNDLE}/docs/README.md", "nodules.md", f"../../../docs/reference/bundles/{BUNDLE}_nodules.md"),
        ("docs/index.md", "https://monai.io", "https://monai.io"),
        ("docs/index.md", "#here", "#here"),
        ("docs/index.md", "missing.md", "missing.md"),
    ],
)
def test_links_lead_to_the_pages_of_the_site(source: str, link: str, expected: str) -> None:
    page = ROOT / source
    assert links_of_site(f"see [this]({link}).", page, page) == f"see [this]({expected})."


def test_a_file_shown_elsewhere_leads_to_the_same_pages() -> None:
    shown = DOCS / "reference" / "changelog.md"
    assert links_of_site("[which](docs/objectives.md)", ROOT / "CHANGELOG.md", shown) == "[which](../objectives.md)"


def test_a_link_to_a_folder_becomes_its_text() -> None:
    page = DOCS / "federated.md"
    assert links_of_site("[`federated_job/`](federated_job)", page, page) == "`federated_job/`"


def test_pages_that_have_not_changed_keep_their_time(tmp_path: Path) -> None:
    write_reference(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    write_reference(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}


def test_the_flow_chart_is_that_of_the_rule() -> None:
    assert CHART.read_text(encoding="utf-8") == flow_chart()


def test_the_answers_of_the_flow_chart_lead_to_sections_of_its_page() -> None:
    headings = re.findall(r"^## (.*)$", (DOCS / "objectives.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {RARE, FREQUENT, TRAINED} <= set(headings)
    links = re.findall(r'href="#([^"]+)"', flow_chart())
    assert set(links) == {anchor(heading) for heading in (RARE, FREQUENT, TRAINED)}


def test_a_drawing_becomes_part_of_its_page(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("<svg>\n</svg>\n")
    page = tmp_path / "page.md"
    text = "see\n\n![what](a.svg)\n\nand ![inside](a.svg) a line"
    assert drawings_inline(text, page) == "see\n\n```{raw} html\n<svg>\n</svg>\n```\n\nand ![inside](a.svg) a line"
