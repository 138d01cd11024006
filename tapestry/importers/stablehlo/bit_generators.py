"""Random bits as XLA makes them: `rng_bit_generator` with Philox, which is also the default.

    block b of four words is philox(key = state[0], counter = (state[1] + b, state[0]))

Philox 4x32 with ten rounds, in 64-bit arithmetic, where products of words are whole. The state that
comes out counts the blocks. (`jax.random` itself is threefry, whose shifts and sums are in the
program.)

Source: XLA, xla/hlo/builder/lib/prng.cc, GeneratePhiloxBits; compared with it by the tests.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from tapestry.algebra.philox import KEY_STEPS, MULTIPLIERS, ROUNDS, WORDS
from tapestry.dialects import loom
from tapestry.importers.bodies import Body
from tapestry.importers.operations import maps
from tapestry.importers.stablehlo.attributes import word
from tapestry.importers.stablehlo.bits import bitcast
from tapestry.importers.stablehlo.movement import concatenate, reshape, window
from tapestry.importers.stablehlo.pointwise import pointwise
from tapestry.importers.stablehlo.program import Op, Program, Translation
from tapestry.importers.stablehlo.values import Spec, Value
from tapestry.zspace import AffineMap, Projection, Range

_LOW = (1 << 32) - 1


def _rng_bit_generator(program: Program, op: Op) -> Sequence[Value]:
    (state,) = op.operands
    made, bits = op.results
    algorithm = word(op.attributes["rng_algorithm"])
    if algorithm not in ("PHILOX", "DEFAULT") or state.spec != Spec((2,), "ui64"):
        raise program.error(
            f"{op.name} is supported with PHILOX and a state of two ui64, not with {algorithm} and "
            f"{state.spec}"
        )
    if not bits.is_integer or bits.width > 32:
        raise program.error(f"{op.name} makes integers of up to 32 bits, not {bits.dtype}")
    blocks = -(-bits.size // WORDS)
    words = _words(program, state, blocks)
    flat = reshape(program, window(program, words, [0], [bits.size]), bits.shape)
    narrow = flat
    if bits.width < 32:
        narrow = program.apply("cast", flat, parameters={"dtype": f"ui{bits.width}"})
    return [_counted(program, state, blocks, made), bitcast(program, narrow, bits.dtype)]


def _counted(program: Program, state: Value, blocks: int, result: Spec) -> Value:
    """The state that goes on after some blocks."""
    one = result.of(shape=(1,))

    def build(body: Body, cells: Sequence[SSAValue]) -> SSAValue:
        return body.add(arith.AddiOp(cells[0], body.number(blocks, i64)))

    key, counter = (window(program, state, [place], [1]) for place in (0, 1))
    return concatenate(program, [key, pointwise(program, "count", [counter], one, build)], 0)


def _words(program: Program, state: Value, blocks: int) -> Value:
    """The words of that many blocks, one block after another."""
    body = Body([i64, i64])
    key, counter = body.arguments
    place = body.add(arith.AddiOp(counter, body.index(0)))
    key0, key1 = _halves(body, key)
    words = [*_halves(body, place), key0, key1]
    keys = [key0, key1]
    for number in range(ROUNDS):
        if number:
            keys = [
                _low(body, _plus(body, k, step)) for k, step in zip(keys, KEY_STEPS, strict=True)
            ]
        a, b = (
            body.add(arith.MuliOp(words[2 * side], body.number(MULTIPLIERS[side], i64)))
            for side in (0, 1)
        )
        (low_a, high_a), (low_b, high_b) = _halves(body, a), _halves(body, b)
        words = [
            _mixed(body, high_b, words[1], keys[0]), low_b,
            _mixed(body, high_a, words[3], keys[1]), low_a,
        ]  # fmt: skip
    spec = Spec((blocks,), "ui32")
    out = (Projection.identity(1), program.kind(spec))
    cells = [body.narrowed(one, i32) for one in words]
    reads = [(program.tensor(state), Projection.of([[0]], [number])) for number in (0, 1)]
    op = loom.OperationOp(
        "philox", Range.of((blocks,)), maps(1), None, reads, [out] * WORDS, body.region(*cells)
    )
    parts = program.insert(op)
    places = [AffineMap.diagonal(WORDS).translate([number]) for number in range(WORDS)]
    kind = program.kind(Spec((WORDS * blocks,), "ui32"))
    tensors = [program.tensor(part) for part in parts]
    return program.insert(loom.AssembleOp(tensors, kind, places))[0]


def _plus(body: Body, value: SSAValue, number: int) -> SSAValue:
    return body.add(arith.AddiOp(value, body.number(number, i64)))


def _low(body: Body, value: SSAValue) -> SSAValue:
    return body.add(arith.AndIOp(value, body.number(_LOW, i64)))


def _halves(body: Body, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The lower and the upper 32 bits."""
    return _low(body, value), body.add(arith.ShRUIOp(value, body.number(32, i64)))


def _mixed(body: Body, *values: SSAValue) -> SSAValue:
    first, second, third = values
    return body.add(arith.XOrIOp(body.add(arith.XOrIOp(first, second)), third))


TRANSLATIONS: dict[str, Translation] = {"stablehlo.rng_bit_generator": _rng_bit_generator}
