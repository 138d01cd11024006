"""Cells at computed places in loops: what `reference` gives, and its error where one is outside."""

from __future__ import annotations

import logging
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from tapestry.frontend import parse_module
from tapestry.runtime.arrays.blocks import BlockIndexError
from tapestry.runtime.cpu import native
from tapestry.runtime.executor import Array, NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.library import Library
from tapestry.runtime.prepared.loops.looping import Loops
from tapestry.runtime.prepared.parts.preparing import in_parts

pytestmark = pytest.mark.skipif(not native.is_ready(), reason="nothing is compiled here")

_TEXT = """
!at = !loom.tensor<[0, 0] : [6, {cells}], i64>
!x = !loom.tensor<[1, 0, 0] : [7, 9, {end}], {element}>
!y = !loom.tensor<[0, 0, 0] : [6, 4, {end}], {out}>
func.func @main(%at: !at, %x: !x) -> !y {{
  %y = loom.operation @fetch over <[0, 0, 0] : [6, 4, 70]> [map, map, {kind}] {by}
     ins(%at : (i, j, k) -> (i, {along}), %x : (i, j, k) -> {box})
     outs({last}) {domain}
     wrap (%p: i64, %b: !loom.block<[{extents}], {element}>) {{
       %none = arith.constant 0 : i64
       %two = arith.constant 2 : i64
       %q = arith.xori %p, %two : i64
       {fill}
       %v = loom.read %b[{places}] {otherwise} : {element}
       {use}
       loom.yield %w : {out}
     }} : (!at, !x) -> !y
  func.return %y : !y
}}
"""

_BOXES = {
    "along the last axis, of boxes": (
        "(i + 1, 0, 0) :> [1, 9, 1]",
        "none, p, none",
    ),
    "rows, one for each vector": ("(i + 1, 0, k) :> [1, 9, 1]", "none, p, none"),
    "in three dimensions": ("(1, 0, 0) :> [5, 8, 8]", "p, q, p"),
    "of all, further on along the last axis": ("(1, j, k) :> [5, 6, 1]", "p, q, none"),
}


def _program(where: str, element: str = "f32", *, rows: bool = False, **given: str) -> str:
    """A program; `rows` for places that are the same along the last axis."""
    box, places = _BOXES[where]
    values = {
        "cells": "6" if rows else "70",
        "along": "j" if rows else "k",
        "end": "70",
        "kind": "map",
        "by": "",
        "last": "(i, j, k) -> (i, j, k)",
        "domain": "",
        "out": element,
        "fill": "",
        "otherwise": "",
        "use": "%w = arith.select %true, %v, %v : " + element,
    } | given
    values["fill"] += "\n%true = arith.constant true"
    names = ", ".join(f"%{name}" for name in places.split(", "))
    extents = box.partition(":> [")[2].rstrip("]")
    return _TEXT.format(element=element, box=box, extents=extents, places=names, **values)


def _check(
    text: str, inputs: dict[str, Array], caplog: pytest.LogCaptureFixture, threads: int = 1
) -> None:
    module = parse_module(text, "model.mlir")
    (want,) = find_executor("reference").run(module, inputs, NoWatch()).outputs
    parts = partial(in_parts, small=0, threads=threads, cache=2000, loops=Loops(0))
    prepared = PreparedProgram(module, Library(loops=Loops(0)), parts)
    native.forget()
    with caplog.at_level(logging.INFO, "tapestry.kernels"):
        for _ in range(2):
            (have,) = prepared(list(inputs.values()))
            np.testing.assert_array_equal(have, want, strict=True)
    assert any(" operations over " in one.getMessage() for one in caplog.records)


def _cells(element: str, end: int = 70) -> Array:
    random = np.random.default_rng(1).integers(-9, 9, (6, 9, end))
    if element == "i1":
        return random > 0
    if element == "bf16":
        return random.astype(ml_dtypes.bfloat16)
    return random.astype(element.replace("f", "float").replace("i", "int"))


def _places(most: int, cells: int = 70) -> Array:
    return np.random.default_rng(2).integers(0, most, (6, cells))


@pytest.mark.parametrize("where", _BOXES)
@pytest.mark.parametrize("element", ["f32", "i1", "f16", "bf16", "i64"])
def test_places_inside(where: str, element: str, caplog: pytest.LogCaptureFixture) -> None:
    inputs = {"at": _places(4), "x": _cells(element)}
    _check(_program(where, element), inputs, caplog)


@pytest.mark.parametrize("where", _BOXES)
@pytest.mark.parametrize("threads", [1, 2])
def test_places_that_are_the_same_along_the_last_axis(
    where: str, threads: int, caplog: pytest.LogCaptureFixture
) -> None:
    inputs = {"at": _places(4, 6), "x": _cells("f32")}
    _check(_program(where, rows=True), inputs, caplog, threads)


@pytest.mark.parametrize("where", _BOXES)
def test_what_is_said_to_be_outside(where: str, caplog: pytest.LogCaptureFixture) -> None:
    at = np.random.default_rng(3).choice([-(2**63), -1, 0, 4, 5, 8, 9, 2**40], (6, 70))
    text = _program(where, fill="%f = arith.sitofp %p : i64 to f32", otherwise="else %f")
    _check(text, {"at": at, "x": _cells("f32")}, caplog)


def test_sums_of_cells(caplog: pytest.LogCaptureFixture) -> None:
    where = "along the last axis, of boxes"
    text = _program(where, kind="fold", by="by @add", last="(i, j) -> (i, j, 0)", end="1")
    _check(text, {"at": _places(9), "x": _cells("f32", 1)}, caplog)


_INSIDE = "domain(2 * d1 - d2 + 60 >= 0)"


def test_points_that_do_not_count_may_be_outside(caplog: pytest.LogCaptureFixture) -> None:
    where = "along the last axis, of boxes"
    text = _program(
        where, kind="fold", by="by @add", last="(i, j) -> (i, j, 0)", end="1", domain=_INSIDE
    )
    at = _places(9)
    at[:, 67:] = 1000
    _check(text, {"at": at, "x": _cells("f32", 1)}, caplog)
    at[3, 66] = -1
    with pytest.raises(BlockIndexError, match="index -1 is out of range"):
        _check(text, {"at": at, "x": _cells("f32", 1)}, caplog)


@pytest.mark.parametrize("where", _BOXES)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize(("wrong", "place"), [(9, (0, 0)), (-1, (5, -1))])
def test_a_place_outside_is_told_as_the_executor_tells_it(
    where: str, *, rows: bool, wrong: int, place: tuple[int, int]
) -> None:
    """Also in the second call, when results are written to the same memory."""
    module = parse_module(_program(where, rows=rows), "model.mlir")
    parts = partial(in_parts, small=0, threads=1, cache=2000, loops=Loops(0))
    prepared = PreparedProgram(module, Library(loops=Loops(0)), parts)
    at, x = _places(4, 6 if rows else 70), _cells("f32")
    prepared([at, x])
    at[place[0], 0 if rows else place[1]] = wrong
    with pytest.raises(BlockIndexError) as told:
        find_executor("numpy").run(module, {"at": at, "x": x}, NoWatch())
    for _ in range(2):
        with pytest.raises(BlockIndexError) as error:
            prepared([at, x])
        assert str(error.value) == str(told.value)
