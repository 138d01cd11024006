"""Convolutions of every form, and their gradients: equal to PyTorch's, none left to it."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

CONVOLUTIONS = {
    "1d": (nn.Conv1d(3, 4, 3), (2, 3, 9)),
    "1d_dilated_strided": (nn.Conv1d(3, 4, 3, stride=3, dilation=2, padding=1), (2, 3, 12)),
    "2d": (nn.Conv2d(3, 4, 3), (2, 3, 6, 6)),
    "2d_asymmetric_kernel": (nn.Conv2d(3, 4, (3, 5), padding=(1, 2)), (2, 3, 6, 7)),
    "2d_strided_dilated": (nn.Conv2d(3, 4, 3, (2, 1), (2, 1), (2, 1)), (2, 3, 8, 7)),
    "2d_grouped": (nn.Conv2d(4, 6, 3, groups=2, padding=1), (2, 4, 5, 5)),
    "2d_depthwise": (nn.Conv2d(3, 3, 3, groups=3, bias=False), (2, 3, 6, 5)),
    "2d_pointwise": (nn.Conv2d(3, 5, 1), (2, 3, 4, 5)),
    "2d_separable": (
        nn.Sequential(nn.Conv2d(3, 3, 3, groups=3, padding=1), nn.Conv2d(3, 5, 1)),
        (2, 3, 5, 5),
    ),
    "3d": (nn.Conv3d(2, 3, 3, stride=(1, 2, 1), padding=1), (1, 2, 4, 5, 4)),
    "transposed_1d": (nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, dilation=2), (2, 3, 5)),
    "transposed_2d": (nn.ConvTranspose2d(3, 4, 3), (2, 3, 4, 5)),
    "transposed_2d_padded": (
        nn.ConvTranspose2d(4, 4, (3, 2), (2, 3), (1, 0), (1, 2), groups=2),
        (2, 4, 3, 4),
    ),
    "transposed_2d_dilated": (
        nn.ConvTranspose2d(3, 4, 3, stride=5, padding=1, dilation=2),
        (1, 3, 3, 3),
    ),
    "transposed_3d": (
        nn.ConvTranspose3d(2, 2, (2, 3, 2), stride=2, padding=1, output_padding=1),
        (1, 2, 2, 3, 2),
    ),
}


SOME = ("1d", "2d_strided_dilated", "2d_grouped", "transposed_2d_padded")


@pytest.mark.parametrize(
    "name",
    [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in CONVOLUTIONS],
)
def test_a_convolution(name):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, shape = CONVOLUTIONS[name]
    compiled = torch.compile(model, backend="tapestry", fullgraph=True, options={"strict": True})
    inputs = [torch.randn(shape, requires_grad=True)]
    inputs.append(inputs[0].detach().clone().requires_grad_())
    results = [compiled(inputs[0]), model(inputs[1])]
    torch.testing.assert_close(*results)
    seed = torch.randn_like(results[1])
    leaves = [[x, *model.parameters()] for x in inputs]
    gradients = [
        torch.autograd.grad(result, given, seed)
        for result, given in zip(results, leaves, strict=True)
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("extents", [(2, 1, 12, 16), (2, 4, 1, 16), (2, 4, 12, 1), (1, 1, 1, 1)])
def test_gradients_of_results_that_are_spread(extents: tuple[int, ...]) -> None:
    """As those of a sum, outside of what is compiled: many cells are one in memory."""

    def plain(x: Any, w: Any) -> Any:
        return torch.nn.functional.conv2d(x, w, padding=1)

    torch._dynamo.reset()
    call = torch.compile(plain, backend="tapestry")
    for seed in range(3):  # the first call is not as the later ones
        torch.manual_seed(seed)
        x = torch.randn(2, 3, 12, 16, requires_grad=True)
        w = torch.randn(4, 3, 3, 3, requires_grad=True)
        gradient = torch.randn(extents).expand(2, 4, 12, 16)
        want = torch.autograd.grad(plain(x, w), [x, w], gradient)
        got = torch.autograd.grad(call(x, w), [x, w], gradient)
        for have, expected in zip(got, want, strict=True):
            torch.testing.assert_close(have, expected, rtol=1e-4, atol=1e-4)
