"""Reading a study: fingerprints, order of the cells, splits, errors that name the place."""

from __future__ import annotations

import copy

import pytest
import yaml
from experiments.tiny_study import tiny_config, write_cases

from monai_margincal.experiments import Study


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_cases(tmp_path_factory.mktemp("data"))


@pytest.fixture
def config(data):
    return tiny_config(data)


def _keys(config) -> dict[str, str]:
    return {cell.name: cell.key for cell in Study(config).cells()}


def test_order_is_seed_by_seed_with_all_objectives(config):
    assert list(_keys(config)) == [
        "slices/finetune/ce/0",
        "slices/finetune/margins/0",
        "slices/finetune/bound/0",
        "slices/finetune/ce/1",
        "slices/finetune/margins/1",
        "slices/finetune/bound/1",
        "volumes/finetune/ce/0",
        "volumes/finetune/bound/0",
    ]


def test_what_decides_a_cell_changes_its_key_and_nothing_else_does(config, tmp_path):
    before = _keys(config)

    def changed(change) -> set[str]:
        other = copy.deepcopy(config)
        change(other)
        after = _keys(other)
        return {name for name in before if after.get(name) != before[name]}

    assert changed(lambda c: c["objectives"]["bound"]["controller"].update(momentum=0.9)) == {
        name for name in before if "/bound/" in name
    }
    assert changed(lambda c: c["tasks"]["volumes"].update(steps=9)) == {n for n in before if n.startswith("volumes")}
    # through a reference
    assert changed(lambda c: c["transform"].append({"_target_": "monai.transforms.ToTensord", "keys": "image"})) == set(
        before
    )
    assert changed(lambda c: c["objectives"]["ce"].update(label="CE", group="other")) == set()
    assert changed(lambda c: c.update(title="Other")) == set()
    assert changed(lambda c: c["seeds"].append(2)) == set()
    # the same files elsewhere
    assert changed(lambda c: c["data"].update(root=str(write_cases(tmp_path / "copy")))) == set()


def test_changed_data_change_the_keys(config, tmp_path):
    before = _keys(config)
    folder = write_cases(tmp_path / "other", number=9)
    (folder / "images" / "case8.nii.gz").unlink()
    (folder / "labels" / "case8.nii.gz").unlink()
    (folder / "labels" / "case0.nii.gz").write_bytes((folder / "labels" / "case1.nii.gz").read_bytes())
    config["data"]["root"] = str(folder)
    assert not set(before.values()) & set(_keys(config).values())


def test_objectives_of_a_seed_share_their_cases_and_pretraining(config):
    study = Study(config)
    first, second = (study.cell("slices", "pretraining", name, 0) for name in ("ce", "bound"))
    assert first.key == second.key
    names = [item["case"] for item in study.cases("slices", 0).training]
    assert names == [item["case"] for item in study.cases("slices", 0).training]
    other = study.cases("slices", 1)
    assert [i["case"] for i in other.test] == [i["case"] for i in study.cases("slices", 0).test]
    used = [i["case"] for part in (other.training, other.validation, other.test) for i in part]
    assert len(used) == len(set(used)) == 8


def test_cases_by_name(config):
    config["tasks"]["slices"].update(training=["case1", "case0"], validation=["case2"], test=["case3"])
    parts = Study(config).cases("slices", 0)
    assert [item["case"] for item in parts.training] == ["case1", "case0"]


def test_parts_may_be_shares_and_expressions(config):
    config["names"] = {"test": ["case3", "case4"]}
    config["tasks"]["slices"].update(training="rest", validation=0.25, test="$@names['test']")
    parts = Study(config).cases("slices", 0)
    assert [item["case"] for item in parts.test] == ["case3", "case4"]
    assert (len(parts.validation), len(parts.training)) == (2, 4)
    config["tasks"]["slices"]["test"] = ["$'case' + str(3)", "case4"]
    assert [item["case"] for item in Study(config).cases("slices", 0).test] == ["case3", "case4"]
    config["tasks"]["slices"]["test"] = "$[][1]"
    with pytest.raises(ValueError, match=r"tasks::slices::test: found '\$\[\]\[1\]': "):
        Study(config).cells()


def test_from_file_with_overrides_and_merge_keys(config, tmp_path):
    file = tmp_path / "study.yaml"
    text = yaml.safe_dump(config) + "\nbase: &base {lr: 0.5}\nother: {<<: *base, x: 1}\nroot: \"$@config_dir + '/x'\"\n"
    file.write_text(text)
    study = Study.from_file(file, {"tasks::slices::steps": 7, "title": "New"})
    assert study.tasks["slices"]["steps"] == 7
    assert study.title == "New"
    assert study.build("@other") == {"lr": 0.5, "x": 1}
    assert study.build("@root") == f"{tmp_path}/x"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("decoders"), "the study has no `decoders`"),
        (lambda c: c["tasks"]["slices"].update(stepz=3), r"tasks::slices: unknown keys \['stepz'\]"),
        (lambda c: c["tasks"]["slices"].pop("network"), r"missing keys \['network'\]"),
        (lambda c: c["objectives"].update(x={"label": "no loss"}), r"objectives::x: .*missing keys \['loss'\]"),
        (lambda c: c["objectives"].update(x=3), "objectives::x: found 3, expected a mapping"),
        (lambda c: c["blocks"][0].update(objectives=["nope"]), r"blocks::0: found the objectives \['nope'\]"),
        (lambda c: c["blocks"][0].update(protocols=["both"]), r"blocks::0: found the protocols \['both'\]"),
        (
            lambda c: c["tasks"]["slices"].update(test=99),
            "tasks::slices::test: found 99 cases, expected a number from 1 to the 8 that are left",
        ),
        (lambda c: c["tasks"]["slices"].update(test=["who"]), r"tasks::slices::test: found the cases \['who'\]"),
        (
            lambda c: c["objectives"]["ce"]["loss"].update(weight="@nowhere"),
            "refers to @nowhere, which it does not define",
        ),
    ],
)
def test_errors_name_the_place(config, change, message):
    change(config)
    with pytest.raises(ValueError, match=message):
        Study(config).cells()


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file, expected the YAML of a study"):
        Study.from_file(tmp_path / "none.yaml")
    (tmp_path / "twice.yaml").write_text("seeds: [1]\nseeds: [2]\n")
    with pytest.raises(ValueError, match=r"twice\.yaml: line 1: found the keys \['seeds'\] more than once"):
        Study.from_file(tmp_path / "twice.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(ValueError, match=r"list\.yaml: found list, expected a mapping"):
        Study.from_file(tmp_path / "list.yaml")


def test_an_override_of_nothing_is_an_error(config, tmp_path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ValueError, match="found no entry 'tasks::slicez' to set 'tasks::slicez::steps' in"):
        Study.from_file(tmp_path / "study.yaml", {"tasks::slicez::steps": 7})
