"""Promotion and accumulation types, as in PyTorch."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute

from tapestry.algebra.dtypes import (
    ELEMENT_TYPES,
    accumulation_type,
    promote,
    type_named,
    ui8,
    ui32,
    ui64,
)
from tapestry.metakernels.dtypes import DTYPES
from tapestry.metakernels.dtypes import promote as promote_names


def _named(name: str) -> Attribute:
    element = type_named(name)
    assert element is not None
    return element


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        (i1, i8, i8),
        (i1, ui8, ui8),
        (i8, ui8, i16),
        (ui8, i16, i16),
        (ui8, ui32, ui32),
        (ui32, i8, i64),
        (ui64, i64, i64),
        (ui64, f16, f16),
        (ui8, f16, f16),
        (i64, f16, f16),
        (f16, bf16, f32),
        (bf16, bf16, bf16),
        (f32, f64, f64),
    ],
)
def test_promotion(left: Attribute, right: Attribute, want: Attribute) -> None:
    assert promote(left, right) == promote(right, left) == want


def test_complex_types_promote_by_their_parts() -> None:
    c64, c128 = _named("complex<f32>"), _named("complex<f64>")
    assert promote(c64, c128) == promote(c64, f64) == promote(f64, c64) == c128
    assert promote(c64, i64) == promote(f16, c64) == promote(c64, f32) == c64
    with pytest.raises(TypeError, match="cast it first"):
        promote(_named("f8E5M2"), c64)


def test_templates_promote_alike() -> None:
    for left in DTYPES:
        for right in DTYPES:
            found = promote(_named(left), _named(right))
            assert str(found) == promote_names(left, right)


def test_what_is_only_stored_promotes_to_nothing() -> None:
    with pytest.raises(TypeError, match="cast it first"):
        promote(_named("f8E5M2"), f32)


def test_accumulation() -> None:
    wide = {f16: f32, bf16: f32, f64: f64, i1: i64, i8: i64, i16: i64, i32: i64}
    assert all(accumulation_type(kind) == wide[kind] for kind in wide)
    assert all(accumulation_type(kind) is not None for kind in ELEMENT_TYPES)
