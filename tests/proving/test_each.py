"""`tapestry-opt --equal-each`: a pass that changes a function is found out and named."""

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from tapestry import frontend
from tapestry.frontend import parse_text
from tapestry.proving.each import DifferenceError, PassWatch
from tapestry.proving.pair import Options
from tapestry.tools import opt
from tapestry.universe import TAPESTRY_UNIVERSE

PROGRAM = """
!v = !loom.tensor<[0] : [4], f32>
func.func @other(%x: !v) -> !v { func.return %x : !v }
func.func @difference(%x: !v, %y: !v) -> !v {
  %z = loom.operation @sub over <[0] : [4]> [map] ins(%x : (d0) -> (d0), %y : (d0) -> (d0))
         outs((d0) -> (d0))
         wrap (%a: f32, %b: f32) { %c = arith.subf %a, %b : f32 loom.yield %c : f32 }
         : (!v, !v) -> !v
  func.return %z : !v
}
"""


@dataclass(frozen=True)
class SwapOperands(ModulePass):
    """Swaps the operands of every subtraction: wrong."""

    name = "swap-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for sub in op.walk():
            if isinstance(sub, arith.SubfOp):
                sub.operands = [sub.rhs, sub.lhs]


@pytest.fixture
def universe(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = {**TAPESTRY_UNIVERSE.all_passes, "swap-operands": lambda: SwapOperands}
    found = frontend.installed_universe()
    known = Universe(
        all_dialects=found.all_dialects, all_passes=passes, all_targets=found.all_targets
    )
    monkeypatch.setattr(frontend, "installed_universe", lambda: known)
    monkeypatch.setattr(opt, "installed_universe", lambda: known)


def test_names_the_function_and_the_inputs():
    module = parse_text(PROGRAM)
    watch = PassWatch(Options())
    watch.start(module)
    SwapOperands().apply(Context(), module)
    with pytest.raises(DifferenceError) as caught:
        watch.after("swap-operands", module)
    assert "swap-operands changes @difference" in caught.value.message
    assert "class generic, seed 0" in caught.value.message
    assert "@other" not in caught.value.message
    # It goes on from what the pass made.
    assert watch.after("nothing", module)[1].startswith("nothing: @difference: equal (certified)")


@pytest.mark.usefixtures("universe")
def test_the_tool_stops_at_the_pass(tmp_path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    with pytest.raises(SystemExit) as stop:
        opt.main([str(path), "-p", "loom-simplify,swap-operands,loom-fuse", "--equal-each"])
    assert stop.value.code == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "loom-simplify: @difference: equal" in shown.err
    assert "error: swap-operands changes @difference: differ" in shown.err
    assert "loom-fuse" not in shown.err
    opt.main([str(path), "-p", "swap-operands"])
    assert "arith.subf" in capsys.readouterr().out


def test_what_is_no_longer_loom_is_left_out(tmp_path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM.replace("@difference", "@main").replace("@other", "@spare"))
    with pytest.raises(SystemExit):
        opt.main([str(path), "-p", "no-such-pass", "--equal-each"])
    capsys.readouterr()
    opt.main([str(path), "-p", "loom-to-triton", "--equal-each"])
    shown = capsys.readouterr()
    assert "loom-to-triton: @main: not compared: it is no longer in weft or loom" in shown.err
