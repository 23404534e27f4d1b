"""`torch.func`: grad, vmap, jacrev, jacfwd and what is made of them, against one case and one derivative at a time."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

from monai_margincal import (
    LovaszSoftmaxLoss,
    MarginCalibrationDiceLoss,
    MarginCalibrationLoss,
    MarginCalibrationTverskyLoss,
)

LOSSES = {
    "mean": MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=255),
    "sum, shared margins": MarginCalibrationLoss(margins=0.5, reduction="sum", ignore_index=255),
    "none": MarginCalibrationLoss(margins=0.5, reduction="none", ignore_index=255),
    "global_mean": MarginCalibrationLoss(margins=0.5, global_mean=True, ignore_index=255),
    "kernels": MarginCalibrationLoss(margins=0.5, backend="triton", ignore_index=255),
    "dice": MarginCalibrationDiceLoss(class_counts=[900, 90, 10], ignore_index=255),
    "tversky": MarginCalibrationTverskyLoss(margins=0.5, batch=True, ignore_index=255),
    "lovasz": LovaszSoftmaxLoss(per_image=True, ignore_index=255),
}
losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
margin_losses = pytest.mark.parametrize(
    "loss", [v for k, v in LOSSES.items() if k != "lovasz"], ids=[k for k in LOSSES if k != "lovasz"]
)


def problem(form="index"):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 3, 5, 2, generator=generator)
    labels = torch.randint(0, 2, (4, 1, 5, 2), generator=generator)
    if form == "one value per class":
        return logits, torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1).float()
    labels[0, 0, 0] = 255
    labels[3] = 255
    return logits, labels


def by_autograd(loss, logits, *arguments):
    leaf = logits.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, *arguments).sum(), leaf)
    return gradient


def one_case(loss):
    """The loss of a case without its batch dimension."""
    return lambda x, *arguments: loss(x[None], *(one[None] for one in arguments)).sum()


@losses
def test_grad_vjp_and_value(loss):
    logits, labels = problem()
    expected = by_autograd(loss, logits, labels)
    found, value = grad_and_value(lambda x: loss(x, labels).sum())(logits)
    torch.testing.assert_close((found, value), (expected, loss(logits, labels).sum()))
    value, pull = vjp(lambda x: loss(x, labels), logits)
    torch.testing.assert_close(pull(torch.full_like(value, -2.5))[0], -2.5 * expected)
    torch.testing.assert_close(grad(lambda y, x: loss(x, y).sum(), argnums=1)(labels, logits), expected)


@losses
@pytest.mark.parametrize("form", ["index", "one value per class"])
def test_vmap_is_case_by_case(loss, form):
    if loss.__dict__.get("backend") == "triton" and form != "index":
        pytest.skip("the kernels take class indices")
    logits, target = problem(form)
    function = one_case(loss)
    expected = torch.stack([function(x, y) for x, y in zip(logits, target, strict=True)])
    torch.testing.assert_close(vmap(function)(logits, target), expected)
    torch.testing.assert_close(vmap(function, in_dims=(1, 0))(logits.movedim(0, 1), target), expected)
    slopes = torch.stack([by_autograd(function, x, y) for x, y in zip(logits, target, strict=True)])
    torch.testing.assert_close(vmap(grad(function))(logits, target), slopes)
    torch.testing.assert_close(grad(lambda x: vmap(function)(x, target).sum())(logits), slopes)
    # one target for all, and all targets for one
    torch.testing.assert_close(vmap(function, in_dims=(0, None))(logits, target[1])[1], expected[1])
    torch.testing.assert_close(vmap(function, in_dims=(None, 0))(logits[1], target)[1], expected[1])


@losses
def test_autograd_through_vmap(loss):
    logits, labels = problem()
    leaf = logits.clone().requires_grad_()
    vmap(one_case(loss))(leaf, labels).sum().backward()
    expected = [by_autograd(one_case(loss), x, y) for x, y in zip(logits, labels, strict=True)]
    torch.testing.assert_close(leaf.grad, torch.stack(expected))


@losses
def test_jacrev(loss):
    logits, labels = problem()
    logits, labels = logits[:2], labels[:2]
    expected = torch.autograd.functional.jacobian(lambda x: loss(x, labels), logits)
    torch.testing.assert_close(jacrev(lambda x: loss(x, labels))(logits), expected)
    torch.testing.assert_close(
        torch.autograd.functional.jacobian(lambda x: loss(x, labels), logits, vectorize=True), expected
    )


@losses
def test_forward_mode(loss):
    logits, labels = problem()
    logits, labels = logits[:2], labels[:2]
    expected = torch.autograd.functional.jacobian(lambda x: loss(x, labels), logits)
    # torch 2.13 widens the tangent of a Python number times a scalar to float64
    torch.testing.assert_close(jacfwd(lambda x: loss(x, labels))(logits), expected, check_dtype=False)
    tangent = torch.randn_like(logits)
    _, pushed = jvp(lambda x: loss(x, labels), (logits,), (tangent,))
    torch.testing.assert_close(pushed, (expected * tangent).sum((-1, -2, -3, -4)), check_dtype=False)


@margin_losses
def test_class_mask(loss):
    logits, labels = problem()
    labels = labels[1:3]
    logits, mask = logits[1:3], torch.tensor([[True, True, False], [True, True, True]])
    function = one_case(loss)
    for wanted in (function, grad(function)):
        expected = torch.stack([wanted(*one) for one in zip(logits, labels, mask, strict=True)])
        torch.testing.assert_close(vmap(wanted)(logits, labels, mask), expected)


@margin_losses
def test_margins_as_arguments(loss):
    """Several settings of the margins at once."""
    logits, labels = problem()
    name = "margin_negative" if isinstance(loss, MarginCalibrationLoss) else "margin_calibration.margin_negative"
    size = dict(loss.named_buffers())[name].numel()
    margins = torch.rand(3, size)

    def function(margin):
        return functional_call(loss, {name: margin}, (logits, labels)).sum()

    torch.testing.assert_close(vmap(function)(margins), torch.stack([function(one) for one in margins]))


def test_per_sample_gradients_of_a_network():
    network, loss = torch.nn.Conv1d(1, 3, 3, padding=1), LOSSES["dice"]
    images, labels = torch.randn(4, 1, 9), torch.randint(0, 3, (4, 1, 9))

    def function(parameters, image, label):
        return loss(functional_call(network, parameters, (image[None],)), label[None])

    parameters = {name: one.detach() for name, one in network.named_parameters()}
    found = vmap(grad(function), in_dims=(None, 0, 0))(parameters, images, labels)
    for case in range(4):
        network.zero_grad()
        loss(network(images[case : case + 1]), labels[case : case + 1]).backward()
        for name, one in network.named_parameters():
            torch.testing.assert_close(found[name][case], one.grad)


@pytest.mark.parametrize("name", ["mean", "none", "dice"])
def test_second_derivative_is_refused(name):
    logits, labels = problem()
    for second in (hessian, lambda f: jacrev(jacrev(f)), lambda f: grad(lambda x: grad(f)(x).sum())):
        with pytest.raises(RuntimeError, match="no second derivative"):
            second(lambda x: LOSSES[name](x, labels).sum())(logits)


@losses
def test_wrong_labels_are_told(loss):
    if loss.__dict__.get("backend") == "triton":
        pytest.skip("the kernels tell them at the next call")
    logits, labels = problem()
    labels[2, 0, 1] = 7
    for wanted in (one_case(loss), grad(one_case(loss))):
        with pytest.raises(ValueError, match=r"found the label value\(s\) 7, expected class ids"):
            vmap(wanted)(logits, labels)


def test_half_precision():
    logits, labels = problem()
    loss = LOSSES["mean"]
    found = vmap(grad(one_case(loss)))(logits.half(), labels)
    assert found.dtype == torch.float16
    expected = [by_autograd(one_case(loss), x, y) for x, y in zip(logits.half(), labels, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))


def test_second_derivative_of_lovasz():
    """As without `torch.func`; only within `vmap` it is refused."""
    logits, labels = problem()
    logits, labels = logits[1:3], labels[1:3]
    expected = torch.autograd.functional.hessian(lambda x: LOSSES["lovasz"](x, labels), logits)
    torch.testing.assert_close(hessian(lambda x: LOSSES["lovasz"](x, labels))(logits), expected)
    with pytest.raises(RuntimeError, match="second derivative of a loss under vmap"):
        vmap(hessian(one_case(LOSSES["lovasz"])))(logits, labels)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
def test_compiled():
    logits, labels = problem()
    function = vmap(grad(one_case(LOSSES["mean"])))
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, labels), function(logits, labels))
