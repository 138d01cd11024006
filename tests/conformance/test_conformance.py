"""Facts that the geometry and the template language must reproduce, from files of cases.

    pytest tests/conformance --cases DIR

A file holds `{"cases": [{"id", "op", "args", "expect"}]}`, where `expect` is a value or
`{"error": kind}`. Every `op` is mapped here onto the public API; one that is not known fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pytest

from tapestry.diagnostics import TapestryError
from tapestry.zspace import (
    AffineMap,
    Projection,
    Range,
    ZSpaceError,
    bounding,
    compare,
    less,
    less_equal,
    permute,
    resolve_dim,
    resolve_dims,
    resolve_permutation,
    shape,
)

JSON = None | bool | int | str | list["JSON"] | dict[str, "JSON"]
ROOT = Path(__file__).parents[2]
DEFAULT = ROOT.parent / "shared" / "conformance"


@dataclass(frozen=True)
class Case:
    op: str
    args: object
    expect: JSON


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", _parameters(metafunc.config))


def test_case(case: Case) -> None:
    assert canonical(outcome(case)) == canonical(case.expect)


def test_an_unknown_operation_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"no operation range\.teleport"):
        outcome(Case("range.teleport", [], None))


def test_an_unexpected_error_is_an_outcome_of_its_own() -> None:
    assert outcome(Case("range.new", [[1], [0]], [[1], [0]])) == {"error": "invalid_range"}


def outcome(case: Case) -> JSON:
    """What the API makes of a case, in the form of an expectation."""
    run = OPERATIONS.get(case.op)
    if run is None:
        pytest.fail(f"no operation {case.op}: map it in {Path(__file__).name}")
    try:
        return encoded(run(case.args))
    except (ZSpaceError, TapestryError) as error:
        return {"error": error.kind}


def canonical(value: JSON) -> str:
    """Text that differs when values do, `true` and `1` included."""
    return json.dumps(value, sort_keys=True)


def encoded(value: object) -> JSON:
    match value:
        case None | bool() | int() | str():
            return value
        case Range():
            return [list(value.start), list(value.end)]
        case AffineMap():
            return {"projection": encoded(value.matrix), "offset": list(value.offset)}
        case Projection():
            return {"affineMap": encoded(value.map), "shape": list(value.shape)}
        case Mapping():
            return {str(key): encoded(item) for key, item in value.items()}
        case Sequence():
            return [encoded(item) for item in value]
        case _:
            return int(value)  # a symbolic size that has become a number


def _parameters(config: pytest.Config) -> list:
    given = config.getoption("--cases")
    folder = DEFAULT if given is None else config.invocation_params.dir / given
    if given is None and not folder.is_dir():
        reason = f"no conformance cases at {folder}: name their folder with --cases DIR"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="no-cases")]
    files = sorted(folder.glob("*.json"))
    if not files:
        raise pytest.UsageError(f"--cases {given or folder}: no *.json file in {folder}")
    return [
        pytest.param(Case(case["op"], case["args"], case["expect"]), id=f"{file.stem}-{case['id']}")
        for file in files
        for case in json.loads(file.read_text(encoding="utf-8"))["cases"]
    ]


def _rank(value) -> int:
    return value if isinstance(value, int) else len(value)


def _range(value) -> Range:
    return Range(tuple(value[0]), tuple(value[1]))


def _map(value, inputs: int | None = None) -> AffineMap:
    """A map from rows and offset; rows tell how many inputs it has, unless there are none."""
    rows = value["projection"]
    return AffineMap.of(rows, value.get("offset"), None if rows else inputs)


def _projection(value, inputs: int | None = None) -> Projection:
    mapping = _map(value["affineMap"], inputs)
    sizes = value.get("shape")
    return Projection.cells(mapping) if sizes is None else Projection(mapping, tuple(sizes))


def _relations(args) -> dict[str, bool]:
    a, b = args
    equal = compare(a, b) == "eq"
    return {
        "lt": less(a, b),
        "le": less_equal(a, b),
        "eq": equal,
        "ne": not equal,
        "ge": less_equal(b, a),
        "gt": less(b, a),
    }


def _new_map(args) -> AffineMap:
    rows, *offset = args
    return AffineMap.of(rows, offset[0] if offset else None)


def _new_projection(args) -> Projection:
    mapping, *sizes = args
    return _projection({"affineMap": mapping, "shape": sizes[0] if sizes else None})


def _compose(args) -> AffineMap:
    inner = _map(args[1])
    return _map(args[0], inner.outputs).compose(inner)


def _parse_pattern(text) -> str:
    from tapestry.metakernels import parse_pattern

    parse_pattern(text)
    return "ok"


def _match_pattern(args) -> dict[str, object]:
    from tapestry.metakernels import match_pattern

    dims, groups = match_pattern(args[0], tuple(args[1]))
    return {"dims": dims, "groups": groups}


def _evaluate(args) -> object:
    from tapestry.metakernels import evaluate_expression

    return evaluate_expression(args[0], args[1])


OPERATIONS: dict[str, Callable[..., object]] = {
    "point.compare": lambda a: compare(*a),
    "point.relations": _relations,
    "point.resolve_dim": lambda a: resolve_dim(a[1], _rank(a[0])),
    "point.permute": lambda a: permute(*a),
    "perm.resolve": lambda a: resolve_permutation(a[0], _rank(a[1])),
    "dims.resolve": lambda a: resolve_dims(a[0], _rank(a[1])),
    "shape.broadcast": lambda a: shape.broadcast(*a),
    "shape.strides": lambda a: shape.strides(a),
    "range.new": lambda a: _range(a),
    "range.from_shape": lambda a: Range.of(a),
    "range.size": lambda a: _range(a).size,
    "range.shape": lambda a: _range(a).shape,
    "range.is_empty": lambda a: _range(a).is_empty,
    "range.coords": lambda a: list(_range(a).coords()),
    "range.inclusive_end": lambda a: _range(a).inclusive_end,
    "range.contains_point": lambda a: _range(a[0]).contains(a[1]),
    "range.contains_range": lambda a: _range(a[0]).contains_range(_range(a[1])),
    "range.intersection": lambda a: _range(a[0]).intersection(_range(a[1])),
    "range.bounding": lambda a: bounding(map(_range, a)),
    "range.translate": lambda a: _range(a[0]).translate(a[1]),
    "range.product": lambda a: reduce(Range.product, map(_range, a)),
    "range.permute": lambda a: _range(a[0]).permute(a[1]),
    "range.split": lambda a: _range(a[0]).split(a[1], a[2]),
    "range.split_sizes": lambda a: _range(a[0]).split_sizes(a[1], a[2]),
    "affine.new": _new_map,
    "affine.diagonal": lambda a: AffineMap.diagonal(*a),
    "affine.apply": lambda a: _map(a[0], len(a[1])).apply(a[1]),
    "affine.broadcast_apply": lambda a: _map(a[0]).broadcast_apply(a[1]),
    "affine.compose": _compose,
    "affine.translate": lambda a: _map(a[0]).translate(a[1]),
    "affine.permute_input": lambda a: _map(a[0], len(a[1])).permute_input(a[1]),
    "affine.permute_output": lambda a: _map(a[0]).permute_output(a[1]),
    "rpm.new": _new_projection,
    "rpm.apply_point": lambda a: _projection(a[0], len(a[1])).apply_point(a[1]),
    "rpm.apply_range": lambda a: _projection(a[0], len(a[1][0])).apply_range(_range(a[1])),
    "rpm.broadcast_apply": lambda a: _projection(a[0]).broadcast_apply(a[1]),
    "pattern.parse": _parse_pattern,
    "pattern.match": _match_pattern,
    "expr.eval": _evaluate,
}
