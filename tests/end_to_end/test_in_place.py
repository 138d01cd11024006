"""Parts of an assembly are written where they stand in it, by whatever kernel makes them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.codegen.module_printer import print_module
from tapestry.frontend import parse_text, run_pipeline
from tapestry.runtime.executor import NoWatch, find_executor

PROGRAM = """
!x = !loom.tensor<[0, 0] : [8, 16], f32>
!w = !loom.tensor<[0, 0] : [16, 16], f32>
!h = !loom.tensor<[0, 0, 0] : [8, 2, 8], f32>
!y = !loom.tensor<[0, 0] : [8, 48], f32>
func.func @main(%x: !x, %w: !w) -> !y {
  %a = weft.apply @matmul(%x, %w) : (!x, !w) -> !x
  %b = weft.apply @softmax(%x) : (!x) -> !x
  %r = loom.reshape %x : !x -> !h
  %e = weft.apply @softmax(%r) : (!h) -> !h
  %c = loom.reshape %e : !h -> !x
  %y = loom.assemble %a, %b at (d0, d1) -> (d0, d1 + 16), %c at (d0, d1) -> (d0, d1 + 32)
         : !x, !x, !x -> !y
  func.return %y : !y
}
"""


SHAPES = {"x": (8, 16), "w": (16, 16)}


def _lowered(pipeline: str) -> tuple[ModuleOp, str]:
    module = parse_text(PROGRAM)
    run_pipeline(module, pipeline)
    shown = module.clone()
    run_pipeline(shown, "loom-to-triton")
    return module, print_module(shown).source


@pytest.mark.parametrize(
    ("pipeline", "copies"),
    [("default", 0), ("weft-apply,loom-simplify", 0), ("default,loom-shard{shards=2}", 3)],
)
def test_parts_are_copied_only_where_shards_cut_them(pipeline: str, copies: int) -> None:
    module, source = _lowered(pipeline)
    assert len(re.findall(r"copy\w*\[grid\]", source)) == copies
    random = np.random.default_rng(0)
    given = {name: random.normal(size=shape).astype("f4") for name, shape in SHAPES.items()}
    got, want = (
        find_executor(on).run(module, given, NoWatch()).outputs[0] for on in ("triton", "reference")
    )
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_rotated_heads_are_neither_copied_nor_repeated() -> None:
    """LLaMA's rotations are halves side by side, and its keys serve groups of queries."""
    pytest.importorskip("torch")
    from tapestry.importers.torch.graphs import program_of
    from tests.end_to_end.attention_models import attention, graph_of

    module, inputs = attention("llama", 8)
    lowered = program_of(graph_of(module, inputs)).module
    run_pipeline(lowered, "default,loom-to-triton")
    source = print_module(lowered).source
    launches = re.findall(r"(\w+)\[grid\]", source)
    # Queries; keys and values; attention; the output. The last two are one group, which has no
    # tiles of two axes and so is cut.
    assert len(launches) == 4
    assert not [name for name in launches if name.startswith("copy")]
