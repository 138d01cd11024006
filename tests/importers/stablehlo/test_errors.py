"""What cannot be imported is one message at its place; damaged text is never a traceback."""

import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapestry.diagnostics import TapestryError, UsageError
from tapestry.importers import stablehlo
from tapestry.importers.stablehlo import bindings

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

HEAD = "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n"
TAIL = "  return %0 : tensor<3xf32>\n}"


def message(text: str | bytes) -> str:
    with pytest.raises(TapestryError) as caught:
        stablehlo.load(text, "m.mlir")
    return str(caught.value)


WRONG = [
    ("%0 = stablehlo.foo %a : tensor<3xf32>", "2:8: error: custom op 'stablehlo.foo' is unknown"),
    ("%0 = stablehlo.add %a, %b : tensor<3xf32>", "2:26: error: use of undeclared SSA value"),
    (
        "%0 = stablehlo.custom_call @lapack_sgetrf(%a) : (tensor<3xf32>) -> tensor<3xf32>",
        "2:8: error: custom_call @lapack_sgetrf is a kernel of XLA's",
    ),
    ("%0 = call @main(%a) : (tensor<3xf32>) -> tensor<3xf32>", "a function that calls itself"),
    ("%0 = call @other(%a) : (tensor<3xf32>) -> tensor<3xf32>", "'other'"),
]


@pytest.mark.parametrize(("line", "says"), WRONG)
def test_a_wrong_operation_is_said_at_its_place(line: str, says: str) -> None:
    assert says in message(f"{HEAD}  {line}\n{TAIL}")


def test_an_operation_that_is_not_supported_is_shown() -> None:
    def solved(a: Any, b: Any) -> Any:
        return jax.scipy.linalg.solve_triangular(a, b, lower=True)

    exported = jax.export.export(jax.jit(solved))(jnp.eye(3), jnp.ones((3, 1)))
    said = message(exported.mlir_module())
    here = Path(__file__).name
    assert re.search(rf"{here}:\d+:\d+: error: .*is (not supported|a kernel of XLA's)", said), said


def test_what_export_would_write_otherwise_is_said() -> None:
    lowered = jax.jit(jax.scipy.special.digamma).lower(jnp.ones(3)).as_text()
    said = message(lowered)
    assert "chlo.digamma : (tensor<3xf32>) -> (tensor<3xf32>) is not supported" in said
    assert "hint: `jax.export.export(...)(...).mlir_module()` writes" in said


def test_a_transform_is_not_supported() -> None:
    kind = "tensor<4xcomplex<f32>>"
    line = f"%0 = stablehlo.fft %a, type = FFT, length = [4] : ({kind}) -> {kind}"
    said = message(f"func.func @main(%a: {kind}) -> {kind} {{\n  {line}\n  return %0 : {kind}\n}}")
    assert f"m.mlir:2:8: error: stablehlo.fft : ({kind}) -> ({kind}) is not supported" in said
    assert "hint: it is written %0 = stablehlo.fft %arg0, type = FFT, length = [4]" in said


def test_the_trip_count_of_a_loop_must_be_known() -> None:
    def until(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x)

    said = message(jax.export.export(jax.jit(until))(jnp.ones(3)).mlir_module())
    assert "its trip count must be known" in said
    assert "lax.fori_loop" in said


def test_sizes_must_be_known() -> None:
    shape = jax.export.symbolic_shape("n")
    dynamic = jax.ShapeDtypeStruct(shape, np.float32)
    said = message(jax.export.export(jax.jit(lambda x: x * 2))(dynamic).mlir_module())
    assert "has sizes that are not known; export the function for fixed shapes" in said


def test_a_reducer_that_is_not_associative_is_refused() -> None:
    def folded(x: Any) -> Any:
        return lax.reduce(x, np.float32(0), lambda a, b: a * 0.5 + b, (0,))

    assert "merge is not associative" in message(
        jax.export.export(jax.jit(folded))(jnp.ones(3)).mlir_module()
    )


def test_a_function_that_a_cell_may_be_put_through_too_often_is_refused() -> None:
    def applied(x: Any, i: Any) -> Any:
        return x.at[i].apply(jnp.sin)

    exported = jax.export.export(jax.jit(applied))(jnp.ones(9), jnp.zeros(65, "int32"))
    said = message(exported.mlir_module())
    assert "applies a function up to 65 times to a cell; at most 64 are supported" in said
    assert "hint: .at[i].apply(f, unique_indices=True) applies it once" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no func.func @main"),
        ("func.func @f() { return }", "the module has @f"),
        ("module {" * 600, "m.mlir:1:4008: error: brackets nest more than 500 deep"),
        (b"\xff\xfe stablehlo.add", "m.mlir:1:1: error: "),
        (b"ML\xefR\x00\x01 not bytecode", "m.mlir:1:1: error: "),
        ("func.func @main(%a: tensor<3xi4>) { return }", "there are no tensors of i4"),
    ],
)
def test_damaged_text_is_one_message(text: str | bytes, says: str) -> None:
    said = message(text)
    assert says in said
    assert said.count("error:") == 1


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        stablehlo.load(tmp_path / "none.mlir")


def test_without_jaxlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("jaxlib")]:
        monkeypatch.setitem(sys.modules, name, None)
    bindings._context.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"(?s)not installed.*pip install 'tapestry\[jax\]'"):
            stablehlo.load(HEAD + TAIL)
    finally:
        bindings._context.cache_clear()


def _damaged(text: str, chance: random.Random) -> str:
    """The text with a word replaced, a span cut out, a line left out, or a sign added."""
    match chance.randrange(4):
        case 0:
            word = chance.choice(list(re.finditer(r"\b\w+\b", text)))
            other = chance.choice(["0", "-1", "7", "f32", "ui8", "i1", "4x6", "add", "true", "GE"])
            return text[: word.start()] + other + text[word.end() :]
        case 1:
            at = chance.randrange(len(text))
            return text[:at] + text[at + chance.randrange(1, 9) :]
        case 2:
            lines = text.splitlines(keepends=True)
            del lines[chance.randrange(len(lines))]
            return "".join(lines)
        case _:
            at = chance.randrange(len(text))
            return text[:at] + chance.choice("{}()<>%0,x") + text[at:]


def _programs() -> list[str]:
    x, i = jnp.ones((4, 6)), jnp.arange(3)
    window = ((1, 2), (1, 2), "VALID")

    def branched(_: Any, x: Any) -> Any:
        return lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)

    functions = [
        (lambda x, i: x.at[i].add(1.0)[:, i].sum(1), x, i),
        (lambda x: (jnp.argmax(x, 1), jnp.sort(x), jnp.cumsum(x, 0)), x),
        (jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, *window).sum()), x),
        (lambda x, k: lax.dynamic_update_slice(x, x[:2], (k, 0)) @ x.T, x, i[0]),
        (lambda x: lax.fori_loop(0, 3, branched, x), x),
    ]
    texts = [jax.export.export(jax.jit(f))(*given).mlir_module() for f, *given in functions]
    # Without the lines that only say locations, which damage would mostly hit.
    return [re.sub(r"(?m)^#loc.*\n", "", re.sub(r" loc\(#\w+\)", "", text)) for text in texts]


def test_no_damage_is_a_traceback() -> None:
    chance, texts = random.Random(0), _programs()
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        text = _damaged(chance.choice(texts), chance)
        try:
            stablehlo.load(text, "m.mlir")
        except TapestryError:
            outcomes[False] += 1
        else:
            outcomes[True] += 1
    assert min(outcomes.values()) > 5
