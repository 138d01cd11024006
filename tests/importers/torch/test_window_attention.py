"""Attention in windows of images is products of matrices, though rows and columns are two axes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from tapestry.dialects import loom  # noqa: E402
from tapestry.frontend import run_pipeline  # noqa: E402
from tapestry.importers.torch import export  # noqa: E402
from tapestry.runtime.prepared import PreparedProgram, operations  # noqa: E402

WINDOW, WIDTH = 7, 16


class Attention(nn.Module):
    """Windows of images (batch, height, width, channels), each attending to itself."""

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        x = x.view(b, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, WINDOW * WINDOW, c)
        x = (x @ x.mT).softmax(-1) @ x
        x = x.view(-1, h // WINDOW, w // WINDOW, WINDOW, WINDOW, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)


def test_no_pass_over_all_for_each_cell_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[loom.OperationOp] = []
    plain = operations.unrolled

    def unrolled(op: loom.OperationOp, *others: object) -> object:
        run = plain(op, *others)  # pyright: ignore[reportArgumentType]
        if run is not None:
            made.append(op)
        return run

    monkeypatch.setattr(operations, "unrolled", unrolled)
    x = torch.randn(1, 4 * WINDOW, 4 * WINDOW, WIDTH)
    model = Attention()
    module = export(model, (x,))
    run_pipeline(module, "default")
    (got,) = PreparedProgram(module)([x.numpy()])
    torch.testing.assert_close(torch.from_numpy(got), model(x))
    assert not made
