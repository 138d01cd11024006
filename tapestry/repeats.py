"""Runs of operations that repeat: the layers of a model, found by what they compute.

    >>> from tapestry.frontend import parse_module
    >>> module = parse_module('''
    ... !x = !loom.tensor<[0, 0] : [4, 4], f32>
    ... func.func @main(%x: !x, %w0: !x, %w1: !x, %w2: !x) -> !x {
    ...   %h0 = weft.apply @matmul(%x, %w0) : (!x, !x) -> !x
    ...   %y0 = weft.apply @relu(%h0) : (!x) -> !x
    ...   %h1 = weft.apply @matmul(%y0, %w1) : (!x, !x) -> !x
    ...   %y1 = weft.apply @relu(%h1) : (!x) -> !x
    ...   %h2 = weft.apply @matmul(%y1, %w2) : (!x, !x) -> !x
    ...   %y2 = weft.apply @relu(%h2) : (!x) -> !x
    ...   func.return %y2 : !x
    ... }''')
    >>> (run,) = repeats(module.body.block.first_op.body.block)
    >>> [[op.metakernel_name for op in segment] for segment in run]
    [['matmul', 'relu'], ['matmul', 'relu'], ['matmul', 'relu']]

Two segments are equal when their operations do the same, on operands that stand in the same places
or are the same of what the segments read from outside. Names, labels and places in files do not
count. The time is linear in the operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from tapestry.dialects.loom import TensorType

Segment: TypeAlias = tuple[Operation, ...]

_CANDIDATES = 16
"""How many distances between equal operations are tried as lengths, the most frequent ones."""

_UNNAMED = ("label", "derivation")


def repeats(block: Block) -> list[tuple[Segment, ...]]:
    """Runs of equal segments, one after another in a block; runs do not overlap.

    Those that repeat most operations come first. A run is cut where the fewest bytes pass from
    segment to segment.
    """
    ops = [op for op in block.ops if op is not block.last_op]
    codes = _codes(ops)
    passing = _passing_bytes(ops)
    found = [
        run
        for length in _lengths(ops, codes)
        for start, end in _periodic(codes, length)
        for run in _runs(ops, _cut(start, end, length, passing), end, length)
    ]
    found.sort(key=lambda run: len(run.segments[0]) - len(run.segments) * len(run.segments[0]))
    taken = bytearray(len(ops))
    chosen: list[tuple[Segment, ...]] = []
    for run in found:
        if not any(taken[run.start : run.end]):
            taken[run.start : run.end] = b"\1" * (run.end - run.start)
            chosen.append(run.segments)
    return chosen


@dataclass(frozen=True)
class _Run:
    start: int
    segments: tuple[Segment, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.segments) * len(self.segments[0])


def _codes(ops: Sequence[Operation]) -> list[int]:
    """A number per operation, equal for those that do the same."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(structure(op), len(known)) for op in ops]


def structure(op: Operation) -> tuple[Hashable, ...]:
    """What an operation does to operands of its types: all but names and places."""
    properties = frozenset((k, v) for k, v in op.properties.items() if k not in _UNNAMED)
    attributes = frozenset((k, v) for k, v in op.attributes.items() if k not in _UNNAMED)
    types = (tuple(v.type for v in op.operands), tuple(op.result_types))
    return (op.name, *types, properties, attributes, *map(_inside, op.regions))


def _inside(region: Region) -> tuple[Hashable, ...]:
    number: dict[SSAValue, Hashable] = {}
    rows: list[Hashable] = []
    for block in region.blocks:
        number.update((argument, len(number) + n) for n, argument in enumerate(block.args))
        rows.append(tuple(argument.type for argument in block.args))
        for op in block.ops:
            number.update((result, len(number) + n) for n, result in enumerate(op.results))
            operands = tuple(number.get(operand, operand) for operand in op.operands)
            rows.append((operands, structure(op)))
    return tuple(rows)


def _lengths(ops: Sequence[Operation], codes: Sequence[int]) -> list[int]:
    """Likely lengths of segments: how far back an operation has its like, with like producers."""
    place = {op: n for n, op in enumerate(ops)}
    last: dict[Hashable, int] = {}
    distances = Counter[int]()
    for n, op in enumerate(ops):
        producers = (
            place.get(operand.owner) for operand in op.operands if isinstance(operand, OpResult)
        )
        key = (codes[n], *(codes[p] for p in producers if p is not None))
        if key in last:
            distances[n - last[key]] += 1
        last[key] = n
    return [length for length, _ in distances.most_common(_CANDIDATES)]


def _periodic(codes: Sequence[int], length: int) -> list[tuple[int, int]]:
    """Where the codes repeat at a distance, at least once over: from, to."""
    found: list[tuple[int, int]] = []
    first = length
    for n in range(length, len(codes) + 1):
        if n == len(codes) or codes[n] != codes[n - length]:
            if n - first >= length:
                found.append((first - length, n))
            first = n + 1
    return found


def _passing_bytes(ops: Sequence[Operation]) -> list[int]:
    """Per place, the bytes of tensors that are written before it and read after it."""
    place = {op: n for n, op in enumerate(ops)}
    change = [0] * (len(ops) + 1)
    for n, op in enumerate(ops):
        for result in op.results:
            end = max((place.get(use.operation, len(ops)) for use in result.uses), default=n)
            size = result.type.byte_size if isinstance(result.type, TensorType) else 1
            if end > n:
                change[n + 1] += size
                if end + 1 <= len(ops):
                    change[end + 1] -= size
    return list(accumulate(change))


def _cut(start: int, end: int, length: int, passing: Sequence[int]) -> int:
    """Where the first segment starts: where least passes, and there are two segments at least."""
    places = range(start, min(start + length, end - 2 * length + 1))
    # The first place has nothing before it that repeats; what passes is the same a length later.
    return min(places, key=lambda place: (passing[place + length], place))


def _runs(ops: Sequence[Operation], start: int, end: int, length: int) -> list[_Run]:
    """Runs of two or more equal segments of one length."""
    runs: list[_Run] = []
    segments: list[Segment] = []
    wired: object = None
    for place in range(start, end, length):
        segment = tuple(ops[place : place + length])
        found = wiring(segment) if len(segment) == length else None
        if segments and found != wired:
            if len(segments) > 1:
                runs.append(_Run(place - len(segments) * length, tuple(segments)))
            segments = []
        wired = found
        if found is not None:
            segments.append(segment)
    if len(segments) > 1:
        runs.append(
            _Run(start + (end - start) // length * length - len(segments) * length, tuple(segments))
        )
    return runs


def wiring(segment: Segment) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Per operation and operand, which result of the segment it is, or which input: (-1, input)."""
    number = {value: (-1, n) for n, value in enumerate(inputs(segment))}
    for place, op in enumerate(segment):
        number.update((result, (place, n)) for n, result in enumerate(op.results))
    return tuple(tuple(number[operand] for operand in op.operands) for op in segment)


def inputs(segment: Segment) -> list[SSAValue]:
    """What a segment reads from outside, each once, in order."""
    inside = set(segment)
    operands = (operand for op in segment for operand in op.operands)
    return list(dict.fromkeys(v for v in operands if v.owner not in inside))
