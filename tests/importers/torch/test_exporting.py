"""Models as modules: with their weights, or with names for them."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tapestry  # noqa: E402
from tapestry.dialects import loom  # noqa: E402
from tapestry.importers.torch import export  # noqa: E402
from tapestry.importers.torch.exporting import exported_program  # noqa: E402
from tests.importers.torch import models  # noqa: E402


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def test_weights_are_constants(tmp_path: Path) -> None:
    model, x = models.ViT().eval(), torch.randn(2, 3, 8, 8)
    module = export(model, (x,))
    assert [argument.name for argument in tapestry.arguments(module)] == ["x"]
    tapestry.save(module, tmp_path / "vit.mlir")
    got = tapestry.load(tmp_path / "vit.mlir")(x=x)
    torch.testing.assert_close(got, model(x).detach(), rtol=1e-5, atol=1e-5)


def test_weights_are_arguments() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval(), torch.randn(2, 3)
    module = export(model, (x,), weights="arguments")
    first, *weights = [argument.name for argument in tapestry.arguments(module)]
    assert first == "input"
    assert {"0.weight", "0.bias", "1.running_mean"} <= set(weights)
    tapestry.run_pipeline(module, "default")
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    given = {name: state[name] for name in weights}
    (got,) = tapestry.run(module, {"input": x.numpy(), **given}).outputs
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_keywords_and_structures() -> None:
    class Model(nn.Module):
        def forward(self, pair, *, scale=None):
            return {"sum": pair[0] + pair[1] * scale, "none": None}

    x, y, scale = torch.randn(3), torch.randn(3), torch.tensor(2.0)
    module = export(Model(), ((x, y),), {"scale": scale})
    names = [argument.name for argument in tapestry.arguments(module)]
    assert names == ["pair_0", "pair_1", "scale"]
    tapestry.run_pipeline(module, "default")
    arrays = [tensor.numpy() for tensor in (x, y, scale)]
    (got,) = tapestry.run(module, dict(zip(names, arrays, strict=True))).outputs
    np.testing.assert_allclose(got, (x + y * scale).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "model", [nn.GRU(4, 5), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)]
)
def test_layers_are_taken_apart(model: nn.Module) -> None:
    x = torch.randn(3, 2, 4)
    program = exported_program(model.eval(), (x,))
    assert program.coverage.native_share == 1
    tapestry.run_pipeline(program.module, "default")
    name = tapestry.arguments(program.module)[0].name
    made = tapestry.run(program.module, {name: x.numpy()}).outputs[0]
    want = torch.utils._pytree.tree_leaves(model(x))[0]
    np.testing.assert_allclose(made, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_inputs_that_are_returned_are_results() -> None:
    class Model(nn.Module):
        def forward(self, x, y):
            return y, x + y, x

    x, y = torch.randn(3), torch.randn(3)
    module = export(Model(), (x, y))
    tapestry.run_pipeline(module, "default")
    got = tapestry.run(module, {"x": x.numpy(), "y": y.numpy()}).outputs
    for array, tensor in zip(got, (y, x + y, x), strict=True):
        np.testing.assert_array_equal(array, tensor.numpy())


def test_what_is_written_comes_last() -> None:
    model, x = nn.BatchNorm1d(4), torch.randn(5, 4)
    module = export(model, (x,))
    tapestry.run_pipeline(module, "default")
    made, mean, variance, count = tapestry.run(module, {"input": x.numpy()}).outputs
    np.testing.assert_allclose(made, model(x).detach().numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mean, model.running_mean.numpy(), rtol=1e-5)
    np.testing.assert_allclose(variance, model.running_var.numpy(), rtol=1e-5)
    assert count == 1


def test_coverage_and_places() -> None:
    program = exported_program(models.GPT2().eval(), (torch.randint(17, (2, 6)),))
    assert program.coverage.native_share == 1
    files = {use.location.file for use in program.coverage.uses if use.location is not None}
    assert files == {models.__file__}


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_function_is_a_model_without_weights() -> None:
    module = export(lambda x, scale: x * scale["by"], (torch.ones(3), {"by": torch.ones(3)}))
    assert [one.name for one in tapestry.arguments(module)] == ["x", "scale_by"]


class Sparse(nn.Module):
    def forward(self, x):
        return x.to_sparse()


LINEAR, ROWS = nn.Linear(3, 2), torch.randn(2, 3)


@pytest.mark.parametrize(
    ("model", "args", "message"),
    [
        (LINEAR, ROWS, r"the arguments are a Tensor\n.*export\(model, \(x,\)\)"),
        (LINEAR, {"x": ROWS}, "the arguments are a dict"),
        (LINEAR, (ROWS, ROWS), "TypeError: too many positional arguments$"),
        (LINEAR, (ROWS.T,), "must have same reduction dim"),
        (nn.Linear, (ROWS,), "not a class"),
        ("model", (ROWS,), "not a str"),
        (Sparse(), (ROWS,), "a tensor is torch.sparse_coo, and not dense"),
    ],
)
def test_what_does_not_fit_is_said(model: object, args: object, message: str) -> None:
    with pytest.raises(tapestry.TapestryError, match=message):
        export(model, args)


def test_what_cannot_be_exported() -> None:
    class Branch(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(
        tapestry.TapestryError, match=r"test_exporting.py:\d+:\d+: error: PyTorch cannot export"
    ):
        export(Branch(), (torch.randn(3),))
    with pytest.raises(tapestry.TapestryError, match="the weight weight is on the device meta"):
        export(nn.Linear(2, 2, device="meta"), (torch.randn(2, 2, device="meta"),))
    with pytest.raises(tapestry.UsageError, match="weights are constants or arguments"):
        export(nn.Linear(2, 2), (torch.randn(2, 2),), weights="files")


def test_the_gradient_of_a_loss_counts_no_labels() -> None:
    """Each row has one label: what is summed over all columns for it is a number."""

    def gradient(logits, labels):
        rows = torch.log_softmax(logits, 1)
        ones = torch.ones(())
        total = torch.tensor(6.0)
        back = torch.ops.aten.nll_loss_backward(ones, rows, labels, None, 1, -100, total)
        return torch.ops.aten._log_softmax_backward_data(back, rows, 1, torch.float32)

    logits, labels = torch.randn(6, 50), torch.tensor([3, -100, 0, 49, 7, 7])
    module = export(gradient, (logits, labels))
    tapestry.run_pipeline(module, "default")
    folds = [op for op in module.walk() if isinstance(op, loom.OperationOp) and op.fold_dims]
    assert len(folds) == 1  # the softmax's own
    (got,) = tapestry.run(module, {"logits": logits.numpy(), "labels": labels.numpy()}).outputs
    np.testing.assert_allclose(got, gradient(logits, labels).numpy(), rtol=1e-5, atol=1e-6)
