"""Operands that may change places are seen from what applications expand to."""

import pytest

from tapestry.metakernels import Library, TensorSpec, expand, load_library
from tapestry.rewriting.symmetry import commutes

LIBRARY = load_library()
Pair = tuple[TensorSpec, TensorSpec]
X, Y = TensorSpec((4, 3), "f32"), TensorSpec((3,), "f16")


def same(name: str, library: Library, pair: Pair = (X, Y), **parameters: float) -> bool:
    template = library.get(name)
    one, other = (expand(template, order, parameters, library) for order in (pair, pair[::-1]))
    return commutes(one, other)


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "minimum", "eq", "logical_xor"])
def test_library_symmetric(name: str) -> None:
    assert same(name, LIBRARY)


@pytest.mark.parametrize("name", ["sub", "div", "lt", "pow"])
def test_library_ordered(name: str) -> None:
    assert not same(name, LIBRARY)


def test_parameters_decide() -> None:
    assert not same("add", LIBRARY, alpha=2.0)


def test_square_matrices() -> None:
    square = TensorSpec((3, 3), "f32")
    assert not same("matmul", LIBRARY, (square, square))


@pytest.mark.parametrize(
    ("wrap", "symmetric"),
    [
        ("a * b + b * a", True),
        ("exp(cast(a, f32)) + exp(cast(b, f32))", True),
        ("max(a, 2 * b)", False),
        ("a ^ 2 + b", False),
        ("where(a == b, 1, a + b)", True),
        ("where(a < b, a, b)", False),
    ],
)
def test_bodies(wrap: str, *, symmetric: bool) -> None:
    library = LIBRARY.with_text(f"""
t:
  inputs:
    a: {{shape: '[$a...]', ipf: '[align(@d, $a)...]'}}
    b: {{shape: '[$b...]', ipf: '[align(@d, $b)...]'}}
  let: {{d: 'broadcast($a, $b)'}}
  index: '[$d...]'
  wrap: '{wrap}'
""")
    assert same("t", library) == symmetric
