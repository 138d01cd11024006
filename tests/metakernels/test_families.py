"""Lists of tensors, optional inputs and families: what they expand to, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.metakernels import TensorSpec, WeftError, expand, load_library
from tapestry.metakernels.documents import read_yaml
from tapestry.metakernels.expansion import Family, MapFold, Move

LIBRARY = load_library()


def own(text: Any) -> Any:
    return LIBRARY.extended({"t": read_yaml(text, "f.yaml")})


def spec(*shape: Any, dtype: Any = "f32") -> Any:
    return TensorSpec(tuple(shape), dtype)


def apply(name: Any, *given: Any, library: Any = LIBRARY, **parameters: Any) -> Any:
    return expand(library.get(name), given, parameters, library)


def placements(expansion: Any) -> Any:
    return [
        (member.operands, [(p.output, p.placement and str(p.placement)) for p in member.parts])
        for member in expansion.body.members
    ]


def test_concat_is_a_family_of_views_at_offsets_0_3_4() -> None:
    concat = apply("concat", [spec(2, 3), spec(2, 1), spec(2, 5)], axis=1)
    assert concat.outputs[0].spec == spec(2, 9)
    assert placements(concat) == [
        ((0,), [(0, "(d0, d1) -> (d0, d1)")]),
        ((1,), [(0, "(d0, d1) -> (d0, d1 + 3)")]),
        ((2,), [(0, "(d0, d1) -> (d0, d1 + 4)")]),
    ]
    assert all(isinstance(member.expansion.body, Move) for member in concat.body.members)


def test_split_gives_4_4_2() -> None:
    split = apply("split", spec(3, 10), chunk=4, axis=-1)
    assert [str(tensor) for tensor in split.outputs] == [
        "chunks[0]: [3, 4] f32", "chunks[1]: [3, 4] f32", "chunks[2]: [3, 2] f32",
    ]  # fmt: skip
    offsets = [member.expansion.body.source.offset for member in split.body.members]
    assert offsets == [(0, 0), (0, 4), (0, 8)]
    assert placements(split) == [((0,), [(k, None)]) for k in range(3)]


SEED = """
concat:
  params: {axis: {type: int, axis_of: tensors}}
  for: "$k in len($n)"
  inputs: {tensors: {each: $i, when: "$i == $k", shape: "[$pre...{$axis}, $n[$i], $post...]"}}
  index: "[$pre..., $n[$k], $post...]"
  outputs:
    result:
      shape: "[$pre..., sum($n), $post...]"
      ipf: "[1...] + [0...[:$axis]..., sum($n[:$k]), 0...[$axis + 1:]...]"
split:
  params: {axis: {type: int, axis_of: x}, chunk: {type: int}}
  require: ["$chunk > 0"]
  for: "$k in ceildiv($n, $chunk)"
  inputs:
    x: {shape: "[$pre...{$axis}, $n, $post...]", ipf: "[...] + [0...{$axis}, $k*$chunk, 0...]"}
  index: "[$pre..., min($chunk, $n - $k*$chunk), $post...]"
  outputs: {chunks: {each: $i, count: "ceildiv($n, $chunk)", when: "$i == $k"}}
"""


def test_without_wrap_cells_are_moved() -> None:
    library = LIBRARY.with_text(SEED)
    concat = apply("concat", [spec(2, 3), spec(2, 1), spec(2, 5)], library=library, axis=1)
    offsets = [member.parts[0].placement.offset for member in concat.body.members]
    assert offsets == [(0, 0), (0, 3), (0, 4)]
    split = apply("split", spec(10), library=library, axis=0, chunk=4)
    assert [tensor.spec.shape for tensor in split.outputs] == [(4,), (4,), (2,)]
    assert apply("split", spec(0), library=library, axis=0, chunk=4).outputs == ()
    with pytest.raises(WeftError, match="the cells that are moved are f16") as caught:
        apply("concat", [spec(2, dtype="f16"), spec(2)], library=library, axis=0)
    assert caught.value.kind == "dtype_mismatch"


def test_a_family_of_one_is_an_operation() -> None:
    assert isinstance(apply("concat", [spec(2)]).body, Move)


def test_a_flat_list_is_taken_by_the_only_list() -> None:
    assert apply("concat", spec(2), spec(3)).outputs[0].spec == spec(5)
    after = own("""
inputs:
  a: {each: $i, shape: "[$n]"}
  b: {shape: "[$n]"}
index: "[$n]"
wrap: "sum(a...) * b"
""")
    assert (
        apply("t", spec(3), spec(3), spec(3), library=after).reads
        == apply("t", [spec(3), spec(3)], spec(3), library=after).reads
    )


def test_the_dtypes_of_a_list_promote_and_the_members_cast() -> None:
    concat = apply("concat", [spec(2, dtype="f16"), spec(3)])
    assert concat.outputs[0].spec.dtype == "f32"
    first, second = (member.expansion.body for member in concat.body.members)
    assert isinstance(first, MapFold)
    assert isinstance(second, Move)


def test_indexed_sequences_and_projections() -> None:
    library = own("""
inputs:
  xs: {each: $i, when: "$i == $k", shape: "[$lead[$i]..., $n]",
       ipf: "[0...{len($lead[$i])}, @n]"}
for: "$k in #i"
index: "[1, $n]"
outputs:
  result: {shape: "[#i, $n]", ipf: "[1...] + [$k, 0]"}
  ranks: {each: $i, shape: "[1...{len($lead[$i])}, $n]", ipf: "[0...{len($lead[$i])}, 1]",
          when: "0 == 1"}
""")  # fmt: skip
    with pytest.raises(WeftError, match="no member writes ranks") as caught:
        apply("t", [spec(2, 4), spec(4)], library=library)
    assert caught.value.kind == "family"


def test_lists_of_lists_are_indexed() -> None:
    library = own("""
for: "$k in #i"
inputs: {xs: {each: $i, when: "$i == $k", shape: "[$d[$i]...]"}}
index: "[$d[$k]...]"
outputs: {copies: {each: $i, when: "$i == $k"}}
""")
    copies = apply("t", [spec(2, 3), spec(), spec(4)], library=library)
    assert [tensor.spec for tensor in copies.outputs] == [spec(2, 3), spec(), spec(4)]


def test_names_without_an_index_unify_across_the_list_and_other_inputs() -> None:
    library = own("""
inputs:
  pairs: {each: $i, shape: "[$n[$i], $m]"}
  weights: {each: $i, shape: "[$m, $n[$i]]", ipf: "[1, 0]"}
index: "[$m]"
""")
    template = library.get("t")
    for shapes, says in [
        (
            ([(2, 3), (4, 3)], [(3, 2), (3, 5)]),
            r"\$n\[1\] is 5 in weights\[1\] but 4 in pairs\[1\]",
        ),
        (([(2, 3), (4, 5)], [(3, 2), (3, 4)]), r"\$m is 5 in pairs\[1\] but 3 in pairs\[0\]"),
        (([(2, 3), (4, 3)], [(3, 2)]), "weights has 1 tensors, and #i is 2"),
    ]:  # fmt: skip
        with pytest.raises(WeftError, match=says):
            expand(template, [[spec(*s) for s in group] for group in shapes], {}, library)


def test_an_optional_input_chooses_the_branch() -> None:
    library = own("""
inputs:
  x: {shape: "[$n]", dtype: float}
  s: {shape: "[$n]", dtype: float, optional: true}
  b: {shape: "[$n]", dtype: float, optional: true}
index: "[$n]"
wrap: "where(#s, x * s, x) + where(#b, b, 1)"
outputs: {result: {shape: "[where(#b, $n, $n)]"}}
""")
    whole = apply("t", spec(3), spec(3), spec(3), library=library)
    assert whole.body.ins == (0, 1, 2)
    assert apply("t", spec(3), library=library).body.ins == (0,)
    only_b = apply("t", spec(3), None, spec(3), library=library)
    assert [tensor.name for tensor in only_b.inputs] == ["x", "b"]
    assert apply("t", spec(3), [], spec(3), library=library).inputs == only_b.inputs


def test_members_may_be_of_different_kinds() -> None:
    library = own("""
for: "$k in 2"
inputs: {x: {shape: "[$n]", when: "$k == 0"}}
index: "[$n]"
wrap: "where($k == 0, x, 0)"
outputs: {result: {shape: "[2 * $n]", ipf: "[1] + [$k * $n]"}}
""")
    padded = apply("t", spec(3), library=library)
    first, second = padded.body.members
    assert isinstance(first.expansion.body, Move)
    assert (second.operands, second.expansion.body.ins) == ((), ())


def test_lets_and_requirements_may_be_the_members_own() -> None:
    library = own("""
params: {sizes: {type: "int[]"}}
for: "$k in len($sizes)"
let: {start: "sum($sizes[:$k])", stop: "$start + $sizes[$k]"}
require: ["$sizes[$k] > 0"]
inputs: {x: {shape: "[$n]", ipf: "[1] + [$start]"}}
index: "[$stop - $start]"
outputs: {parts: {each: $i, count: "len($sizes)", when: "$i == $k"}}
""")
    parts = apply("t", spec(5), library=library, sizes=[2, 3])
    assert [t.spec.shape for t in parts.outputs] == [(2,), (3,)]
    with pytest.raises(WeftError, match=r"member \$k = 1: require .* \$k = 1") as caught:
        apply("t", spec(5), library=library, sizes=[2, -1])
    assert caught.value.kind == "requirement"


def test_several_clauses_are_all_combinations() -> None:
    library = own("""
for: ["$r in 2", "$c in $r + 1"]
inputs: {x: {shape: "[1]"}}
index: "[1]"
outputs: {result: {shape: "[3]", ipf: "[1] + [$r + $c]"}}
""")
    offsets = [
        m.parts[0].placement.offset for m in apply("t", spec(1), library=library).body.members
    ]
    assert offsets == [(0,), (1,), (2,)]


def test_strides_are_checked_exactly() -> None:
    text = """
for: "$k in 2"
inputs: {x: {shape: "[$n]"}}
index: "[$n]"
outputs: {result: {shape: "[2 * $n]", ipf: "[2] + [$k]"}}
"""
    assert isinstance(apply("t", spec(2**40), library=own(text)).body, Family)
    for old, new, says in [
        ("[$k]", "[0]", "parts 0 and 1 overlap"),
        ("2 * $n", "2 * $n + 1", r"do not cover"),
        ("[2] +", "[1] +", "overlap"),
        ("2 * $n", "2 * $n - 1", "reaches outside"),
    ]:
        with pytest.raises(WeftError, match=says) as caught:
            apply("t", spec(7), library=own(text.replace(old, new)))
        assert caught.value.kind == "not_tiled"
        assert "f.yaml:5:" in str(caught.value)


WRONG = """\
for: "$k in #i"
inputs: {xs: {each: $i, when: "$i == $k", shape: "[$n[$i], $m]"}}
index: "[$n[$k], $m]"
outputs: {result: {shape: "[sum($n), $m]", ipf: "[...] + [sum($n[:$k]), 0]"}}
"""


def test_the_right_one() -> None:
    assert apply("t", [spec(2, 3), spec(4, 3)], library=own(WRONG)).outputs[0].spec == spec(6, 3)


@pytest.mark.parametrize(
    ("old", "new", "kind", "where", "says"),
    [
        ("each: $i, when", "each: 3, when", "parse_error", "2:21", "each: $i"),
        ("$n[$i], $m", "$n[$j], $m", "list", "2:51", "write $n[$i]"),
        ("$n[$i], $m", "$n[$i], $n", "list", "2:51", "element of a list"),
        ("when: ", "optional: true, when: ", "list", "2:35", "is a list"),
        ('"$k in #i"', '"$i in #i"', "list", "1:7", "$i is bound already"),
        ('"$k in #i"', '["$k in #i", "$k in 2"]', "list", "1:20", "$k is bound already"),
        ('"$k in #i"', '"$k in $k"', "unknown_name", "1:7", "$k is not bound"),
        ('"$k in #i"', '"k in 3"', "parse_error", "1:7", "unexpected `k`"),
        ("$n[$i], $m", "$n[$i], $i", "list", "2:14", "bound to something else"),
        ("sum($n), $m", "sum($n) + $k, $m", "family", "4:28", "$k is each member's own"),
        ("result: {", "result: {count: 3, ", "list", "4:27", "is one tensor"),
        ("result: {", "result: {each: $j, ", "list", "4:26", "how many tensors"),
        ("result: {", "result: {each: $m, count: 2, ", "list", "4:26", "$m is bound already"),
        ("result: {", "result: {dtype: $k, ", "family", "4:27", "$k"),
        ("index:", "view: reshape\nindex:", "invalid_template", "4:9", "exclude each other"),
    ],
)  # fmt: skip
def test_wrong_templates(old: Any, new: Any, kind: Any, where: Any, says: Any) -> None:
    assert old in WRONG
    with pytest.raises(WeftError) as caught:
        own(WRONG.replace(old, new, 1)).get("t")
    error = caught.value
    place = error.location
    assert place is not None
    assert (error.kind, f"{place.line}:{place.column}") == (kind, where), error
    assert says in str(error)


@pytest.mark.parametrize(
    ("old", "new", "given", "kind", "says"),
    [
        ("#i", "10^9", [spec(2, 3)], "limit", "a family of 1000000000 members"),
        ("#i", "0 - 2", [spec(2, 3)], "family", "there would be -2 members"),
        ("#i", "1", [spec(2, 3), spec(2, 3)], "not_tiled", "does not write each cell"),
        ("result: {shape", "result: {each: $r, count: 10^9, shape", [spec(2, 3)], "limit",
         "a list of 1000000000 outputs"),
        ("result: {shape", "result: {each: $r, count: 0 - 1, shape", [spec(2, 3)], "family",
         "-1 tensors in result"),
        ("result: {shape", "result: {each: $i, count: 3, shape", [spec(2, 3)], "list_length",
         "#i is 1"),
        ('shape: "[sum($n), $m]", ', "", [spec(2, 3), spec(2, 3)], "family", "must be given"),
        ("outputs", 'wrap: "xs[1]"\noutputs', [spec(2, 3)], "unread_cell", "xs[1] is not read"),
        ('"$i == $k", shape', '"$i == $k", dtype: $t, shape', [spec(2, 3), spec(2, 3, dtype="f16")],
         "dtype_mismatch", "$t is f16 in xs[1], f32 before"),
        ("#i", "#i", spec(2, 3, 4), "rank_mismatch", "xs[0] has rank 3"),
    ],
)  # fmt: skip
def test_wrong_applications(old: Any, new: Any, given: Any, kind: Any, says: Any) -> None:
    library = own(WRONG.replace(old, new, 1))
    with pytest.raises(WeftError) as caught:
        apply("t", given, library=library)
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)


def test_operands_that_do_not_fit_the_inputs() -> None:
    library = own("""
inputs:
  x: {shape: "[$n]"}
  ys: {each: $i, shape: "[$n]"}
  zs: {each: $j, shape: "[$n]"}
index: "[$n]"
wrap: "x + sum(ys..., zs...)"
""")
    for tensors, says in [
        ((spec(2),), r"takes 3 operands \(x, \[ys...\], \[zs...\]\), and 1 are given"),
        (([spec(2)], [spec(2)], [spec(2)]), "x is one tensor, and a list of 1 is given"),
        ((spec(2), spec(2), [spec(2)]), "ys is a list of tensors"),
        ((spec(2), None, [spec(2)]), "ys is a list of tensors"),
        ((None, [spec(2)], [spec(2)]), "x is not given"),
    ]:
        with pytest.raises(WeftError, match=says) as caught:
            apply("t", *tensors, library=library)
        assert caught.value.kind == "operand"
    with pytest.raises(WeftError, match="the list is empty") as caught:
        apply("t", spec(2), [spec(2)], [], library=library)
    assert caught.value.kind == "unread_cell"
    with pytest.raises(WeftError, match="more than 4096") as caught:
        apply("t", spec(2), [spec(2)] * 5000, [], library=library)
    assert caught.value.kind == "limit"


def test_a_list_where_one_cell_is_needed() -> None:
    library = own('{inputs: {x: {each: $i, shape: "[$n]"}}, index: "[$n]", wrap: "x + 1"}')
    with pytest.raises(WeftError, match="x is 2 cells here, where one is needed") as caught:
        apply("t", [spec(2), spec(2)], library=library)
    assert caught.value.kind == "unread_cell"
    assert "x[0]" in str(caught.value.hint)


def test_an_optional_input_that_is_left_out_and_read() -> None:
    library = own('{inputs: {x: {shape: "[$n]"}, b: {shape: "[$n]", optional: true}}, '
                  'index: "[$n]", wrap: "x + b"}')  # fmt: skip
    with pytest.raises(WeftError, match="b is not read here") as caught:
        apply("t", spec(2), library=library)
    assert caught.value.kind == "unread_cell"
    assert "where(#b, ...)" in str(caught.value.hint)


def test_an_axis_of_an_empty_list() -> None:
    with pytest.raises(WeftError, match="axis of tensors, of which there is none"):
        apply("concat", [])


def test_the_seeds_notation_for_positions() -> None:
    library = own(WRONG.replace("$n[$i]", "$.n"))
    assert apply("t", [spec(2, 3), spec(4, 3)], library=library).outputs[0].spec == spec(6, 3)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(0, 2))
def test_concat_tiles_for_any_sizes(sizes: Any, axis: Any) -> None:
    shapes = [tuple(size if d == axis else 2 for d in range(3)) for size in sizes]
    concat = apply("concat", [spec(*shape) for shape in shapes], axis=axis)
    assert concat.outputs[0].spec.shape[axis] == sum(sizes)
    split = apply("split", concat.outputs[0].spec, chunk=3, axis=axis)
    assert sum(tensor.spec.shape[axis] for tensor in split.outputs) == sum(sizes)
