"""Values of integer expressions, against Python's own arithmetic and the rules of the language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import WeftError, evaluate_expression

N = [3, 1, 5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100 / 10 / 2", 5),
        ("7 // 2 + -7 // 2", -1),
        ("-7 % 4", 1),
        ("7 % 4 * 2", 6),
        ("-2 ^ 2", -4),
        ("2 ^ 3 ^ 2", 512),
        ("3 < 4", 1),
        ("$n == [3, 1, 5]", 1),
        ("$n != [3, 1, 5]", 0),
        ("#n", 3),
        ("$n[1]", 1),
        ("$n[[2, 0]]", [5, 3]),
        ("$n[:2]", [3, 1]),
        ("$n[3:]", []),
        ("[0...{2}, $n..., 9]", [0, 0, 3, 1, 5, 9]),
        ("[$n, $n]", [N, N]),
        ("sum($n[:2])", 4),
        ("prod($n)", 15),
        ("prod([])", 1),
        ("max($n) + min(4, 2)", 7),
        ("ceildiv(10, 4)", 3),
        ("ceildiv(-10, 4)", -2),
        ("broadcast([2, 1, 4], [3, 1])", [2, 3, 4]),
        ("broadcast_all([[2, 1], [3], []])", [2, 3]),
        ("iota(3)", [0, 1, 2]),
        ("is_perm([2, 0, 1])", 1),
        ("is_perm([2, 0, 2])", 0),
        ("resolve_shape([2, -1, 3], 24)", [2, 4, 3]),
        ("resolve_shape([], 1)", []),
        ("resolve_shape([0, 5], 0)", [0, 5]),
        ("len([])", 0),
    ],
)
def test_values(text, value):
    assert evaluate_expression(text, {"$n": N}) == value


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("$m", "unknown_name", "known: $n"),
        ("@n", "unknown_name", "@n is not bound"),
        ("foo(1)", "unknown_name", "unknown function foo"),
        ("summ($n)", "unknown_name", "did you mean sum?"),
        ("7 / 2", "inexact_division", "leaves a remainder"),
        ("2 ^ -1", "inexact_division", "negative"),
        ("7 // 0", "division_by_zero", "7 // 0"),
        ("7 % 0", "division_by_zero", "7 % 0"),
        ("7 / 0", "division_by_zero", "7 / 0"),
        ("ceildiv(1, 0)", "division_by_zero", "ceildiv"),
        ("$n[3]", "index_out_of_range", "element 3 of [3, 1, 5]"),
        ("$n[-1]", "index_out_of_range", "element -1"),
        ("$n[2:1]", "index_out_of_range", "slice [2:1]"),
        ("$n[:4]", "index_out_of_range", "never clamped"),
        ("$n + 1", "kind_mismatch", "must be an integer"),
        ("len(3)", "kind_mismatch", "must be a list"),
        ("3[0]", "kind_mismatch", "no list"),
        ("len($n, $n)", "kind_mismatch", "takes 1 argument, not 2"),
        ("max()", "kind_mismatch", "at least one"),
        ("max([])", "kind_mismatch", "empty"),
        ("$n < 2", "kind_mismatch", "must be an integer"),
        ("$n == 2", "kind_mismatch", "different kinds"),
        ("broadcast([2], [3])", "broadcast_mismatch", "do not broadcast"),
        ("resolve_shape([4, -1], 10)", "size_mismatch", "cannot fill"),
        ("resolve_shape([4, 2], 10)", "size_mismatch", "8 cells, not 10"),
        ("resolve_shape([-1, -1], 10)", "parameter", "at most one -1"),
        ("resolve_shape([-1, 0], 0)", "size_mismatch", "cannot fill"),
        ("[...]", "rank_mismatch", "no rank to fill"),
        ("[1...{-1}]", "rank_mismatch", "negative"),
        ("[$n...{2}]", "rank_mismatch", "3 elements, not 2"),
        ("[+]", "parse_error", "cursor form"),
        ("2 ^ 100", "limit", "beyond 2^62"),
        ("9 ^ 9 ^ 9", "limit", "beyond 2^62"),
        ("[1...{99999999}]", "limit", "99999999 elements"),
        ("iota(1000000)", "limit", "1000000 elements"),
        ("'tanh' + 1", "kind_mismatch", "must be an integer"),
    ],
)
def test_refusals(text, kind, says):
    with pytest.raises(WeftError) as caught:
        evaluate_expression(text, {"$n": N})
    assert caught.value.kind == kind
    assert says in str(caught.value)


def test_an_environment_holds_integers():
    with pytest.raises(WeftError, match=r"\$x is 1.5"):
        evaluate_expression("$x", {"$x": 1.5})


numbers = st.integers(-20, 20)


@given(numbers, numbers, numbers, st.sampled_from("+-*"), st.sampled_from("+-*"))
def test_arithmetic_is_pythons(a, b, c, first, second):
    text = f"$a {first} $b {second} $c"
    wanted = eval(f"a {first} b {second} c", {"a": a, "b": b, "c": c})  # noqa: S307
    assert evaluate_expression(text, {"$a": a, "$b": b, "$c": c}) == wanted


@given(numbers, numbers.filter(bool))
def test_division_is_floored_and_exact_division_is_exact(a, b):
    environment = {"$a": a, "$b": b}
    assert evaluate_expression("$a // $b * $b + $a % $b", environment) == a
    assert evaluate_expression("$a * $b / $b", environment) == a
    assert evaluate_expression("ceildiv($a, $b)", environment) == -(-a // b)


@given(st.lists(numbers, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_slices_are_half_open_and_never_clamped(items, start, end):
    environment = {"$x": items, "$s": start, "$e": end}
    if start <= end <= len(items):
        assert evaluate_expression("$x[$s:$e]", environment) == items[start:end]
    else:
        with pytest.raises(WeftError) as caught:
            evaluate_expression("$x[$s:$e]", environment)
        assert caught.value.kind == "index_out_of_range"
