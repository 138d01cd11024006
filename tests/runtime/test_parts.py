"""Programs in parts, of any size and on any number of threads, give what `reference` gives."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor
from tapestry.runtime.prepared import PreparedProgram
from tapestry.runtime.prepared.parts import in_parts
from tapestry.runtime.program import arguments
from tests.end_to_end.programs import Program, programs

_PIPELINES = ["weft-apply", "weft-apply,loom-simplify,loom-fuse", "default"]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    program=programs(),
    pipeline=st.sampled_from(_PIPELINES),
    cache=st.integers(1, 4096),
    threads=st.integers(1, 3),
)
def test_any_program(program: Program, pipeline: str, cache: int, threads: int) -> None:
    naive = parse_text(program.text)
    run_pipeline(naive, "weft-apply")
    want = find_executor("reference").run(naive, program.inputs, NoWatch()).outputs
    module = parse_text(program.text)
    run_pipeline(module, pipeline)
    parts = partial(in_parts, small=0, threads=threads, cache=cache)
    prepared = PreparedProgram(module, parts=parts)
    given = [program.inputs[argument.name] for argument in arguments(module)]
    for _ in range(2):  # the second time results are written into memory that the first one found
        for value, have, expected in zip(program.outputs, prepared(given), want, strict=True):
            assert have.dtype == expected.dtype
            if value.exact:
                np.testing.assert_array_equal(have, expected)
            else:
                near = (1e-5 if value.dtype == "f32" else 1e-12) * max(value.bound, 1.0)
                np.testing.assert_allclose(have, expected, rtol=0, atol=near)
