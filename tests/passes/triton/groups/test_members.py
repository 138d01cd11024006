"""Values of members are written when they are asked for: each once, however many read it."""

from __future__ import annotations

import pytest

from tapestry.frontend import parse_text, run_pipeline
from tapestry.passes.triton.groups.group import Inner
from tapestry.passes.triton.groups.members import Members, Placed

_MEMBERS = 40


def _chain() -> str:
    """Members that each read the one before twice."""
    kind = "!loom.tensor<[0] : [256], f32>"
    members = "".join(
        f"""
      %{n} = loom.operation @twice over <[0] : [256]> [map]
          ins(%{n - 1} : (d0) -> (d0), %{n - 1} : (d0) -> (d0)) outs((d0) -> (d0))
          wrap (%a: f32, %b: f32) {{
            %sum = arith.addf %a, %b : f32
            loom.yield %sum : f32
          }} : ({kind}, {kind}) -> {kind}"""
        for n in range(1, _MEMBERS + 1)
    )
    aligned = ", ".join(["(d0) -> (d0)"] * _MEMBERS)
    return f"""
func.func @main(%x: {kind}) -> {kind} {{
  %y = loom.fused @chain over <[0] : [256]> aligned({aligned}) ins(%x)
    group (%0: {kind}) {{{members}
      loom.yield %{_MEMBERS} : {kind}
    }} : ({kind}) -> {kind}
  func.return %y : {kind}
}}
"""


def test_what_many_ways_lead_to_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 2^40 ways from the last member to the input."""
    asked: list[Inner] = []
    value = Members._value

    def counted(self: Members, inner: Inner) -> Placed:
        asked.append(inner)
        return value(self, inner)

    monkeypatch.setattr(Members, "_value", counted)
    run_pipeline(parse_text(_chain()), "loom-to-triton")
    assert _MEMBERS <= len(asked) <= 10 * _MEMBERS
