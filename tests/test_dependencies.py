"""What the package imports is what it asks for: hard dependencies are enough for the core, a missing extra is named."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from monai_margincal.extras import require

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "monai_margincal"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: module -> distribution, where the names differ
DISTRIBUTIONS = {"PIL": "pillow", "ignite": "pytorch-ignite", "yaml": "pyyaml"}
#: for those who work on the package, not for features of it
DEVELOPMENT = {"all", "test", "docs", "dev"}
#: loaded by the passes of `monai_margincal.ops` alone, which know what to do where triton is missing
ONLY_WITH_TRITON = {
    PACKAGE / "ops" / name
    for name in ("triton_kernels.py", "triton_launch.py", "triton_overlap.py", "triton_overlap_launch.py")
}


def names(requirements):
    return {re.match(r"[\w.-]+", one)[0].lower() for one in requirements} - {"monai-margincal"}


HARD = names(PROJECT["dependencies"])
EXTRAS = {extra: names(asked) for extra, asked in PROJECT["optional-dependencies"].items() if extra not in DEVELOPMENT}


def imported(tree):
    """Distribution and line of every third-party import in a piece of syntax."""
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module]
        for top in {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"__future__"}:
            yield DISTRIBUTIONS.get(top, top).lower(), node.lineno


def asked_for(tree):
    """Distribution, extra and line of every ``require(...)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
            extra = next(ast.literal_eval(word.value) for word in node.keywords if word.arg == "extra")
            modules = [node.args[0].value] if isinstance(node.args[0], ast.Constant) else []
            for module in modules:
                top = module.partition(".")[0]
                yield DISTRIBUTIONS.get(top, top).lower(), extra, node.lineno


def is_only_for_types(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_are_asked_for(path):
    """Each is a hard dependency or belongs to an extra; what is imported at once is a hard dependency."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    optional = set().union(*EXTRAS.values())
    for distribution, line in imported(tree):
        assert distribution in HARD | optional, f"line {line}: {distribution} is in no list of pyproject.toml"
    for distribution, extra, line in asked_for(tree):
        assert distribution in EXTRAS[extra], f"line {line}: {distribution} does not belong to the extra {extra}"
    if path in ONLY_WITH_TRITON:
        return
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Try) and not is_only_for_types(node):
            for distribution, line in imported(node):
                assert distribution in HARD, f"line {line}: {distribution} is optional: import it where it is used"


def test_every_extra_is_in_all_but_the_one_with_its_own_environment():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.search(r"\[(.*)\]", everything)[1].split(",")) == set(EXTRAS) - {"federated"}


def test_the_constraints_pin_what_is_asked_for():
    pinned = names((ROOT / "tests" / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:])
    wanted = HARD | names(PROJECT["optional-dependencies"]["test"]) | set().union(*EXTRAS.values()) - {"nvflare"}
    assert not wanted - pinned


def test_nothing_forces_a_version_of_jsonschema():
    """MONAI Label's pydicom-seg wants an older one than ``check-bundle``; both must go into one environment."""
    assert not {"jsonschema"} & (HARD | EXTRAS["bundle"] | EXTRAS["dicom"])


def needed(distributions):
    """The distributions and everything that they need themselves."""
    found, waiting = set(), list(distributions)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            try:
                asked = importlib.metadata.requires(one) or []
            except importlib.metadata.PackageNotFoundError:  # for another platform or an older Python
                continue
            waiting += names(line for line in asked if "extra ==" not in line)
    return found


@pytest.fixture(scope="module")
def only_the_core():
    """Runs code as if nothing but the hard dependencies, and what they need, were installed."""
    core = {one.replace("_", "-") for one in needed(HARD)} | {"monai-margincal"}
    blocked = sorted(
        module
        for module, distributions in importlib.metadata.packages_distributions().items()
        if not {one.lower().replace("_", "-") for one in distributions} & core and module not in sys.stdlib_module_names
    )
    assert {"itk", "pydicom", "scipy", "matplotlib", "fire", "jsonschema", "yaml"} <= set(blocked)
    block = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(blocked)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

    def run(code, folder):
        command = [sys.executable, "-c", block + code]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


CORE = """
import nibabel, numpy as np, torch
from PIL import Image
import monai_margincal as m

for name in m.__all__:
    getattr(m, name)

labels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) % 2
nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), "a.nii.gz")
Image.fromarray(labels[0]).save("b.png")
header = "NRRD0004\\ntype: uint8\\ndimension: 3\\nsizes: 2 3 4\\nencoding: raw\\n\\n"
open("c.nrrd", "wb").write(header.encode() + labels.tobytes("F"))
counts = m.count_labels(["a.nii.gz", "b.png", "c.nrrd"], num_classes=2, progress=False)
assert counts.counts.tolist() == [30, 30], counts

network = m.COPLENet(features=(4, 8, 16, 32, 64))
image, target = torch.zeros(1, 1, 32, 32), torch.zeros(1, 1, 32, 32)
for loss in (m.MarginCalibrationLoss, m.MarginCalibrationDiceLoss, m.MarginCalibrationTverskyLoss):
    loss(class_counts=counts)(network(image), target).backward()
metric = m.DatasetIoU(num_classes=2)
metric(network(image).argmax(1, keepdim=True), target)
print(metric.aggregate())
"""


def test_the_core_runs_without_any_extra(only_the_core, tmp_path):
    assert only_the_core(CORE, tmp_path)


#: feature -> code, extra, package
FEATURES = {
    "lungs": (
        "from monai_margincal.transforms import *; find_lung_region(np.zeros((8, 8, 8)) - 800)",
        "bundle",
        "scipy",
    ),
    "picture": (
        "from monai_margincal.outputs.segmentation_view import *; z = np.zeros((2, 2, 2));"
        "save_overlay([SegmentationView('a', z, None, z, (1, 1, 1))], 'a.png', ['background', 'lesion'], (0, 1))",
        "bundle",
        "matplotlib",
    ),
    "demo": ("cli('demo', '--output', 'new')", "bundle", "scipy"),
    "DICOM labels": (
        "open('a.dcm', 'wb').write(bytes(128) + b'DICM'); cli('count', 'a.dcm', '--num-classes', '2', '--output', 'a.json')",
        "dicom",
        "pydicom",
    ),
    "DICOM SEG": (
        "from monai_margincal.outputs import *; Outputs('dicom_seg', '.', class_names=['background', 'lesion'])",
        "dicom",
        "highdicom",
    ),
    "completion": ("cli('completion', 'bash')", "completion", "shtab"),
    "video": (
        "open('a.mp4', 'wb').write(b'0'); from monai_margincal.formats.video import *; from pathlib import Path;"
        "video_index(Path('a.mp4'))",
        "video",
        "av",
    ),
    "film": (
        "from monai_margincal.outputs import *; Outputs('frame_film', '.', frame_film={'format': 'h264'})",
        "video",
        "av",
    ),
    "override": ("cli('check-bundle', '.', '--override', 'a=1')", "check", "fire"),
    "schema": (
        "from monai_margincal.bundle.check.metadata import check_metadata; raise ImportError(check_metadata({})[0])",
        "check",
        "jsonschema",
    ),
    "study": ("import monai_margincal.experiments", "experiments", "yaml"),
    "compare": ("cli('compare', 'a.yaml', '--output', '.')", "experiments", "matplotlib"),
    "regret": ("cli('regret', 'a.csv', '--output', '.')", "experiments", "matplotlib"),
    "sites": (
        "from monai_margincal.statistics.federated import *; LabelCountStatistics('*.nii', num_classes=2)",
        "federated",
        "nvflare",
    ),
    "kernels": (
        "from monai_margincal import *; "
        "MarginCalibrationLoss(margins=0.0, backend='triton')(torch.zeros(1, 2, 3), torch.zeros(1, 3))",
        "triton",
        "triton",
    ),
}


@pytest.fixture(scope="module")
def messages(only_the_core, tmp_path_factory):
    """Feature -> the message where its packages are missing."""
    code = f"""
import json, numpy as np, torch
from monai_margincal.cli import build_parser

def cli(*words):
    arguments = build_parser().parse_args(words)
    arguments.run(arguments)

found = {{}}
for feature, (code, _, _) in {FEATURES!r}.items():
    try:
        exec(code)
        found[feature] = "no error"
    except Exception as error:
        found[feature] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(found))
"""
    return json.loads(only_the_core(code, tmp_path_factory.mktemp("features")).splitlines()[-1])


@pytest.mark.parametrize("feature", FEATURES)
def test_a_missing_extra_is_named(messages, feature):
    _, extra, package = FEATURES[feature]
    assert package in messages[feature]
    assert f'pip install "monai-margincal[{extra}]"' in messages[feature]
    assert extra in EXTRAS
    assert DISTRIBUTIONS.get(package, package).lower() in EXTRAS[extra]


def test_a_package_that_is_broken_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ImportError, match=r"the test needs broken_package, which cannot be imported \(No module named 'no_such"
    ):
        require("broken_package", extra="bundle", purpose="the test")
