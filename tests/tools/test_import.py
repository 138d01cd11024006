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
    ):
        done = _tapestry("import", "stablehlo", *arguments, folder=tmp_path)
        assert done.returncode in code
        assert message in done.stderr
        assert "Traceback" not in done.stderr
