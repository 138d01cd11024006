"""What does the same as something before is a launch of its kernel, which is made once."""

from __future__ import annotations

import pytest

from tapestry.dialects import loom, triton
from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.groups.group import Group, NotOneKernelError, group_of
from tapestry.passes.triton.host import launching
from tapestry.passes.triton.host.sameness import Once, key
from tapestry.passes.triton.kernels.lowering import Options
from tapestry.passes.triton.kernels.mapfold import map_fold_of

TWICE = """
!x = !loom.tensor<[0, 0] : [4, 16], f32>
func.func @main(%x: !x, %y: !x) -> (!x, !x) {{
  %a = weft.apply @softmax(%x) : (!x) -> !x
  %b = weft.apply @scale(%a) {{factor = 2.0}} : (!x) -> !x
  %c = weft.apply @softmax(%y) : (!x) -> !x
  %d = weft.apply @scale(%c) {{factor = {factor}}} : (!x) -> !x
  func.return %b, %d : !x, !x
}}
"""
PIPELINE = "weft-apply,loom-simplify,loom-fuse,loom-derive,loom-simplify,loom-fuse,loom-group"


def _groups(factor: float) -> list[loom.FusedOp]:
    module = parse_text(TWICE.format(factor=factor))
    run_pipeline(module, PIPELINE)
    return [op for op in module.walk() if isinstance(op, loom.FusedOp)]


def test_groups_are_alike_whatever_their_names_are() -> None:
    first, second = _groups(2.0)
    assert first.label.data != second.label.data
    assert key(group_of(first)) == key(group_of(second))


def test_another_number_in_a_body_is_another_kernel() -> None:
    first, second = _groups(3.0)
    assert key(group_of(first)) != key(group_of(second))
    folds = [map_fold_of(group.members[-1]) for group in (first, second)]
    assert key(folds[0]) != key(folds[1])


def test_the_kernel_of_groups_that_are_alike_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    lower = launching.lower_group

    def counted(group: Group, options: Options, origins: tuple[str, ...]) -> object:
        made.append(group.name)
        return lower(group, options, origins)

    monkeypatch.setattr(launching, "lower_group", counted)
    module = parse_text(TWICE.format(factor=2.0))
    run_pipeline(module, f"{PIPELINE},loom-to-triton")
    assert len(made) == 1
    launches = [op for op in module.walk() if isinstance(op, triton.LaunchOp)]
    (kernel,) = [op for op in module.walk() if isinstance(op, triton.KernelOp)]
    assert len(launches) == 2
    # What both groups are stands in its comment.
    assert len({origin.data for origin in kernel.origins}) > len(_groups(2.0)[0].members) + 1


def test_what_is_no_kernel_is_not_tried_again() -> None:
    tried: list[int] = []

    def make() -> int:
        tried.append(0)
        raise NotOneKernelError("it scans")

    for shared, times in ((True, 1), (False, 3)):
        once: Once[int] = Once(shared)
        tried.clear()
        for _ in range(3):
            with pytest.raises(NotOneKernelError, match="it scans"):
                once.made("scan", make)
        assert len(tried) == times
