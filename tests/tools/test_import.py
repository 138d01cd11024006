"""`tapestry import`: other frameworks' programs as files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tapestry


def _tapestry(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tapestry.tools.tapestry", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_stablehlo(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    weights = np.random.default_rng(0).normal(size=(16, 40)).astype(np.float32)
    exported = jax.export.export(jax.jit(lambda x: jax.numpy.tanh(x @ weights)))(
        jax.ShapeDtypeStruct((3, 16), "float32")
    )
    (tmp_path / "model.stablehlo.mlir").write_text(exported.mlir_module())
    done = _tapestry(
        "import", "stablehlo", "model.stablehlo.mlir", "-o", "model.mlir", folder=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "model.npz").exists()
    x = np.ones((3, 16), np.float32)
    got = tapestry.load(tmp_path / "model.mlir")(x)
    np.testing.assert_allclose(got, np.tanh(x @ weights), rtol=1e-4, atol=1e-5)


def test_mistakes(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "bad.mlir").write_text("stablehlo.add")
    for arguments, code, message in (
        (["gone.mlir", "-o", "out.mlir"], (1, 2), "gone.mlir"),
        (["bad.mlir", "-o", "out.mlir"], (1,), "bad.mlir"),
        (["bad.mlir", "-o", "no/out.mlir"], (2,), "cannot write"),
        (["bad.mlir"], (2,), "--output"),
        (["bad.mlir", "-o", "bad.mlir"], (2,), "it is what is read"),
    ):
        done = _tapestry("import", "stablehlo", *arguments, folder=tmp_path)
        assert done.returncode in code
        assert message in done.stderr
        assert "Traceback" not in done.stderr


_MODELS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 40), nn.Linear(40, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

def make():
    torch.manual_seed(0)
    return Net().eval(), (torch.zeros(5, 16),)

def odd():
    return Net()

def unique():
    class Odd(nn.Module):
        def forward(self, x):
            return torch.linalg.svdvals(x)
    return Odd(), (torch.zeros(5, 16),)

def broken():
    return 1 / 0

def leaves():
    raise SystemExit

def narrow():
    return nn.Linear(16, 3), (torch.zeros(5, 15),)

def branches():
    class Branches(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x
    return Branches(), (torch.zeros(5, 15),)

class Scaled(nn.Module):
    def forward(self, x, *, scale):
        return x * scale

def named():
    return Scaled(), (torch.zeros(4),), {"scale": torch.tensor(2.0)}

number = 3
"""


def test_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mlp.py").write_text(_MODELS)
    done = _tapestry("import", "torch", "models.mlp:make", "-o", "model.mlir", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "100.0 %" in done.stdout
    assert (tmp_path / "model.npz").exists()
    x = np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32)
    torch.manual_seed(0)
    first, second = torch.nn.Linear(16, 40), torch.nn.Linear(40, 3)
    want = second(torch.relu(first(torch.from_numpy(x)))).detach().numpy()
    got = tapestry.load(tmp_path / "model.mlir")(x)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_inputs_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from tapestry.tools._import_torch import import_model

    (tmp_path / "named.py").write_text(_MODELS)
    monkeypatch.chdir(tmp_path)
    import_model("named:named", tmp_path / "model.mlir", strict=True)
    got = tapestry.load(tmp_path / "model.mlir")(x=np.ones(4, "f4"), scale=np.float32(3))
    assert got.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("factory", "kind", "message"),
    [
        ("mlp", tapestry.UsageError, "is written package.module:function"),
        ("gone:make", tapestry.UsageError, "there is no module gone"),
        ("mlp:gone", tapestry.UsageError, "mlp has no function gone"),
        ("mlp:number", tapestry.UsageError, "mlp has no function number"),
        ("mlp:odd", tapestry.UsageError, "mlp:odd returns Net"),
        ("mlp:broken", tapestry.InvalidProgramError, r"mlp.py:27:12: error: calling mlp:broken"),
        ("mlp:leaves", tapestry.InvalidProgramError, r"mlp.py:30:5: error: calling .* SystemExit"),
        ("mlp:branches", tapestry.TapestryError, r"mlp.py:38:25: error: PyTorch cannot export"),
        ("mlp:narrow", tapestry.TapestryError, "error: PyTorch cannot export the model"),
        ("os.path:join", tapestry.InvalidProgramError, r"^error: .*\n  hint: it is called without"),
        ("wrong:make", tapestry.InvalidProgramError, "wrong.py:2:"),
        ("mlp:unique", tapestry.TapestryError, "svd"),
    ],
)
def test_mistakes_with_models(
    factory: str,
    kind: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    from tapestry.tools._import_torch import import_model

    (tmp_path / "mlp.py").write_text(_MODELS)
    (tmp_path / "wrong.py").write_text("import torch\ndef make(:\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("mlp", "wrong"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(kind, match=message):
        import_model(factory, tmp_path / "model.mlir", strict=True)
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "model.mlir").exists()
