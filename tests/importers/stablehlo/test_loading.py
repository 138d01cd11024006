"""Programs of JAX through `load` and through the commands."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.importers import stablehlo

jax = pytest.importorskip("jax")
jnp = jax.numpy


def perceptron(x: Any, w: Any, b: Any, v: Any) -> Any:
    return jax.nn.softmax(jax.nn.relu(x @ w + b) @ v)


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


ARGUMENTS = {
    "x": numbers(4, 8),
    "w": numbers(8, 6, seed=1),
    "b": numbers(6, seed=2),
    "v": numbers(6, 3, seed=3),
}


def test_a_perceptron_agrees_with_jax(agrees: Any) -> None:
    agrees(perceptron, *ARGUMENTS.values())


def test_text_bytes_and_paths_load_the_same(tmp_path: Path) -> None:
    exported = jax.export.export(jax.jit(perceptron))(*ARGUMENTS.values())
    text = exported.mlir_module()
    path = tmp_path / "model.mlir"
    path.write_text(text)
    modules = [
        stablehlo.load(text),
        stablehlo.load(path),
        stablehlo.load(str(path)),
        stablehlo.load(exported.mlir_module_serialized),
        tapestry.load_module(path),
    ]
    assert len({str(module) for module in modules}) == 1
    assert [argument.name for argument in tapestry.arguments(modules[0])] == ["x", "w", "b", "v"]


def test_the_commands_take_stablehlo(tmp_path: Path) -> None:
    exported = jax.export.export(jax.jit(perceptron))(*ARGUMENTS.values())
    path = tmp_path / "model.stablehlo.mlir"
    path.write_text(exported.mlir_module())
    np.savez(tmp_path / "in.npz", **ARGUMENTS)
    np.savez(tmp_path / "want.npz", out0=perceptron(*ARGUMENTS.values()))
    command = ["run", path, "--inputs", tmp_path / "in.npz", "--on", "numpy", "--shards", "2"]
    command += ["--compare", tmp_path / "want.npz"]
    done = subprocess.run(
        [sys.executable, "-m", "tapestry.tools.tapestry", *map(str, command)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "tapestry.tools.opt", str(path), "-p", "weft-apply"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "loom.operation @einsum" in done.stdout, done.stderr
