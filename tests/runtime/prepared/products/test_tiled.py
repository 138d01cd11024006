"""Sums of products by loops in tiles are those of the reference executor."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.importers.building import ProgramBuilder
from tapestry.runtime.cpu import native
from tapestry.runtime.cpu.threads import Workers, share
from tapestry.runtime.executor import Array
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.products import tiled
from tapestry.runtime.prepared.stored import restored, stored
from tests.amounts import drawn
from tests.runtime.prepared.products.checking import (
    LIBRARY,
    arrays_of,
    check,
    is_tiled,
    numbers,
)
from tests.runtime.prepared.teams import OneByOne

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")


def _only(ways: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products go in these ways alone, with memory in which each number matters."""
    for way, name in (("blocks", "block_tiling"), ("tiles", "tiling"), ("dots", "dot_tiling")):
        if way not in ways:
            monkeypatch.setattr(tiled, name, lambda *_: None)
    make = tiled.empty

    def poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        made = make(shape, dtype)
        made.view(np.uint8).reshape(-1)[:] = 0xFF  # no number, and no zero
        return made

    monkeypatch.setattr(tiled, "empty", poisoned)


_WAYS = ["blocks", "tiles dots", "blocks tiles dots"]


@settings(max_examples=drawn(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("form", ["forward", "input", "weight", "transposed"])
def test_any_convolution(form: str, data: st.DataObject) -> None:
    """With groups, strides, dilation and padding, on processors of any kind."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        _convolved(form, data, monkeypatch)


def _convolved(form: str, data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    _only(data.draw(st.sampled_from(_WAYS)), monkeypatch)
    registers = data.draw(st.sampled_from([native.registers(), (4, 32), (8, 16), (16, 32)]))
    monkeypatch.setattr(native, "registers", lambda: registers)
    axes = data.draw(st.integers(1, 2))
    batch, groups = data.draw(st.integers(1, 2)), data.draw(st.sampled_from([1, 2, 5]))
    inner, outer = data.draw(st.sampled_from([1, 3, 16])), data.draw(st.sampled_from([1, 2, 9, 16]))
    step = st.integers(1, 3)
    kernel, dilation, stride = ([data.draw(step) for _ in range(axes)] for _ in range(3))
    padding = [data.draw(st.integers(0, 2)) for _ in range(axes)]
    least = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    extents = [
        data.draw(st.integers(max(1, n - 2 * p), n + (40 if axis == axes - 1 else 4)))
        for axis, (n, p) in enumerate(zip(least, padding, strict=True))
    ]
    cells = [
        (n + 2 * p - span) // s + 1
        for n, p, span, s in zip(extents, padding, least, stride, strict=True)
    ]
    seed = data.draw(st.integers(0, 99))
    images = numbers((batch, groups * inner, *extents), seed)
    weights = numbers((groups * outer, inner, *kernel), seed + 1)
    gradient = numbers((batch, groups * outer, *cells), seed + 2)
    common = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    arrays, name, more = [gradient, weights], f"conv_transpose{axes}d", {}
    if form == "forward":
        arrays, name = [images, weights], f"conv{axes}d"
    elif form == "input":
        name, more = f"conv{axes}d_backward_input", {"size": extents}
    elif form == "weight":
        arrays = [gradient, images]
        name, more = f"conv{axes}d_backward_weight", {"size": kernel}
    else:
        ends = zip(cells, stride, padding, least, strict=True)
        assume(all((n - 1) * s - 2 * p + span > 0 for n, s, p, span in ends))
    build = ProgramBuilder()
    given = [build.argument(f"a{n}", one.shape, "f32") for n, one in enumerate(arrays)]
    module = build.finish(build.apply(name, *given, parameters=common | more))
    run_pipeline(module, data.draw(st.sampled_from(["weft-apply", "default"])))
    monkeypatch.setattr(tiled, "_SHARE", 1)
    team = OneByOne(data.draw(st.integers(1, 4)))
    check(module, arrays, replace(LIBRARY, loops=Loops(1, team)))


def _layer(channels: int, out: int, size: int, *, pad: int = 1, before: str) -> str:
    """A layer of 3x3 windows: what is done `before` products, which are then scaled and clipped."""
    reach = size + 2 * pad - 2
    clip = "clip 0.0 : f32" if pad else ""
    return f"""
!x = !loom.tensor<[0, 0, 0, 0] : [2, {channels}, {size}, {size}], f32>
!w = !loom.tensor<[0, 0, 0, 0] : [{out}, {channels}, 3, 3], f32>
!b = !loom.tensor<[0] : [{out}], f32>
!g = !loom.tensor<[0, 0] : [2, {channels}], f32>
!y = !loom.tensor<[0, 0, 0, 0] : [2, {out}, {reach}, {reach}], f32>
func.func @main(%x: !x, %w: !w, %b: !b, %g: !g, %r: !y) -> !y {{
  %y = loom.operation @layer
    over <[0, 0, 0, 0, 0, 0, 0] : [2, {out}, {reach}, {reach}, {channels}, 3, 3]>
    [map, map, map, map, fold, fold, fold] by @add
    ins(%x : (d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5 - {pad}, d3 + d6 - {pad}) {clip},
        %w : (d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6),
        %g : (d0, d1, d2, d3, d4, d5, d6) -> (d0, d4))
    extra(%b : (d0, d1, d2, d3) -> (d1), %r : (d0, d1, d2, d3) -> (d0, d1, d2, d3))
    outs((d0, d1, d2, d3) -> (d0, d1, d2, d3))
    wrap (%xe: f32, %we: f32, %ge: f32) {{
      {before}
      %p = arith.mulf %f, %we : f32
      loom.yield %p : f32
    }}
    unwrap (%s: f32, %be: f32, %re: f32) {{
      %two = arith.constant 2.0 : f32
      %d = arith.mulf %be, %two : f32
      %t = arith.addf %s, %d : f32
      %zero = arith.constant 0.0 : f32
      %m = arith.maximumf %t, %zero : f32
      %v = arith.addf %m, %re : f32
      loom.yield %v : f32
    }} : (!x, !w, !g, !b, !y) -> !y
  func.return %y : !y
}}
"""


_GATED = "%f = arith.mulf %xe, %ge : f32"
_CLIPPED = """
      %z = arith.constant 1.0 : f32
      %n = arith.addf %ge, %z : f32
      %q = arith.addf %xe, %n : f32
      %f = arith.maximumf %q, %z : f32
"""


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("size", [8, 18, 37])
@pytest.mark.parametrize("before", [_GATED, _CLIPPED])
@pytest.mark.parametrize("ways", ["blocks", "tiles"])
def test_what_comes_before_and_after_is_in_the_loop(
    ways: str, before: str, size: int, pad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where what is computed of a zero outside is another number."""
    _only(ways, monkeypatch)
    module = parse_text(_layer(3, 13, size, pad=pad, before=before))
    verify_module(module)
    assert check(module, arrays_of(module))


def test_numbers_are_packed_as_they_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of 16 bits take twice the room."""
    _only("tiles", monkeypatch)
    monkeypatch.setattr(native, "registers", lambda: (16, 32))
    text = _layer(16, 24, 30, before=_GATED + " %h = arith.extf %we : f16 to f32")
    text = text.replace("[24, 16, 3, 3], f32", "[24, 16, 3, 3], f16")
    text = text.replace("%we: f32", "%we: f16").replace("mulf %f, %we", "mulf %f, %h")
    module = parse_text(text)
    verify_module(module)
    arrays = arrays_of(module)
    rooms: list[int] = []
    assert check(module, [arrays[0], arrays[1].astype("f2"), *arrays[2:]], rooms=rooms)
    assert rooms == [4 * 12 * 16 * 9]


@pytest.mark.parametrize("size", [18, 37])
def test_channels_that_are_last_are_turned(size: int) -> None:
    """Rows of images are not in one run of memory then: they are copied, where it is little."""
    module = parse_text(_layer(3, 13, size, before=_GATED))
    arrays = arrays_of(module)
    images = arrays[0].transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    assert check(module, [images, *arrays[1:]])


@pytest.mark.parametrize("shape", [(40, 24, 33), (7, 5, 64)])
def test_rows_of_weights_are_turned(shape: tuple[int, int, int]) -> None:
    """A linear layer of what is computed: neither factor is in vectors along its results."""
    rows, inner, out = shape
    module = parse_text(f"""
!x = !loom.tensor<[0, 0] : [{rows}, {inner}], f32>
!w = !loom.tensor<[0, 0] : [{out}, {inner}], f32>
!y = !loom.tensor<[0, 0] : [{rows}, {out}], f32>
func.func @main(%x: !x, %w: !w) -> !y {{
  %y = loom.operation @linear over <[0, 0, 0] : [{rows}, {out}, {inner}]> [map, map, fold] by @add
    ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d1, d2))
    outs((d0, d1) -> (d0, d1))
    wrap (%xe: f32, %we: f32) {{
      %z = arith.constant 0.0 : f32
      %f = arith.maximumf %xe, %z : f32
      %p = arith.mulf %f, %we : f32
      loom.yield %p : f32
    }} : (!x, !w) -> !y
  func.return %y : !y
}}
""")
    verify_module(module)
    found = check(module, arrays_of(module))
    if rows > 10 or native.registers()[0] == 16:  # vectors of eight numbers pay for fewer rows
        assert found == (rows > 10)


@pytest.mark.parametrize("ways", ["blocks", "tiles"])
def test_threads_share_what_parts_are_made_of(ways: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _only(ways, monkeypatch)
    team = OneByOne(3)
    library = replace(LIBRARY, loops=Loops(1, team))
    module = parse_text(_layer(24, 40, 30, before=_GATED))
    arrays = arrays_of(module)
    assert check(module, arrays, library)
    assert team.rows == 3
    program = PreparedProgram(module, library)
    made = [program(arrays)[0] for _ in range(3)]
    assert program.run.linked is not None
    np.testing.assert_array_equal(made[2], made[0])
    for threads in (2, 1, 3):
        team.threads = threads
        assert program.run.linked.is_possible() == (threads == 3)
        for _ in range(2):
            np.testing.assert_allclose(program(arrays)[0], made[0], rtol=1e-5, atol=1e-6)
        assert program.run.at_once(arrays) is not None


def test_threads_of_this_process_share_where_the_host_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless they are at work on something else already: then each does what it has, alone."""
    monkeypatch.setenv("TAPESTRY_THREADS", "3")
    monkeypatch.setattr(tiled, "_SHARE_WORKERS", 1)
    called: list[int] = []
    monkeypatch.setattr(
        Workers,
        "run",
        lambda self, function, rows, run=Workers.run: (
            called.append(len(rows)) or run(self, function, rows)
        ),
    )
    module = parse_text(_layer(24, 40, 30, before=_GATED))
    assert check(module, arrays_of(module))
    assert called == [3, 3]
    share(lambda _: check(module, arrays_of(module)), range(4), 2)
    assert called == [3, 3]


def test_zeros_outside_times_infinity_are_no_numbers() -> None:
    module = parse_text(_layer(2, 3, 20, before=_GATED))
    arrays = arrays_of(module)
    arrays[1][1, 0, 0, 0] = np.inf
    arrays[0] = np.abs(arrays[0]) + 1
    arrays[2] = np.abs(arrays[2])
    arrays[3] = np.abs(arrays[3]) + 1
    assert check(module, arrays)


def test_sums_of_many_are_as_near_as_matrices() -> None:
    """Long sums are added in blocks."""
    source = np.random.default_rng(0)
    images, weights = (source.standard_normal(s) for s in ((1, 512, 20, 20), (8, 512, 3, 3)))
    build = ProgramBuilder()
    shapes = images.shape, weights.shape
    given = [build.argument(f"a{n}", one, "f32") for n, one in enumerate(shapes)]
    module = build.finish(build.apply("conv2d", *given, parameters={}))
    run_pipeline(module, "default")
    prepared = PreparedProgram(module, LIBRARY)
    (got,) = prepared([images.astype("f4"), weights.astype("f4")])
    assert is_tiled(prepared)
    single = [one.astype("f4").astype("f8") for one in (images, weights)]
    windows = np.lib.stride_tricks.sliding_window_view(single[0], (3, 3), (2, 3))
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(324, -1)
    matrix = single[1].reshape(8, -1)
    want = columns @ matrix.T
    near = np.abs(columns.astype("f4") @ matrix.T.astype("f4") - want).max()
    assert np.abs(got.reshape(8, 324).T - want).max() <= 1.5 * near


def test_what_is_read_does_what_was_written() -> None:
    module = parse_text(_layer(3, 13, 18, before=_GATED))
    arrays = arrays_of(module)
    prepared = PreparedProgram(module, LIBRARY)
    same = restored(json.loads(json.dumps(stored(prepared.run, LIBRARY))), LIBRARY)
    np.testing.assert_array_equal(same(arrays)[0], prepared(arrays)[0])
    assert is_tiled(prepared)


def test_what_is_not_compiled_is_computed_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_text(_layer(3, 13, 18, before=_GATED))
    monkeypatch.setattr(tiled, "compiled", lambda *_: None)
    assert not check(module, arrays_of(module))


@pytest.mark.parametrize("size", [8, 18, 37])
def test_what_comes_after_may_know_where_it_is(size: int) -> None:
    """As the gradient of a pooling, which goes where a maximum was."""
    text = _layer(3, 13, size, before=_GATED).replace(
        "%v = arith.addf %m, %re : f32",
        """%i = loom.index 2 : i64
      %j = loom.index 3 : i64
      %k = arith.subi %i, %j : i64
      %three = arith.constant 3 : i64
      %c = arith.cmpi slt, %k, %three : i64
      %v = arith.select %c, %m, %re : f32""",
    )
    module = parse_text(text)
    verify_module(module)
    arrays = arrays_of(module)
    assert check(module, arrays)
    prepared = PreparedProgram(module, LIBRARY)
    same = restored(json.loads(json.dumps(stored(prepared.run, LIBRARY))), LIBRARY)
    np.testing.assert_array_equal(same(arrays)[0], prepared(arrays)[0])


def test_a_factor_is_not_read_outside_where_all_lanes_have_its_number() -> None:
    kinds = [f"!loom.tensor<{[0] * len(n)} : {list(n)}, f32>" for n in ((64,), (3, 4), (64, 4, 64))]
    x, w, y = kinds
    module = parse_text(f"""
    func.func @main(%x: {x}, %s: {x}, %w: {w}) -> {y} {{
      %y = loom.operation @y over <[0, 0, 0, 0] : [64, 64, 4, 3]> [map, map, map, fold] by @add
        ins(%x : (d0, d1, d2, d3) -> (d0 + d3 - 1) clip 0.0 : f32, %s : (d0, d1, d2, d3) -> (d1),
            %w : (d0, d1, d2, d3) -> (d3, d2))
        outs((d0, d1, d2) -> (d0, d2, d1))
        wrap (%a: f32, %b: f32, %c: f32) {{
          %p = arith.mulf %a, %b : f32
          %q = arith.mulf %p, %c : f32
          loom.yield %q : f32
        }} : ({x}, {x}, {w}) -> {y}
      func.return %y : {y}
    }}""")
    around = np.full(200, np.nan, "f4")  # what is read before and after would be seen
    around[64:128] = numbers([64], 0)
    check(module, [around[64:128], numbers([64], 1), numbers([3, 4], 2)])


def test_places_that_no_factor_moves_along_are_all_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unset(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.frombuffer(bytearray(b"\xff" * (prod(shape) * dtype.itemsize)), dtype).reshape(
            shape
        )

    monkeypatch.setattr(tiled, "empty", unset)  # what is not written is no number
    kinds = [
        f"!loom.tensor<{[0] * len(n)} : {list(n)}, f32>" for n in ((405,), (5, 400), (3, 6, 5))
    ]
    x, w, y = kinds
    module = parse_text(f"""
    func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %y = loom.operation @y over <[0, 0, 0, 0] : [3, 6, 5, 400]> [map, map, map, fold] by @add
        ins(%x : (d0, d1, d2, d3) -> (d1 + d3), %w : (d0, d1, d2, d3) -> (d2, d3))
        outs((d0, d1, d2) -> (d0, d1, d2))
        wrap (%a: f32, %b: f32) {{
          %p = arith.mulf %a, %b : f32
          loom.yield %p : f32
        }} : ({x}, {w}) -> {y}
      func.return %y : {y}
    }}""")
    assert check(module, [numbers([405], 0), numbers([5, 400], 1)])
