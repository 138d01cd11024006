"""Laws of the cost model: more work never costs less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapestry.devices import DeviceSpec, find_spec
from tapestry.passes.triton.cost.roofline import estimate_of, memory_bytes
from tapestry.passes.triton.cost.work import Product, Stream, Work

H200, A100 = find_spec("h200"), find_spec("a100")

counts = st.integers(1, 1 << 14)


@st.composite
def streams(draw: st.DrawFn, buffers: int) -> Stream:
    cell = draw(st.sampled_from((1, 2, 4, 8)))
    cells = 1 << draw(st.integers(0, 13))
    return Stream(
        buffer=draw(st.integers(0, buffers - 1)),
        writes=draw(st.booleans()),
        cells=cells,
        cell=cell,
        accesses=draw(st.integers(1, 64)),
        kept=draw(st.floats(0.1, 1.0)),
        run=cell * draw(st.sampled_from((1, cells))),
        vector=cell,
        starts=np.arange(4224) // draw(st.integers(1, 512)),
        scattered=draw(st.booleans()),
    )


@st.composite
def some_work(draw: st.DrawFn) -> Work:
    sides = st.sampled_from((16, 32, 64, 128, 256))
    products = st.builds(
        Product,
        sides,
        sides,
        sides,
        st.sampled_from(("f16", "tf32", "bf16x6", "lanes")),
        st.integers(1, 64),
    )
    return Work(
        programs=draw(counts),
        warps=draw(st.sampled_from((1, 2, 4, 8, 16))),
        stages=draw(st.integers(1, 4)),
        steps=draw(st.integers(0, 128)),
        streams=tuple(draw(st.lists(streams(2), min_size=1, max_size=3))),
        products=tuple(draw(st.lists(products, max_size=2))),
        lanes=(lanes := draw(counts)),
        waiting_lanes=lanes * draw(st.floats(0, 1)),
        specials=draw(counts),
        requests=draw(counts),
        live=(live := draw(counts)),
        walking=draw(st.integers(0, live)),
        staged=draw(st.sampled_from((0, 1 << 10, 1 << 14))),
        passing=0,
        rows=draw(st.sampled_from((0.0, 96.0))),
        descriptors=draw(st.integers(0, 3)),
        direct=draw(st.sampled_from((0, 1 << 12))),
        held=draw(st.sampled_from((0, 1 << 12))),
        exchanged=0,
        late=draw(st.sampled_from((0.0, 1 << 14))),
        addresses=draw(st.integers(0, 32)),
        buffers=(draw(st.integers(1 << 8, 1 << 30)), draw(st.integers(1 << 8, 1 << 30))),
    )


specs = st.sampled_from((H200, A100))


def seconds(work: Work, spec: DeviceSpec) -> float:
    return estimate_of(work, spec).seconds


@settings(max_examples=60, deadline=None)
@given(some_work(), specs, st.integers(2, 5))
def test_more_work_in_a_program_never_takes_less(work: Work, spec: DeviceSpec, by: int) -> None:
    now = seconds(work, spec) * (1 - 1e-12)
    assert seconds(replace(work, lanes=work.lanes * by), spec) >= now
    assert seconds(replace(work, waiting_lanes=work.lanes), spec) >= now
    assert seconds(replace(work, specials=work.specials * by), spec) >= now
    assert seconds(replace(work, requests=work.requests * by), spec) >= now
    if work.steps > 1:  # one step alone is hidden behind other programs less
        assert seconds(replace(work, steps=work.steps + by), spec) >= now
    more = tuple(replace(p, count=p.count * by) for p in work.products)
    assert seconds(replace(work, products=more), spec) >= now


@settings(max_examples=60, deadline=None)
@given(some_work(), specs, st.integers(2, 5))
def test_more_bytes_never_take_less(work: Work, spec: DeviceSpec, by: int) -> None:
    now = seconds(work, spec) * (1 - 1e-12)
    more = tuple(replace(s, accesses=s.accesses * by) for s in work.streams)
    assert seconds(replace(work, streams=more), spec) >= now
    twice = (*work.streams, work.streams[0])
    assert seconds(replace(work, streams=twice), spec) >= now
    larger = tuple(size * by for size in work.buffers)
    assert seconds(replace(work, buffers=larger), spec) >= now


@settings(max_examples=60, deadline=None)
@given(some_work(), specs, st.integers(2, 5))
def test_more_programs_never_take_less(work: Work, spec: DeviceSpec, by: int) -> None:
    now = seconds(work, spec) * (1 - 1e-12)
    assert seconds(replace(work, programs=work.programs * by), spec) >= now


@settings(max_examples=40, deadline=None)
@given(some_work(), specs)
def test_a_better_device_never_takes_longer(work: Work, spec: DeviceSpec) -> None:
    now = seconds(work, spec) * (1 + 1e-12)
    memory = spec.memory.model_copy(update={"bandwidth": spec.memory.bandwidth * 2})
    assert seconds(work, spec.model_copy(update={"memory": memory})) <= now
    rates = spec.rates.model_copy(update={"f16": spec.rates.f16 * 2})
    assert seconds(work, spec.model_copy(update={"rates": rates})) <= now


@settings(max_examples=60, deadline=None)
@given(some_work(), st.integers(1, 2000))
def test_memory_moves_no_less_than_what_is_there_and_no_more_than_is_asked(
    work: Work, at_once: int
) -> None:
    asked = sum(work.programs * s.bytes for s in work.streams)
    written = sum(work.programs * s.bytes for s in work.streams if s.writes)
    moved = memory_bytes(work, at_once, H200)
    assert written * (1 - 1e-9) <= moved <= asked * (1 + 1e-9)
