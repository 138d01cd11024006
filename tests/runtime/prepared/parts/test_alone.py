"""What is one part is a script, which gives what parts give, and what `reference` gives."""

from __future__ import annotations

from functools import partial
from threading import Thread

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapestry
from tapestry.dialects import loom
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.cpu import native
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.alone import Alone
from tapestry.runtime.prepared.parts.preparing import in_parts
from tapestry.runtime.prepared.parts.sharing import Mapped
from tapestry.runtime.program import arguments, main_function
from tests.amounts import drawn
from tests.end_to_end.programs import Program, programs

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_ONE = partial(in_parts, small=0, threads=1, cache=1 << 30, loops=Loops(0))


def _run(expression: tapestry.Expression) -> object:
    """What the only operation, or group, of a program becomes."""
    program = tapestry.compile(expression)
    kinds = loom.OperationOp | loom.FusedOp
    (op,) = (op for op in main_function(program.lowered).body.block.ops if isinstance(op, kinds))
    return _ONE(op)


def _has_script(run: object, *arrays: np.ndarray) -> bool:
    assert isinstance(run, Alone)
    run(arrays)
    return run.run is not run.mapped


@settings(max_examples=drawn(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), pipeline=st.sampled_from(["weft-apply", "default"]))
def test_any_program(program: Program, pipeline: str) -> None:
    want = program.naive()
    module = parse_text(program.text)
    run_pipeline(module, pipeline)
    prepared = PreparedProgram(module, parts=_ONE)
    given = [program.inputs[argument.name] for argument in arguments(module)]
    for _ in range(3):
        program.compare(prepared(given), want)


def test_one_loop_is_a_script_and_its_results_are_new_at_each_call() -> None:
    x = tapestry.input("x", (40, 70), "float32")
    run = _run(tapestry.exp(x) + x)
    array = np.random.default_rng(0).standard_normal((40, 70)).astype("f4")
    assert _has_script(run, array)
    first, second = (run([array])[0] for _ in range(2))
    assert not np.shares_memory(first, second)
    np.testing.assert_allclose(first, np.exp(array) + array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int64", "float16", "bool"])
def test_results_are_of_the_dtype_that_they_are_said_to_be(dtype: str) -> None:
    """Bodies hold unsigned numbers as bits."""
    x = tapestry.input("x", (40, 70), dtype)
    array = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 250, (40, 70))
    array = array.astype(dtype)
    if dtype == "bool":
        cases = {tapestry.logical_not(x): ~array, tapestry.any(x, axis=0): array.any(0)}
    else:
        cases = {
            x + x: array + array,
            tapestry.max(x, axis=0): array.max(0),
            tapestry.permute(tapestry.maximum(x, x), dims=[1, 0]): array.T,
        }
    for expression, want in cases.items():
        run = _run(expression)
        for _ in range(2):
            (made,) = run([array])
            assert made.dtype == want.dtype
            np.testing.assert_array_equal(made, want)


def test_arrays_may_lie_otherwise_at_each_call() -> None:
    x = tapestry.input("x", (40, 70), "float32")
    run = _run(tapestry.sum(x * x, axis=0))
    array = np.random.default_rng(0).standard_normal((40, 70)).astype("f4")
    other = np.zeros((80, 210), "f4")[::2, ::3]
    other[...] = array
    for one in (array, np.asfortranarray(array), other, array[::-1, ::-1], array):
        np.testing.assert_allclose(run([one])[0], (one * one).sum(0), rtol=1e-5)


@pytest.mark.parametrize("size", [20, 500])
def test_several_loops_are_driven_by_compiled_code(size: int) -> None:
    x = tapestry.input("x", (size, size), "float32")
    run = _run(tapestry.softmax(tapestry.tanh(x) * x, axis=1))
    array = np.random.default_rng(0).standard_normal((size, size)).astype("f4")
    assert not _has_script(run, array)
    plain = np.exp(np.tanh(array) * array)
    want = plain / plain.sum(1, keepdims=True)
    for _ in range(2):
        np.testing.assert_allclose(run([array])[0], want, rtol=1e-5)
    made = [np.empty(want.shape, "f4")]
    mapped = run.mapped
    assert mapped._driven.run(mapped.tapes.wholes([array]), made, 1) == []
    np.testing.assert_allclose(made[0], want, rtol=1e-5)


def test_results_in_another_order_are_written_where_they_belong() -> None:
    x = tapestry.input("x", (40, 70), "float32")
    run = _run(tapestry.permute(tapestry.exp(x) + x, dims=[1, 0]))
    assert isinstance(run, Mapped)
    array = np.random.default_rng(0).standard_normal((40, 70)).astype("f4")
    (made,) = run([array])
    np.testing.assert_allclose(made, (np.exp(array) + array).T, rtol=1e-5, atol=1e-6)
    assert made.flags.c_contiguous


def test_products_have_no_script() -> None:
    x, w = (tapestry.input(name, (32, 32), "float32") for name in "xw")
    run = _run(tapestry.exp(x @ w) @ w)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((32, 32)).astype("f4") / 8 for _ in range(2))
    assert not isinstance(run, Alone) or not _has_script(run, a, b)
    (made,) = run([a, b])
    np.testing.assert_allclose(made, np.exp(a @ b) @ b, rtol=1e-4, atol=1e-5)


def test_threads_may_call_one_at_once() -> None:
    x = tapestry.input("x", (40, 70), "float32")
    program = tapestry.compile(tapestry.sum(tapestry.exp(x) * x, axis=1))
    arrays = [np.full((40, 70), n / 8, "f4") for n in range(8)]
    prepared = PreparedProgram(program.lowered, parts=_ONE)
    found: dict[int, list[np.ndarray]] = {}

    def work(number: int) -> None:
        found[number] = [prepared([arrays[number]])[0] for _ in range(20)]

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, made in found.items():
        want = (np.exp(arrays[number]) * arrays[number]).sum(1)
        for one in made:
            np.testing.assert_allclose(one, want, rtol=1e-5)
