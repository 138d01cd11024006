"""Activation functions are PyTorch's, and finite where PyTorch's are."""

# pyright: basic
# PyTorch has no types to speak of.

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.metakernels.library.against_torch import (
    FLOATS,
    NUMBERS,
    Row,
    channels,
    entries,
    examples_agree,
    floats,
    law,
    like,
    one_axis,
    torch,
    unary,
)

functional = torch.nn.functional

LOOSE: dict[str, Any] = {"ulps": 16, "absolute": 4}


def named(function, **names):
    """A PyTorch function whose parameters have other names."""
    return lambda x, **given: function(x, **{names.get(key, key): v for key, v in given.items()})


def same(name, **parameters):
    """PyTorch's function of the same name, on floats."""
    return Row(getattr(functional, name), unary(low=-9, high=9, **parameters), **LOOSE)


def threshold(x, threshold=0.0, value=0.0):
    return functional.threshold(x, like(threshold, x), like(value, x))


def prelu(x, slope):
    return functional.prelu(x, slope)


def rrelu(x, lower=0.125, upper=1 / 3):
    return functional.rrelu(x, lower, upper, training=False)


def hardtanh(x, low=-1.0, high=1.0):
    return functional.hardtanh(x, low, high)


def doubled(drawn):
    """The array of a draw, twice along its axis."""
    (x,), given = drawn
    return np.concatenate([x, x[::-1]], given["axis"])


POSITIVE = floats(0.25, 2)

ROWS = {
    "relu": Row(torch.relu, unary(NUMBERS)),
    "relu6": Row(functional.relu6, unary(NUMBERS, low=-9, high=9)),
    "leaky_relu": Row(
        named(functional.leaky_relu, slope="negative_slope"), unary(slope=floats(-1, 1))
    ),
    "prelu": Row(prelu, channels(("f32", "f64"))),
    "rrelu": Row(rrelu, unary(lower=floats(0, 0.25), upper=floats(0.5, 1))),
    "elu": Row(
        lambda x, **how: torch.ops.aten.elu(x, **how),
        unary(low=-9, high=9, alpha=POSITIVE, scale=POSITIVE, input_scale=POSITIVE),
        **LOOSE,
    ),
    "selu": same("selu"),
    "celu": same("celu", alpha=POSITIVE),
    "gelu": Row(
        functional.gelu, unary(low=-9, high=9, approximate=st.sampled_from(("none", "tanh"))),
        ulps=64, absolute=16,
    ),
    "silu": same("silu"),
    "mish": same("mish"),
    "softplus": same("softplus", beta=POSITIVE, threshold=floats(4, 20)),
    "softsign": same("softsign"),
    "logsigmoid": same("logsigmoid"),
    "hardtanh": Row(hardtanh, unary(low=-3, high=3)),
    "hardsigmoid": same("hardsigmoid"),
    "hardswish": same("hardswish"),
    "tanhshrink": same("tanhshrink"),
    "softshrink": same("softshrink", lambd=POSITIVE),
    "hardshrink": same("hardshrink", lambd=POSITIVE),
    "gate_halves": Row(
        lambda x, gate, axis=-1: x.chunk(2, axis)[0] * torch.sigmoid(gate.chunk(2, axis)[1]),
        one_axis(FLOATS).map(lambda drawn: ([doubled(drawn)] * 2, drawn[1])), **LOOSE,
    ),
    "glu": Row(
        lambda x, axis=-1: functional.glu(x, axis),
        one_axis(FLOATS).map(lambda drawn: ([doubled(drawn)], drawn[1])), **LOOSE,
    ),
    "swiglu": Row(
        lambda gate, value: functional.silu(gate) * value,
        one_axis(FLOATS).map(lambda drawn: ([drawn[0][0]] * 2, {})), **LOOSE,
    ),
    "threshold": Row(threshold, unary(NUMBERS, threshold=floats(-1, 1).map(round).map(float))),
}  # fmt: skip

test_rows = law(ROWS)


def test_every_entry_has_a_row() -> None:
    assert set(ROWS) == entries("activations")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_examples(name: str) -> None:
    examples_agree(ROWS, name)
