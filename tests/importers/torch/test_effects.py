"""Operators that have no result: assertions and prints happen as they do without compiling."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import tapestry  # noqa: E402
from tapestry.importers.torch import export, recording  # noqa: E402
from tests.importers.torch.compare import check_forward, compiled  # noqa: E402

CHECKED = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13),
    reason="this PyTorch leaves such checks out of what a backend is given",
)


@CHECKED
def test_a_wrong_class_is_an_error() -> None:
    fast = compiled(lambda labels: functional.one_hot(labels, 3))
    with recording() as report:
        assert fast(torch.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert not report.external
    with pytest.raises(RuntimeError, match="must be smaller than num_classes"):
        fast(torch.tensor([2, 3]))


def test_effects_come_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    def model(x):
        torch.ops.aten._print("first")
        torch._assert_async((x > 0).all(), "not positive")
        torch.ops.aten._print("second")
        return x * 2

    fast = compiled(model)
    torch.testing.assert_close(fast(torch.ones(3)), 2 * torch.ones(3))
    assert capfd.readouterr().out.split() == ["first", "second"]
    with pytest.raises(RuntimeError, match="not positive"):
        fast(torch.zeros(3))


@CHECKED
def test_what_is_not_solvable_is_an_error() -> None:
    check_forward(torch.linalg.inv, torch.tensor([[2.0, 1.0], [0.0, 4.0]]))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        compiled(torch.linalg.inv)(torch.zeros(2, 2))


def test_a_module_has_no_effects() -> None:
    class Model(nn.Module):
        def forward(self, x):
            torch._assert_async((x > 0).all(), "not positive")
            return x * 2

    module = export(Model(), (torch.ones(3),))
    tapestry.run_pipeline(module, "default")
    (made,) = tapestry.run(module, {"x": -torch.ones(3).numpy()}).outputs
    assert made.tolist() == [-2, -2, -2]
