"""weft-apply: what applications become, where it says what is wrong, and what it keeps."""

# pyright: basic

from typing import Any

import pytest
from xdsl.context import Context

from tapestry.diagnostics import TapestryError
from tapestry.dialects import loom, weft
from tapestry.dialects._weft_documents import attribute_of, document_of
from tapestry.frontend import parse_text, run_pipeline, verify_module
from tapestry.locations import location_of
from tapestry.metakernels import load_library
from tapestry.metakernels.reading import read_template
from tapestry.passes.weft.apply import ApplyMetakernel, WeftApply

LIBRARY = load_library()
V8 = "!loom.tensor<[0] : [8], f32>"
M = "!loom.tensor<[0, 0] : [2, 3], f32>"

SQUARE = """
weft.metakernel @square {
  inputs = [{x = {shape = "[$d...]"}}], index = "[$d...]", wrap = "x * x"
}
"""


def program(*lines, argument=V8, result=V8, before=""):
    body = "\n".join(lines)
    return f"{before}\nfunc.func @main(%x: {argument}) -> {result} {{\n{body}\n}}"


def applied(text, pipeline="weft-apply"):
    module = parse_text(text, "m.mlir")
    verify_module(module)
    run_pipeline(module, pipeline)
    return module


def operations(module: Any, kind: Any = loom.OperationOp) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, kind)]


def test_operations_are_labelled_by_their_result():
    module = applied(
        program(
            f"%hidden = weft.apply @relu(%x) : ({V8}) -> {V8}",
            f"%0 = weft.apply @exp(%hidden) : ({V8}) -> {V8}",
            f"func.return %0 : {V8}",
        )
    )
    assert [op.label.data for op in operations(module)] == ["hidden", "exp"]


def test_steps_are_labelled_by_result_and_step():
    module = applied(
        program(
            f"%p = weft.apply @softmax(%x) : ({V8}) -> {V8}",
            f"func.return %p : {V8}",
        )
    )
    labels = [op.label.data for op in operations(module)]
    assert labels == ["p_peak", "p_shifted", "p_weight", "p_total", "p"]


def test_locations_are_carried_to_everything_made():
    text = program(
        f"%a = weft.apply @relu(%x) : ({V8}) -> {V8}",
        f"%p = weft.apply @softmax(%a) : ({V8}) -> {V8}",
        f"func.return %p : {V8}",
    )
    for op in operations(applied(text)):
        line = 3 if op.label.data == "a" else 4
        assert str(location_of(op)) == f"m.mlir:{line}:1"
        for inner in op.walk():
            assert location_of(inner) == location_of(op)


def test_a_metakernel_of_the_module_comes_first_and_is_gone_afterwards():
    own = SQUARE.replace("@square", "@relu")
    module = applied(
        program(f"%a = weft.apply @relu(%x) : ({V8}) -> {V8}", f"func.return %a : {V8}", before=own)
    )
    (op,) = operations(module)
    assert [inner.name for inner in op.wrap.block.ops] == ["arith.mulf", "loom.yield"]
    assert not [op for op in module.walk() if op.name.startswith("weft.")]


def test_a_folder_of_templates(tmp_path):
    (tmp_path / "own.yaml").write_text(
        'triple: {inputs: {x: {shape: "[$d...]"}}, index: "[$d...]", wrap: "x * 3"}\n'
    )
    text = program(f"%a = weft.apply @triple(%x) : ({V8}) -> {V8}", f"func.return %a : {V8}")
    assert operations(applied(text, f'weft-apply{{metakernels="{tmp_path}"}}'))
    with pytest.raises(TapestryError, match="no metakernel @triple"):
        applied(text)


def test_starts_move_projections():
    there = "!loom.tensor<[5] : [13], f32>"
    here = "!loom.tensor<[-2] : [6], f32>"
    text = program(
        f"%a = weft.apply @relu(%x) : ({there}) -> {here}",
        f"func.return %a : {here}",
        argument=there,
        result=here,
    )
    (op,) = operations(applied(text))
    assert [str(p) for p in op.in_maps] == ["(d0) -> (d0 + 5)"]
    assert [str(p) for p in op.out_maps] == ["(d0) -> (d0 - 2)"]
    assert str(op.index) == "[0] : [8]"


def test_a_view_moves_between_starts():
    there = "!loom.tensor<[5, 7] : [7, 10], f32>"
    here = "!loom.tensor<[1, -1] : [4, 1], f32>"
    text = program(
        f"%a = weft.apply @transpose(%x) {{perm = [1, 0]}} : ({there}) -> {here}",
        f"func.return %a : {here}",
        argument=there,
        result=here,
    )
    (view,) = operations(applied(text), loom.ViewOp)
    assert str(view.projection.data) == "(d0, d1) -> (d1 + 6, d0 + 6)"


def test_what_moves_nothing_is_left_out():
    text = program(
        f"%a = weft.apply @cast(%x) {{dtype = f32}} : ({V8}) -> {V8}", f"func.return %a : {V8}"
    )
    module = applied(text)
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "func.return"]


def test_equal_applications_are_expanded_once():
    text = program(
        f"%a = weft.apply @relu(%x) : ({V8}) -> {V8}",
        f"%b = weft.apply @relu(%a) : ({V8}) -> {V8}",
        f"%c = weft.apply @exp(%b) : ({V8}) -> {V8}",
        f"func.return %c : {V8}",
    )
    module = parse_text(text)
    pattern = ApplyMetakernel(LIBRARY)
    from xdsl.pattern_rewriter import PatternRewriteWalker

    PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)
    assert len(pattern._recipes) == 2
    module.verify()
    first, second, _ = operations(module)
    assert first.wrap is not second.wrap


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        (f"@rleu(%x) : ({V8}) -> {V8}", "unknown_name", "did you mean relu"),
        (f"@relu(%x, %x) : ({V8}, {V8}) -> {V8}", "operand", "1 operands (x), and 2 are given"),
        (f"@relu(%x) : ({V8}) -> ({V8}, {V8})", "operand", "1 results, and 2 are declared"),
        (f"@relu(%x) : ({V8}) -> {M}", "size_mismatch",
         "result is [8] f32, and [2, 3] f32 is declared (template at"),
        (f"@relu(%x) : ({V8}) -> !loom.tensor<[0] : [8], f16>", "dtype_mismatch",
         f"a type that fits: {V8}"),
        (f"@relu(%x) {{slope = 2}} : ({V8}) -> {V8}", "parameter", "no parameter slope"),
        (f"@argmax(%x) : ({V8}) -> {V8}", "parameter", "axis (int) is missing"),
        (f"@sum(%x) {{axis = dense<1> : tensor<2xi64>}} : ({V8}) -> {V8}", "parameter",
         "a parameter is a number"),
        (f"@sum(%x) {{axis = [0.5]}} : ({V8}) -> {V8}", "parameter", "is [0.5]; it must be int"),
        (f"@sum(%x) {{axis = 3}} : ({V8}) -> {V8}", "parameter", "axes that fit: from -1 to 0"),
    ],
)  # fmt: skip
def test_wrong_applications(line, kind, says):
    names = "%a, %b" if "> (" in line else "%a"
    text = program(f"  {names} = weft.apply {line}",
                   f"func.return %x : {V8}")  # fmt: skip
    with pytest.raises(TapestryError) as caught:
        applied(text)
    assert caught.value.kind == kind, caught.value
    assert says in str(caught.value)
    assert str(caught.value).startswith("m.mlir:3:3: error: ")


def test_a_message_shows_operands_rule_and_template():
    w = "!loom.tensor<[0, 0] : [9, 4], f32>"
    text = program(
        f"%a = weft.apply @linear(%x, %w, %x) : ({V8}, {w}, {V8}) -> {V8}", f"func.return %a : {V8}"
    ).replace(f"%x: {V8})", f"%x: {V8}, %w: {w})")
    with pytest.raises(TapestryError) as caught:
        applied(text)
    message = str(caught.value)
    assert "@linear does not apply to ([8] f32, [9, 4] f32, [8] f32)" in message
    assert "$in is 9 in W but 8 in x; a name bound twice must be equal (rule 1)" in message
    assert "contractions.yaml:" in message


def test_opaque_operations_are_external_kernels():
    text = program(
        f"%a = weft.apply @block(%x) : ({V8}) -> {V8}",
        f"func.return %a : {V8}",
        before="""weft.metakernel @block {
          inputs = [{x = {shape = "[$n]", ipf = "[0] :> [$n]"}}], index = "[$n]"
        }""",
    )
    (kernel,) = operations(applied(text), loom.ExternalOp)
    assert isinstance(kernel, loom.ExternalOp)
    assert kernel.subject == "@block"
    assert [str(read) for read in kernel.in_maps] == ["(d0) -> (0) :> [8]"]


def test_a_metakernel_defined_twice_is_refused():
    text = program(f"func.return %x : {V8}", before=SQUARE + SQUARE)
    with pytest.raises(TapestryError, match=r"@square is defined twice \(first at m.mlir:2:1\)"):
        WeftApply().apply(Context(), parse_text(text, "m.mlir"))


def test_a_wrong_metakernel_does_not_verify():
    text = program(f"func.return %x : {V8}", before=SQUARE.replace("wrap", "warp"))
    with pytest.raises(TapestryError, match="unknown key `warp`") as caught:
        verify_module(parse_text(text, "m.mlir"))
    assert str(caught.value).startswith("m.mlir:2:1: error: ")


@pytest.mark.parametrize("name", LIBRARY.names)
def test_every_template_survives_as_an_attribute(name):
    document = LIBRARY.get(name).document
    back = document_of(attribute_of(document), None)
    assert repr(back.plain()) == repr(document.plain())  # equal as text, because of NaN
    assert list(back.plain()) == list(document.plain())
    again = read_template(name, back)
    original = LIBRARY.get(name)
    assert [entry.name for entry in again.inputs] == [entry.name for entry in original.inputs]
    assert [source.tree for _, source in again.wrap] == [s.tree for _, s in original.wrap]
    assert [step.name for step in again.steps] == [step.name for step in original.steps]


def test_an_unordered_section_is_accepted_as_a_dictionary():
    text = SQUARE.replace("[{x = {", "{x = {").replace("}}],", "}},")
    module = parse_text(program(f"func.return %x : {V8}", before=text))
    verify_module(module)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[{x = {", "[{y = {}, x = {", "a list of one-entry dictionaries"),
        ("[{x = {", '[{x = {shape = ""}}, {x = {', "inputs has x twice"),
        ('wrap = "x * x"', "wrap = @x", "a template holds strings"),
        ('wrap = "x * x"', "wrap", "this has no value"),
    ],
)
def test_wrong_dictionaries(old, new, says):
    module = parse_text(program(f"func.return %x : {V8}", before=SQUARE.replace(old, new)))
    with pytest.raises(TapestryError, match=says):
        verify_module(module)


def test_the_api_builds_what_the_text_says():
    text = program(
        f"%a = weft.apply @sum(%x) {{axis = 0 : i64}} : ({V8}) -> {V8}", f"func.return %a : {V8}"
    )
    module = parse_text(text)
    (parsed,) = operations(module, weft.ApplyOp)
    built = weft.ApplyOp("sum", parsed.args, parsed.result_types, parsed.parameters.data)
    assert built.is_structurally_equivalent(parsed, {})
