"""Programs of JAX through `load` and through the commands."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapestry
from tapestry.dialects import weft
from tapestry.importers import stablehlo
from tapestry.locations import location_of

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


def test_arguments_are_named_as_in_python() -> None:
    def model(layers: Any, x: Any) -> Any:
        return x @ layers[0]["w"] + layers[1]

    given = ([{"w": ARGUMENTS["w"]}, ARGUMENTS["b"]], ARGUMENTS["x"])
    text = jax.export.export(jax.jit(model))(*given).mlir_module()
    named = [argument.name for argument in tapestry.arguments(stablehlo.load(text))]
    assert named == ["layers_0_w", "layers_1", "x"]
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("#loc"))
    bare = re.sub(r" loc\((#\w+|\"[^)]*\")\)", "", bare)
    unnamed = [argument.name for argument in tapestry.arguments(stablehlo.load(bare))]
    assert unnamed == ["arg0", "arg1", "arg2"]


def test_operations_are_where_python_says() -> None:
    text = jax.export.export(jax.jit(perceptron))(*ARGUMENTS.values()).mlir_module()
    module = stablehlo.load(text)
    line = perceptron.__code__.co_firstlineno + 1
    (einsum, *_) = [op for op in module.walk() if isinstance(op, weft.ApplyOp)]
    place = location_of(einsum)
    assert place is not None
    assert (Path(place.file).name, place.line) == (Path(__file__).name, line)


def test_a_portable_artifact_is_recognized(tmp_path: Path) -> None:
    exported = jax.export.export(jax.jit(perceptron))(*ARGUMENTS.values())
    path = tmp_path / "model.bin"
    path.write_bytes(exported.mlir_module_serialized)
    assert str(tapestry.load_module(path)) == str(stablehlo.load(exported.mlir_module()))


def test_constants_of_every_form() -> None:
    text = """
    func.func @main() -> (tensor<2xf32>, tensor<2xbf16>, tensor<3xi1>, tensor<2xui64>,
                          tensor<2xf32>, tensor<2xcomplex<f32>>, tensor<3xf32>) {
      %0 = stablehlo.constant dense<"0x0000803F00000040"> : tensor<2xf32>
      %1 = stablehlo.constant dense<[1.5, 0x7F80]> : tensor<2xbf16>
      %2 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
      %3 = stablehlo.constant dense<18446744073709551615> : tensor<2xui64>
      %4 = stablehlo.constant dense<[0xFF800000, 0x7FC00000]> : tensor<2xf32>
      %5 = stablehlo.constant dense<[(1.0, -2.0), (0.5, 0.0)]> : tensor<2xcomplex<f32>>
      %6 = stablehlo.constant dense_resource<w> : tensor<3xf32>
      return %0, %1, %2, %3, %4, %5, %6 : tensor<2xf32>, tensor<2xbf16>, tensor<3xi1>,
        tensor<2xui64>, tensor<2xf32>, tensor<2xcomplex<f32>>, tensor<3xf32>
    }
    {-#
      dialect_resources: { builtin: { w: "0x040000000000803F0000004000004040" } }
    #-}"""
    got = tapestry.run(stablehlo.load(text), {}).outputs
    want: list[Any] = [
        [1, 2], [1.5, np.inf], [True, False, True], [2**64 - 1] * 2, [-np.inf, np.nan],
        [1 - 2j, 0.5], [1, 2, 3],
    ]  # fmt: skip
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(have, np.array(expected).astype(have.dtype))


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
