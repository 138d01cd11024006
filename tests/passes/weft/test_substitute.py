"""weft-substitute: where productions are placed, what is remembered, and how long it takes."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tapestry.dialects import weft
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.metakernels import load_library
from tapestry.passes.weft.substitute import substitute
from tapestry.proving.rules import RuleChecker
from tapestry.rewriting import RuleError, read_rules

LIBRARY = load_library()
V = "!loom.tensor<[0] : [4], f32>"

TWO = """
two:
  match: {p: {op: exp, x: x}, q: {op: mul, a: x, b: z}}
  produce: {p: {op: exp, x: x}, q: {op: mul, a: z, b: x}}
"""


def module_of(
    *lines: str, arguments: Sequence[str] = ("x",), results: Sequence[str] = ("y",)
) -> ModuleOp:
    given = ", ".join(f"%{name}: {V}" for name in arguments)
    body = "\n".join(lines)
    types = ", ".join([V] * len(results))
    text = (
        f"func.func @main({given}) -> ({types}) {{\n{body}\n"
        f"func.return {', '.join(f'%{name}' for name in results)} : {types}\n}}"
    )
    module = parse_text(text, "m.mlir")
    verify_module(module)
    return module


def apply(name: str, result: str, *operands: str) -> str:
    given = ", ".join(f"%{operand}" for operand in operands)
    return f"%{result} = weft.apply @{name}({given}) : ({', '.join([V] * len(operands))}) -> {V}"


def run(module: ModuleOp, text: str, chosen: Mapping[str, int] | None = None) -> list[str]:
    substitute(module, read_rules(text, "r.yaml", LIBRARY), LIBRARY, lambda *_: True, chosen or {})
    verify_module(module)
    return [op.metakernel_name for op in module.walk() if isinstance(op, weft.ApplyOp)]


def test_two_results_stand_before_the_first_use() -> None:
    module = module_of(
        apply("exp", "p", "x"), apply("neg", "n", "p"), apply("mul", "q", "x", "x"),
        apply("add", "y", "n", "q"),
    )  # fmt: skip
    assert run(module, TWO) == ["exp", "mul", "neg", "add"]


def test_two_results_stand_after_what_they_use() -> None:
    module = module_of(
        apply("exp", "p", "x"), apply("neg", "z", "x"), apply("mul", "q", "x", "z"),
        apply("add", "y", "p", "q"),
    )  # fmt: skip
    assert run(module, TWO) == ["neg", "exp", "mul", "add"]


def test_two_results_that_need_each_other_stay() -> None:
    lines = (
        apply("exp", "p", "x"), apply("neg", "z", "p"), apply("mul", "q", "x", "z"),
        apply("add", "y", "p", "q"),
    )  # fmt: skip
    module = module_of(*lines)
    assert run(module, TWO) == ["exp", "neg", "mul", "add"]


def test_choices_take_the_first_value_that_fits_or_the_one_asked_for() -> None:
    text = """
split:
  match: {y: {op: reshape, x: x, shape: [4]}}
  types: {x: "[$n]"}
  params: {k: {choose: "divisors($n)"}}
  where: ["$k > 1"]
  let: {m: "$n / $k"}
  produce: {z: {op: reshape, x: x, shape: "[$k, $m]"}, y: {op: reshape, x: z, shape: "[4]"}}
"""
    for chosen, wanted in (({}, "[2 : i64, 2 : i64]"), ({"k": 4}, "[4 : i64, 1 : i64]")):
        module = parse_text(
            f"func.func @main(%x: {V}) -> {V} {{\n"
            f"  %y = weft.apply @reshape(%x) {{shape = [4]}} : ({V}) -> {V}\n"
            f"  func.return %y : {V}\n}}"
        )
        assert run(module, text, chosen=chosen) == ["reshape", "reshape"]
        first = next(op for op in module.walk() if isinstance(op, weft.ApplyOp))
        assert str(first.parameters.data["shape"]) == wanted
    assert run(module_of(apply("relu", "y", "x")), text, chosen={"k": 3}) == ["relu"]


def test_a_rule_is_checked_when_it_first_matches_and_remembered(tmp_path: Path) -> None:
    rules = read_rules(
        "twice:\n  match: {r: {op: relu, x: x}, y: {op: relu, x: r}}\n  produce: {y: r}\n"
        "wrong:\n  match: {y: {op: exp, x: x}}\n  produce: {y: x}\n",
        "r.yaml",
        LIBRARY,
    )
    module = module_of(apply("relu", "r", "x"), apply("relu", "y", "r"))
    checker = RuleChecker(LIBRARY, tmp_path)
    substitute(module, rules, LIBRARY, checker.admits, {})
    assert not checker.require(rules[0]).is_remembered
    assert len(list(tmp_path.iterdir())) == 1
    assert RuleChecker(LIBRARY, tmp_path).require(rules[0]).is_remembered
    for damaged in ("{", "[]", '{"places": "many"}'):
        next(tmp_path.iterdir()).write_text(damaged)
        assert not RuleChecker(LIBRARY, tmp_path).require(rules[0]).is_remembered
    with pytest.raises(RuleError, match="wrong"):
        checker.require(rules[1])
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_changed_metakernel_says_is_checked_again(tmp_path: Path) -> None:
    text = "r:\n  match: {r: {op: relu, x: x}, y: {op: relu, x: r}}\n  produce: {y: r}\n"
    (rule,) = read_rules(text, "r.yaml", LIBRARY)
    RuleChecker(LIBRARY, tmp_path).check(rule)
    relu = "relu:\n  inputs: {x: {shape: '[$d...]', dtype: float}}\n  index: '[$d...]'\n"
    other = LIBRARY.with_text(f"{relu}  wrap: 'max(x, 0) + 1'\n")
    (again,) = read_rules(text, "r.yaml", other)
    with pytest.raises(RuleError):
        RuleChecker(other, tmp_path).require(again)


def test_a_program_that_is_wrong_is_left_for_weft_apply() -> None:
    module = parse_text(
        f"func.func @main(%x: {V}) -> !loom.tensor<[0] : [5], f32> {{\n"
        f"  %r = weft.apply @relu(%x) : ({V}) -> {V}\n"
        f"  %y = weft.apply @relu(%r) : ({V}) -> !loom.tensor<[0] : [5], f32>\n"
        "  func.return %y : !loom.tensor<[0] : [5], f32>\n}"
    )
    run_pipeline(module, "weft-substitute{rules=identities}")
    assert sum(isinstance(op, weft.ApplyOp) for op in module.walk()) == 2


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_work_is_linear(shape: str) -> None:
    """Four times the program makes less than six times the calls, even where nothing matches."""

    def calls(count: int) -> int:
        names = ["x", *(f"v{n}" for n in range(count))]
        lines = [
            apply("neg" if n % 2 else "exp", f"v{n}", names[n] if shape == "chain" else "x")
            for n in range(count)
        ]
        module = module_of(*lines, results=(f"v{count - 1}",))
        count = 0

        def watch(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(watch)
        try:
            run(
                module,
                TWO + "nn:\n  match: {n: {op: neg, x: x}, y: {op: neg, x: n}}\n  produce: {y: x}",
            )
        finally:
            sys.setprofile(None)
        return count

    calls(50)
    assert calls(800) < 6 * calls(200)
