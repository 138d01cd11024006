"""`torch.compile(model, backend="tapestry")` gives what PyTorch gives."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._higher_order_ops import while_loop  # noqa: E402

import tapestry  # noqa: E402
from tapestry.importers.torch import backend, coverage  # noqa: E402
from tests.importers.torch.compare import check_forward, check_training, compiled  # noqa: E402


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def perceptron() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def test_a_perceptron() -> None:
    report = check_forward(perceptron(), torch.randn(5, 8))
    assert report.native_share == 1
    assert len(report.uses) == 5


def test_the_name_is_registered() -> None:
    entries = {e.name: e.value for e in _entry_points() if e.name == "tapestry"}
    assert entries == {"tapestry": "tapestry.importers.torch:backend"}
    model, x = perceptron(), torch.randn(5, 8)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, backend="tapestry")(x), model(x))


def _entry_points():
    from importlib.metadata import entry_points

    return entry_points(group="torch_dynamo_backends")


def cross_entropy(model, x, labels):
    return nn.functional.cross_entropy(model(x), labels)


def test_training_a_perceptron() -> None:
    x, labels = torch.randn(5, 8), torch.randint(4, (5,))
    report = check_training(perceptron(), cross_entropy, (x, labels), steps=2)
    assert any(use.operator == "aten.mm.default" for use in report.uses)


def test_other_batches_are_compiled_again(caplog: pytest.LogCaptureFixture) -> None:
    model = perceptron()
    fast = compiled(model)
    with torch.no_grad(), caplog.at_level(logging.INFO, "tapestry.recompiles"):
        for batch in (5, 3, 7, 3):
            x = torch.randn(batch, 8)
            torch.testing.assert_close(fast(x), model(x))
    (again,) = [line for line in caplog.messages if "is compiled again" in line]
    assert "7" in again


def test_a_marching_batch_is_compiled_once_for_each_size(caplog: pytest.LogCaptureFixture) -> None:
    model = perceptron()
    fast = compiled(model)
    with torch.no_grad(), caplog.at_level(logging.INFO, "tapestry.recompiles"):
        for batch in (*range(2, 13), *range(12, 2, -1)):
            x = torch.randn(batch, 8)
            torch.testing.assert_close(fast(x), model(x))
    again = [line for line in caplog.messages if "is compiled again" in line]
    assert len(again) == 9  # 2 and 3 are PyTorch's to compile for
    assert "s" in again[-1]
    assert again[-1].endswith("= 11)")
    assert again[-1].count("=") == 1 + 4
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "was compiled for 8 choices of its sizes" in warning.getMessage()


def test_a_mark_of_a_dynamic_size_is_kept() -> None:
    model = perceptron()
    fast = compiled(model)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for batch in (5, 6, 9):
            x = torch.randn(batch, 8)
            torch._dynamo.mark_dynamic(x, 0)
            torch.testing.assert_close(fast(x), model(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xyz": 1}, "the backend has no option 'xyz'\n  hint: there are on,"),
        ({"pipelin": "default"}, "did you mean pipeline?"),
        ({"on": "gpu"}, "there is no executor 'gpu'\n  hint: one of reference, numpy, triton"),
        ({"strict": 1}, "the option strict is a bool, not 1"),
        ({"pipeline": "loom-fuse{"}, "is not well formed"),
        (["on"], "options are a dictionary, not ['on']"),
        ({"numerics": "wrong"}, "there is no numerics 'wrong'"),
        ({1: 2}, "the backend has no option 1"),
    ],
)
def test_wrong_options(options: object, message: str) -> None:
    with pytest.raises(tapestry.UsageError, match="error") as error:
        backend(None, [], options=options)
    assert message in str(error.value)


def test_programs_are_dumped(tmp_path: Path) -> None:
    check_forward(perceptron(), torch.randn(5, 8), dump=tmp_path)
    (folder,) = tmp_path.iterdir()
    first, *_, last = sorted(folder.glob("*.mlir"))
    assert "weft.apply @addmm" in first.read_text()
    tapestry.load_module(str(last))
    assert {"repro.py", "inputs.npz"} <= {path.name for path in folder.iterdir()}


def test_what_is_dumped_runs_again(tmp_path: Path) -> None:
    model, x = perceptron(), torch.randn(5, 8)
    compiled(model, dump=str(tmp_path))(x).sum().backward()
    for script in tmp_path.glob("*/repro.py"):
        done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True)
        assert b"output 0: float32" in done.stdout


class Sorted(nn.Module):
    def forward(self, x):
        return torch.special.i0(x) + 1


def test_what_is_not_native_stays_pytorchs() -> None:
    report = check_forward(Sorted(), torch.randn(5, 8))
    (use,) = report.external
    assert use.operator == "aten.i0.default"
    assert Path(use.location.file).name == Path(__file__).name
    assert "1 x aten.i0.default is external: it has no lowering" in str(report)


def test_a_result_that_pytorch_leaves_undefined_has_no_cells() -> None:
    """As the fourth of `mkldnn_rnn_layer`, which is for a backward pass."""
    model = nn.LSTM(4, 5, num_layers=2).eval()
    x = torch.randn(6, 3, 4)
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        got, (hidden, cells) = compiled(model)(x)
        want = model(x)
    torch.testing.assert_close((got, (hidden, cells)), want)


def test_strict_refuses_what_is_not_native() -> None:
    with pytest.raises(Exception, match="cannot be imported: it has no lowering") as error:
        check_forward(Sorted(), torch.randn(5, 8), strict=True)
    assert "test_backend.py:" in str(error.value)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            lambda x: torch.cond(x.sum() > 0, torch.special.i0, torch.cos, (x,)),
            "cond cannot be a selection: a branch has aten.i0.default, which is PyTorch's to run",
        ),
        (
            lambda x: while_loop(lambda y: y.sum() < 9, lambda y: (y.exp(),), (x,)),
            "while_loop takes functions",
        ),
        (lambda x: x.nonzero() + 1, "aten.nonzero.default: the size u0 depends on data"),
        (lambda x: x.to(torch.complex32) * 2, "there are no tensors of torch.complex32"),
        (lambda x: x.to("meta") * 2, "there are no programs on meta"),
    ],
)
def test_what_is_refused_is_located(model, says: str) -> None:
    with (
        torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True),
        pytest.raises(Exception, match=says) as error,
    ):
        check_forward(model, torch.randn(5, 8))
    assert "test_backend.py:" in str(error.value)


def test_triton_runs_the_kernels() -> None:
    check_forward(perceptron(), torch.randn(5, 8), on="triton")


def test_reference_runs_operation_by_operation() -> None:
    check_forward(perceptron(), torch.randn(5, 8), on="reference")


def test_coverage_leaves_a_model_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    report = coverage(model, torch.randn(5, 3), training=True)
    assert {"aten.mm.default", "aten.addmm.default"} <= {use.operator for use in report.uses}
    assert model[0].weight.grad is None
    assert model[1].num_batches_tracked == 0


def test_kernels_name_the_line_of_python(tmp_path: Path) -> None:
    check_forward(
        lambda x: (x.exp() + 1).sum(-1), torch.randn(5, 8), on="triton", dump=str(tmp_path)
    )
    (folder,) = tmp_path.iterdir()
    assert f"{Path(__file__).name}:" in (folder / "kernels.py").read_text()
