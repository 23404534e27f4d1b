"""COPLENet leaves PyTorch: scripted, traced, exported and as ONNX, over its options and at sizes not seen while exporting.

Project-MONAI/MONAI#8632, londonaicentre/FLIP#1019: TorchScript goes, and not every client takes what follows it.
"""

from __future__ import annotations

import io
import itertools
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.export import Dim

from monai_margincal.networks import COPLENet

SMALL = (8, 16, 32, 64, 128)
OPTIONS = [*itertools.product(("batch", "group", "instance"), ("bilinear", "deconv"))]

#: (shape used to trace or export, shapes to run at): neither, both or one side a multiple of 16
PLANES = ((2, 1, 40, 52), [(2, 1, 40, 52), (1, 1, 32, 48), (3, 1, 17, 64)])
VOLUMES = ((2, 1, 3, 40, 52), [(2, 1, 3, 40, 52), (1, 1, 1, 32, 32), (1, 1, 5, 48, 19)])

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def check_program(program, module: nn.Module, shapes, atol: float) -> None:
    """Compare `program` with `module` run eagerly at every shape; an AssertionError says where they part."""
    for shape in shapes:
        x = torch.rand(shape)
        with torch.no_grad():
            expected = module(x)
            found = torch.as_tensor(program(x))
        assert found.shape == expected.shape, (
            f"at {shape}: found {tuple(found.shape)}, expected {tuple(expected.shape)}"
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=atol, msg=lambda text, s=shape: f"at {s}: {text}")


def scripted(module: nn.Module):
    """Script, save, load: what a client without this package runs."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(module), buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def traced(module: nn.Module, shape):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", torch.jit.TracerWarning)
        program = torch.jit.trace(module, torch.rand(shape))
    # group and instance norm of PyTorch compare sizes for an error message; any other size or value is frozen by mistake
    library = str(Path(torch.__file__).parent)
    frozen = [f"{w.filename}:{w.lineno}" for w in caught if not w.filename.startswith(library)]
    assert not frozen, f"traced with sizes or values of the example frozen into the program at {frozen}"
    return program


def exported(module: nn.Module, shape) -> torch.export.ExportedProgram:
    dynamic = {axis: Dim.DYNAMIC for axis in range(len(shape)) if axis != 1}
    return torch.export.export(module, (torch.rand(shape),), dynamic_shapes=(dynamic,))


def as_onnx(module: nn.Module, shape):
    dynamic = {axis: Dim.DYNAMIC for axis in range(len(shape)) if axis != 1}
    program = torch.onnx.export(module, (torch.rand(shape),), dynamo=True, dynamic_shapes=(dynamic,), verbose=False)
    buffer = io.BytesIO()
    program.save(buffer)
    runner = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    (source,) = runner.get_inputs()
    assert [isinstance(size, int) for size in source.shape] == [axis == 1 for axis in range(len(shape))]
    return lambda x: runner.run(None, {source.name: np.ascontiguousarray(x)})[0]


@pytest.fixture
def network(request):
    torch.manual_seed(0)
    norm, upsample = request.param
    return COPLENet(features=SMALL, norm=norm, upsample=upsample, slice_batch_size=2).eval()


@pytest.mark.parametrize("network", OPTIONS, indirect=True)
def test_script(network):
    program = scripted(network)
    check_program(program, network, PLANES[1] + VOLUMES[1], atol=1e-6)


@pytest.mark.parametrize("network", [("batch", "bilinear")], indirect=True)
def test_script_of_a_network_in_training(network):
    network.train()
    program = torch.jit.script(network)
    loss = program(torch.rand(2, 1, 40, 52)).square().mean()
    loss.backward()
    assert network.in_conv.first.conv.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("network", [("batch", "bilinear")], indirect=True)
def test_script_refuses_other_ranks(network):
    with pytest.raises(torch.jit.Error, match="found an input of 3 dimensions"):
        scripted(network)(torch.rand(1, 32, 32))


@pytest.mark.parametrize(("example", "shapes"), [PLANES, VOLUMES], ids=["planes", "volumes"])
@pytest.mark.parametrize("network", OPTIONS, indirect=True)
def test_trace_at_sizes_not_traced(network, example, shapes):
    check_program(traced(network, example), network, shapes, atol=1e-4)


@pytest.mark.parametrize(
    ("network", "example", "shapes"),
    [
        (("batch", "bilinear"), *PLANES),
        (("group", "deconv"), *VOLUMES),
        *(pytest.param(o, *PLANES, marks=pytest.mark.slow) for o in OPTIONS if o != ("batch", "bilinear")),
        *(pytest.param(o, *VOLUMES, marks=pytest.mark.slow) for o in OPTIONS if o != ("group", "deconv")),
    ],
    indirect=["network"],
)
def test_export_at_sizes_not_exported(network, example, shapes):
    check_program(exported(network, example).module(), network, shapes, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "example", "shapes"),
    [(option, *sizes) for sizes in (PLANES, VOLUMES) for option in OPTIONS],
    indirect=["network"],
)
def test_onnx_at_sizes_not_exported(network, example, shapes):
    check_program(as_onnx(network, example), network, shapes, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("network", [("group", "bilinear")], indirect=True)
def test_compiled_as_one_graph(network):
    torch._dynamo.reset()
    program = torch.compile(network, backend="eager", fullgraph=True, dynamic=True)
    check_program(program, network, PLANES[1] + VOLUMES[1], atol=1e-5)


@pytest.mark.parametrize("network", [("batch", "bilinear")], indirect=True)
def test_programs_do_not_look_at_the_input(network):
    """The warning about unscaled input belongs to eager calls: it reads values, which no program may."""
    bright = torch.full((2, 1, 32, 32), 200.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        scripted(network)(bright)
        traced(network, PLANES[0])(bright)
    with pytest.warns(UserWarning, match="expected values scaled"):
        network(bright)


class FrozenSize(nn.Module):
    """Remembers the size it was traced with."""

    def forward(self, x):
        return x + torch.zeros(int(x.shape[2]), int(x.shape[3]))


class NotScriptable(nn.Module):
    def forward(self, x):
        return sorted([x], key=lambda t: float(t.sum()))[0]


class ValueBranch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class DifferentWhenScripted(nn.Module):
    def forward(self, x):
        return x + 1 if torch.jit.is_scripting() else x


def test_the_checks_above_can_fail():
    """MONAI 6497: a script test that had silently stopped raising."""
    with pytest.raises((RuntimeError, torch.jit.frontend.NotSupportedError)):
        scripted(NotScriptable())
    with pytest.raises(AssertionError, match=r"at \(1, 1, 4, 4\)"):
        check_program(scripted(DifferentWhenScripted()), DifferentWhenScripted(), [(1, 1, 4, 4)], atol=1e-4)
    with pytest.raises(AssertionError, match=r"frozen into the program at .*test_coplenet_exports"):
        traced(FrozenSize(), (1, 1, 4, 4))
    with pytest.raises(Exception, match=r"[Cc]onstrain|specializ|dynamic"):
        exported(FrozenSize().requires_grad_(False), (2, 1, 4, 4)).module()(torch.rand(2, 1, 5, 5))
    with pytest.raises(Exception, match=r"data-dependent"):
        exported(ValueBranch(), (2, 1, 4, 4))
    with pytest.raises(AssertionError, match="expected"):
        check_program(lambda x: x[..., :2], nn.Identity(), [(1, 1, 4, 4)], atol=1.0)
