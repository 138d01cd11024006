"""Complex numbers: computed by their parts, equal to PyTorch, forward and backward."""

# pyright: basic
# PyTorch has no types to speak of.

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.importers.torch.compare import check_forward, check_training, compiled  # noqa: E402


def c(*shape):
    return torch.randn(shape, dtype=torch.complex64)


PROGRAMS = {
    "arithmetic": (lambda x, y: (x + y, x - 2j * y, x * y, -x, x / y, 1 / x, x / 2), c(3, 4), c(4)),
    "parts": (lambda x: (x.real, x.imag, x.abs(), x.angle(), x.conj() * x, x.sgn()), c(3, 4)),
    "views": (
        lambda x: (x.T.reshape(-1)[1::2], x[:, None].expand(3, 2, 4), x.flip(0).unbind(1)[2]),
        c(3, 4),
    ),
    "sums": (lambda x: (x.sum(), x.sum(0), x.mean(1, keepdim=True), x.cumsum(1)), c(3, 4)),
    "products": (lambda x, y: (x @ y, torch.einsum("ij,kj->ik", x, x.conj())), c(3, 4), c(4, 2)),
    "beside reals": (lambda x, y: (x * y, torch.cat([x, y]), x + 1, y + 1j), c(3), torch.randn(3)),
    "choices": (lambda x, y: (torch.where(x.real > 0, x, y), x == y, x != x), c(3, 4), c(3, 4)),
    "equal to a number": (
        lambda x: (
            x == 1,
            x != 1,
            x == 1 + 2j,
            x.real == 1j,
            x != 0.5,
            x == torch.tensor(0.1).double(),
        ),
        torch.tensor([1, 1 + 2j, 2j, 0.5, 0.1]),
    ),
    "numbers equal to a complex one": (
        lambda i, b, u, h, w: (
            *(i == 0.5 + 0j, i != 1.9 + 0j, i == 1j, i == 16777217 + 0j, b == 2 + 0j),
            *(u == 256 + 0j, h == 0.1 + 0j, w == 0.1 + 0j),
        ),
        torch.tensor([0, 1, 2, -1, 16777216, 16777217]),
        torch.tensor([True, False]),
        torch.tensor([0, 1], dtype=torch.uint8),
        torch.tensor([0.1, 0.2], dtype=torch.bfloat16),
        torch.tensor([0.1, 0.2], dtype=torch.float64),
    ),
    "made": (lambda r, a: (torch.polar(r, a), torch.complex(r, a).exp()), *torch.rand(2, 5)),
    "casts": (lambda x, y: (x.to(torch.complex128), y.to(torch.complex64)), c(3), torch.rand(3)),
    "indices": (
        lambda x, at: (x[at], x.index_select(1, at), x[:, at]),
        c(4, 4),
        torch.tensor([2, 0]),
    ),
    "padding": (lambda x: (nn.functional.pad(x, (1, 2)), torch.zeros_like(x), x.tril()), c(3, 4)),
}


@pytest.mark.parametrize("on", ["numpy", "triton"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_operators(name: str, on: str) -> None:
    function, *args = PROGRAMS[name]
    report = check_forward(function, *args, on=on)
    assert not report.external, report


class Rotary(nn.Module):
    """Positions as turns of the complex plane: each pair of cells is a number."""

    def __init__(self, width: int = 8, length: int = 5) -> None:
        super().__init__()
        rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(float(length)), rates)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))
        self.q = nn.Linear(width, width)

    def forward(self, x):
        q = torch.view_as_complex(self.q(x).float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(q * self.turns[: x.shape[1]]).flatten(-2).type_as(x)


def test_rotary_positions() -> None:
    x = torch.randn(2, 5, 8)
    report = check_training(Rotary(), lambda run, x: run(x).square().sum(), (x,))
    assert not report.external, report
    assert not check_forward(Rotary(), x, on="triton").external


def test_gradients() -> None:
    x, y = c(3, 4).requires_grad_(), c(4, 3).requires_grad_()

    def loss(x, y):
        return ((x @ y).exp() / (2 + x.abs().sum())).abs().square().sum()

    torch.testing.assert_close(
        torch.autograd.grad(compiled(loss)(x, y), (x, y)), torch.autograd.grad(loss(x, y), (x, y))
    )


def test_what_has_no_lowering_stays_pytorchs() -> None:
    report = check_forward(lambda x: torch.fft.fft(x + 1j).sin() * 2, c(6))
    assert {use.operator for use in report.external} == {
        "aten._fft_c2c.default",
        "aten.sin.default",
    }
