"""Rules are read, or one message says what is wrong with them, and where."""

import pytest

from tapestry.metakernels import WeftError, load_library
from tapestry.rewriting import Rule, read_rules

LIBRARY = load_library()


def read(
    match: str = "{y: {op: relu, x: x}}", produce: str = "{y: x}", more: str = ""
) -> tuple[Rule, ...]:
    return read_rules(f"r:\n  match: {match}\n  produce: {produce}\n{more}", "f", LIBRARY)


def test_names_and_order() -> None:
    (rule,) = read(
        "{y: {op: exp, x: s}, s: {op: add, a: x, b: 2}}",
        "{y: {op: mul, a: p, b: q}, q: {op: exp, x: x}, p: {op: exp, x: x}}",
    )
    assert (rule.inputs, rule.outputs) == (("x",), ("y",))
    assert [a.name for a in rule.matched] == ["s", "y"]
    assert [a.name for a in rule.produced][-1] == "y"
    assert [a.name for a in rule.removed] == ["y"]


def test_what_one_use_alone_keeps_is_removed() -> None:
    (rule,) = read(
        "{r: {op: relu, x: x}, y: {op: exp, x: r}}",
        "{y: {op: exp, x: x}}",
        '  where: ["single_use(r)"]\n',
    )
    assert [a.name for a in rule.removed] == ["r", "y"]
    (kept,) = read(
        "{r: {op: relu, x: x}, y: {op: exp, x: r}}", "{y: r}", '  where: ["single_use(r)"]\n'
    )
    assert [a.name for a in kept.removed] == ["y"]


def test_lists_have_as_many_tensors_as_the_rule_names() -> None:
    (rule,) = read(
        "{s: {op: split, x: x, chunk: $c}, y: {op: concat, tensors: [s.1, s.0, x]}}", "{y: s.0}"
    )
    split, concat = rule.matched
    assert split.results == ("s.0", "s.1")
    assert (concat.sizes, concat.values) == ((3,), ("s.1", "s.0", "x"))
    assert concat.per_input("abc") == [["a", "b", "c"]]


WRONG: list[tuple[dict[str, str], str, str | None]] = [
    ({"more": "  whre: []\n"}, "f:4:3: error: rule r: unknown key `whre`", "where"),
    ({"more": "  exact: 1\n"}, "f:4:10: error: rule r: exact must be a boolean", None),
    ({"more": "  types: {x: {shap: '[]'}}\n"}, "types.x: unknown key `shap`", "shape"),
    ({"more": "  types: {z: '[$n]'}\n"}, "f:4:15: error: rule r: types.z is no tensor", "x"),
    ({"more": "  types: {x: '[$n'}\n"}, "f:4:18: error: rule r: cannot read the pattern", None),
    ({"more": "  types: {x: {dtype: floatt}}\n"}, "unknown dtype floatt", "float"),
    ({"more": "  where: ['$n > 1']\n"}, "f:4:12: error: rule r: where `$n > 1`: $n is not", None),
    ({"more": "  where: ['single_use(z)']\n"}, "where `single_use(z)`: z is no tensor", "x"),
    ({"more": "  where: ['used(y)']\n"}, "unknown condition used", "single_use"),
    ({"more": "  where: ['same_type(y)']\n"}, "same_type is about 2 tensors, not 1", None),
    ({"more": "  where: ['y > 1']\n"}, "cannot read the condition `y > 1`", None),
    ({"more": "  let: {m: '$n'}\n"}, "let.m `$n`: $n is not bound", None),
    ({"more": "  params: {k: {choose: 'divisor(4)'}}\n"}, "unknown function divisor", "divisors"),
    ({"more": "  params: {k: {chose: '4'}}\n"}, "params.k: unknown key `chose`", "choose"),
    ({"match": "{}"}, "f:2:10: error: rule r: match is empty", None),
    ({"match": "{y: x}"}, "match.y", None),
    ({"match": "{y: {op: rellu, x: x}}"}, "match.y: there is no metakernel @rellu", "relu"),
    ({"match": "{y: {op: relu, z: x}}"}, "f:2:25: error: rule r: match.y: relu has no", "x"),
    ({"match": "{y: {op: add, a: x}}"}, "match.y: input b of add is not given", None),
    (
        {"match": "{y: {op: transpose, x: x}}"},
        "parameter perm of transpose is not given",
        "perm: $perm",
    ),
    ({"match": "{y: {op: relu, x: {z: 1}}}"}, "must be the name of a tensor, or a number", None),
    ({"match": "{y: {op: add, a: x, b: 1 +}}"}, "cannot read the body `1 +`", None),
    ({"match": "{y: {op: add, a: x, b: x + 1}}"}, "x is no number", None),
    ({"match": "{y: {op: concat, tensors: x}}"}, "tensors is a list of tensors", "[x]"),
    ({"match": "{y: {op: concat, tensors: [x, [z]]}}"}, "must be the name of a tensor", None),
    ({"match": "{y: {op: relu, x: y}}"}, "match is a cycle: y -> y", None),
    (
        {"match": "{y: {op: relu, x: x}, w: {op: relu, x: v}}"},
        "shares no tensor with the others",
        None,
    ),
    ({"produce": "{z: {op: relu, x: x}}"}, "nothing is replaced", "call what is produced y"),
    ({"produce": "{y: z}"}, "f:3:16: error: rule r: produce.y: z is not bound", "x"),
    ({"produce": "{y: {op: relu, x: z}}"}, "f:3:16: error: rule r: produce.y: z is not", "x"),
    ({"produce": "{y: {op: relu, x: y}}"}, "produce is a cycle: y -> y", None),
    ({"produce": "{x: {op: relu, x: y}}"}, "produce makes x, which is an input", None),
    (
        {"produce": "{y: {op: relu, x: x}, z: {op: exp, x: x}}"},
        "produce.z is used by nothing",
        None,
    ),
    ({"produce": "{y: {op: add, a: 1, b: 2}}"}, "a number takes its dtype from a tensor", None),
    ({"produce": "{y: {op: sum, x: x, axis: $k}}"}, "f:3:38: error: rule r: produce.y: $k", None),
    ({"produce": "{y: {op: cast, x: x, dtype: $t}}"}, "produce.y: $t is not bound", None),
    ({"produce": "{y: 3"}, "f:", None),
]


@pytest.mark.parametrize(("given", "message", "hint"), WRONG)
def test_what_is_wrong_is_said(given: dict[str, str], message: str, hint: str | None) -> None:
    with pytest.raises(WeftError) as caught:
        read(**given)
    assert message in str(caught.value)
    assert caught.value.location is not None
    if hint is not None:
        assert hint in (caught.value.hint or "")
