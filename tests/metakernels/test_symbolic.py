"""Templates over symbols: what comes out is, at any sizes it holds for, what numbers give."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.metakernels import WeftError, expand, load_library
from tapestry.metakernels.expansion import MapFold
from tapestry.metakernels.sizes import evaluate_size, parse_size
from tapestry.metakernels.symbolic import expand_symbolically, is_instance
from tapestry.metakernels.symbols import plain
from tapestry.metakernels.traces import Trace
from tapestry.tools._applications import example_application

LIBRARY = load_library().with_text(
    """
flip:
  inputs: {x: {shape: "[$n]", ipf: "[$n - 1 - @n]"}}
  index: "[$n]"
window:
  inputs:
    x: {shape: "[$n]", ipf: "[@y + @k]"}
    f: {shape: "[$k]", ipf: "[@k]"}
  index: "[y = $n - $k + 1]"
  fold: {k: {extent: $k, monoid: add}}
  wrap: "x * f"
halve:
  inputs: {x: {shape: "[$n]", ipf: "[2 * @y]"}}
  index: "[y = $n / 2]"
blocks:
  inputs: {x: {shape: "[$n]", ipf: "[-, -, -, +]"}}
  index: "[ceildiv($n, 128), min($n, 128), $n % 3]"
  wrap: "x / sqrt($n) + 1 / $n"
ones:
  inputs: {x: {shape: "[$n]", ipf: "[-..., +]"}}
  index: "[1...{$n}]"
  wrap: "x"
large:
  inputs: {x: {shape: "[$n]"}}
  require: ["$n > 8"]
  index: "[$n]"
  wrap: "x"
"""
)


def found(name: str, *shapes: list[int | str], **parameters: object):
    tensors = [(shape, "f32") for shape in shapes]
    return expand_symbolically(LIBRARY.get(name), tensors, parameters, LIBRARY)


@pytest.mark.parametrize(
    ("name", "shapes", "parameters", "index", "assumptions"),
    [
        ("matmul", (["N", "K"], ["K", "M"]), {}, "(N, M, K)", ()),
        ("matmul", (["N", "K"], ["L", "M"]), {}, "(N, M, K)", ("K == L",)),
        ("matmul", (["N", 3], ["K", "M"]), {}, "(N, M, 3)", ("K == 3",)),
        ("linear", (["N", "D"], ["D", "4 * D"], ["H"]), {}, "(N, 4 * D, D)", ("4 * D == H",)),
        ("add", (["N", "K"], ["K"]), {}, "(N, K)", ()),
        ("add", (["N"], ["M"]), {}, "(N,)", ("M == N",)),
        ("add", (["N", 1], [1, "M"]), {}, "(N, M)", ("M != 1", "N != 1")),
        ("sum", (["N", "K"],), {"axis": 0}, "(K, N)", ()),
        ("flip", (["N"],), {}, "(N,)", ()),
        ("window", (["N"], ["K"]), {}, "(-K + N + 1, K)", ("N + 1 >= K",)),
        ("window", (["N"], [3]), {}, "(N - 2, 3)", ("N > 1",)),
        ("halve", (["2 * N"],), {}, "(N,)", ()),
        ("halve", (["N"],), {}, "(N / 2,)", ("N % 2 == 0",)),
        ("large", (["N"],), {}, "(N,)", ("N > 8",)),
        ("blocks", (["N"],), {}, "(ceildiv(N, 128), min(128, N), N % 3)", ("N > 0",)),
    ],
)  # fmt: skip
def test_index_spaces(
    name: str,
    shapes: tuple[list[int | str], ...],
    parameters: dict[str, object],
    index: str,
    assumptions: tuple[str, ...],
):
    result = found(name, *shapes, **parameters)
    assert result.expansion.space is not None
    assert str(result.expansion.space.extents) == index
    assert result.assumptions == assumptions


def test_projections_and_bodies_hold_symbols():
    (read,) = found("flip", ["N"]).expansion.reads
    assert str(read) == "(d0) -> (-d0 + N - 1)"
    body = found("blocks", ["N"]).expansion.body
    assert isinstance(body, MapFold)
    assert "value=sqrt(N)" in str(body.wrap)
    assert "value=1 / N" in str(body.wrap)


def test_a_reshape():
    result = found("reshape", ["N", "K"], shape=[-1, 4])
    assert str(result.expansion.outputs[0].spec) == "[K * N / 4, 4] f32"
    assert result.assumptions == ("(K * N) % 4 == 0",)


@pytest.mark.parametrize(
    ("name", "shapes", "kind", "says"),
    [
        ("linear", (["N", 3], [4, "M"], ["M"]), "size_mismatch", "$in is 4 in W but 3 in x"),
        ("linear", (["N", "N + 1"], ["N", "M"], ["M"]), "size_mismatch", "$in is N in W but"),
        ("flip", (["N", "M"],), "rank_mismatch", "x has rank 2 (shape [N, M])"),
        ("ones", (["N"],), "symbolic_size", "the length of a fill is N"),
        ("add", (["N + 2"], ["N + 3"]), "broadcast_mismatch", "do not broadcast"),
        ("large", (["N % 8"],), "requirement", "does not hold for $n = N % 8"),
    ],
)  # fmt: skip
def test_what_fits_no_sizes(name: str, shapes: tuple[list[int | str], ...], kind: str, says: str):
    with pytest.raises(WeftError) as caught:
        found(name, *shapes)
    assert caught.value.kind == kind
    assert says in str(caught.value)


STANDARD = load_library()
EXAMPLES = [
    (name, position)
    for name in STANDARD.names
    for position in range(len(STANDARD.get(name).examples))
]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("name", "position"), EXAMPLES)
def test_every_library_template_takes_symbols(name: str, position: int):
    """An example's sizes become symbols; at its sizes the result is the example's."""
    template = STANDARD.get(name)
    example = template.examples[position]
    given = example_application(template, example, STANDARD).expansion
    specs = [tensor.spec for tensor in given.inputs]
    symbols = {size: f"N{size}" for spec in specs for size in spec.shape if size > 1}
    shapes = [([symbols.get(size, size) for size in spec.shape], spec.dtype) for spec in specs]
    parameters = dict(example.parameters)
    try:
        result = expand_symbolically(template, shapes, parameters, STANDARD)
    except WeftError as error:
        # A size that equals a parameter, or decides a rank, cannot be a symbol.
        assert error.kind in ("symbolic_size", "size_mismatch"), error  # noqa: PT017
        return
    sizes = {name: size for size, name in symbols.items()}
    values = {name: size for name, size in sizes.items() if name in result.trace.examples}
    if all(one.holds_for(result.trace.values(values)) for one in result.trace.decisions):
        numbers = expand(template, specs, parameters, STANDARD)
        assert is_instance(result.expansion, numbers, result.trace.values(values))


TERMS = st.recursive(
    st.sampled_from(["N", "K", "1", "2", "3", "7"]),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "*", "-", "//", "%"]), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(text=TERMS, n=st.integers(0, 40), k=st.integers(0, 40))
def test_expressions_mean_what_their_text_says(text: str, n: int, k: int):
    tree = parse_size(text)
    trace = Trace({"N": n, "K": k})
    try:
        value = evaluate_size(tree, {"N": n, "K": k})
    except WeftError:
        return
    symbolic = evaluate_size(tree, {"N": trace.symbol("N"), "K": trace.symbol("K")})
    assert plain(symbolic) == value
    assert evaluate_size(parse_size(str(symbolic)), {"N": n, "K": k}) == value
    assert all(one.holds_for(trace.values({"N": n, "K": k})) for one in trace.decisions)


@settings(max_examples=60, deadline=None)
@given(a=TERMS, b=TERMS, n=st.integers(0, 12), k=st.integers(0, 12), other=st.integers(0, 12))
def test_what_is_decided_without_an_assumption_is_always_so(
    a: str, b: str, n: int, k: int, other: int
):
    trees = parse_size(a), parse_size(b)
    trace = Trace({"N": n, "K": k})
    symbols = {name: trace.symbol(name) for name in "NK"}
    try:
        left, right = (evaluate_size(tree, symbols) for tree in trees)
        answers = (left == right, left < right, left <= right)
        x, y = (evaluate_size(tree, {"N": other, "K": k}) for tree in trees)
    except WeftError:
        return
    values = trace.values({"N": other, "K": k})
    if all(one.holds_for(values) for one in trace.decisions):
        assert answers == (x == y, x < y, x <= y)


def test_sympy_is_imported_when_it_is_needed():
    code = "import sys, tapestry.metakernels, tapestry.passes.weft.apply as a; a.load_library();"
    subprocess.run([sys.executable, "-c", f"{code} assert 'sympy' not in sys.modules"], check=True)
