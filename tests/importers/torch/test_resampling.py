"""Windows put together, and planes sampled anew: values and gradients beside those in float64."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from tests.importers.torch.compare import compiled  # noqa: E402

CASES = {
    "fold": (
        lambda x: functional.fold(x, (7, 8), (3, 2), dilation=(1, 2), padding=1, stride=(2, 1)),
        [(2, 12, 32)],
    ),
    "unfold": (lambda x: functional.unfold(x, 3, padding=1, stride=2), [(2, 3, 7, 8)]),
    "upsampling": (
        lambda x: functional.interpolate(x, size=(7, 9), mode="bilinear"),
        [(2, 3, 4, 5)],
    ),
    "adaptive": (lambda x: functional.adaptive_avg_pool2d(x, (3, 2)), [(2, 3, 7, 5)]),
    "adaptive rows": (lambda x: functional.adaptive_avg_pool1d(x, 4), [(2, 3, 9)]),
    "adaptive along one": (lambda x: functional.adaptive_avg_pool2d(x, (7, 2)), [(2, 3, 7, 5)]),
    "adaptive along none": (lambda x: functional.adaptive_avg_pool2d(x, (7, 5)), [(2, 3, 7, 5)]),
    "sampling": (
        lambda x, at: functional.grid_sample(x, at, mode="bilinear", align_corners=False),
        [(2, 3, 5, 6), (2, 4, 4, 2)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    function, shapes = CASES[name]
    made = torch.Generator().manual_seed(0)
    wide = [torch.rand(shape, generator=made).double() * 1.6 - 0.8 for shape in shapes]
    found: list[list[torch.Tensor]] = []
    for run, given in ((compiled(function), [one.float() for one in wide]), (function, wide)):
        leaves = [one.requires_grad_() for one in given]
        result = run(*leaves)
        weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
        gradients = torch.autograd.grad((result * weights).sum(), leaves)
        found.append([result.detach(), *gradients])
    for got, want in zip(*found, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-4)
