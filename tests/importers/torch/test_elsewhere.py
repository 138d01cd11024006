"""Graphs of tensors that are not on the CPU: PyTorch says other things of their results.

Nothing here needs a GPU: they are on the device "meta", where nothing has cells.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from tapestry.caching import lowered  # noqa: E402
from tapestry.importers.torch.graphs import program_of  # noqa: E402
from tapestry.runtime.prepared import PreparedProgram  # noqa: E402


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_batch_norm_of_known_statistics(device: str) -> None:
    """Its second and third results are empty on the CPU only."""
    operator = torch.ops.aten._native_batch_norm_legit_no_training
    shapes = [(2, 3, 4), (3,), (3,), (3,), (3,)]
    given = [torch.empty(shape, device=device) for shape in shapes]
    graph = make_fx(lambda *x: operator(*x, 0.1, 1e-5))(*given)
    run = PreparedProgram(lowered(program_of(graph).module, "default"))
    cells = [torch.rand(shape) for shape in shapes]
    result, mean, rstd = map(torch.from_numpy, run([one.numpy() for one in cells]))
    torch.testing.assert_close(result, operator(*cells, 0.1, 1e-5)[0])
    if device == "cpu":
        assert mean.shape == rstd.shape == (0,)
    else:
        torch.testing.assert_close(mean, cells[3])
        torch.testing.assert_close(rstd, (cells[4] + 1e-5).rsqrt())
