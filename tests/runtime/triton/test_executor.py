"""The triton executor: what it reports, and the numbers that are easy to get wrong."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import pytest

import tapestry
from tapestry.diagnostics import InvalidProgramError
from tapestry.frontend import parse_text, verify_module
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.reference import ReferenceExecutor
from tapestry.runtime.triton.executor import TritonExecutor


def run(text, **inputs):
    module = parse_text(text)
    verify_module(module)
    return TritonExecutor().run(module, inputs, NoWatch())


def fold(kind, monoid, shape=(9, 40), shards="", wrap="loom.yield %a : {kind}"):
    rows, depth = shape
    x, y = f"!loom.tensor<[0, 0] : {list(shape)}, {kind}>", f"!loom.tensor<[0] : [{rows}], {kind}>"
    return f"""
func.func @main(%x: {x}) -> {y} {{
  %y = loom.operation @folded over <[0, 0] : [{rows}, {depth}]> [map, fold] by @{monoid}
    ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0)) {shards}
    wrap (%a: {kind}) {{ {wrap.format(kind=kind)} }}
    : ({x}) -> {y}
  func.return %y : {y}
}}
"""


@dataclass
class Steps:
    expected: int = -1
    names: list[str] = field(default_factory=list)

    def total(self, steps):
        self.expected = steps

    def step(self, name):
        self.names.append(name)


SPLIT = "shards <grid [[0, 4, 9], [0, 13, 40]]>"


def test_every_launch_is_a_step_and_a_record_says_what_it_moved():
    module = parse_text(fold("f32", "add", shards=SPLIT))
    watch = Steps()
    x = np.ones((9, 40), np.float32)
    result = TritonExecutor().run(module, {"x": x}, watch)
    assert watch.expected == 5
    assert watch.names == ["folded"] * 4 + ["folded_finish"]
    main, finish = result.records
    # Each of two shards per row reads and writes the row's state.
    assert (main.name, main.shards) == ("folded", 4)
    assert (main.bytes_read, main.bytes_written) == (4 * (9 * 40 + 2 * 9), 4 * 2 * 9)
    assert (finish.name, finish.shards) == ("folded_finish", 1)
    assert (finish.bytes_read, finish.bytes_written) == (4 * 9, 4 * 9)
    assert main.seconds > 0


def test_records_of_operations_that_share_a_kernel_are_apart():
    x = "!loom.tensor<[0] : [8], f32>"
    twice = f"""over <[0] : [8]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
      wrap (%a: f32) {{ %s = arith.addf %a, %a : f32 loom.yield %s : f32 }} : ({x}) -> {x}"""
    result = run(
        f"""
func.func @main(%x: {x}) -> ({x}, {x}) {{
  %y = loom.operation @y {twice}
  %z = loom.operation @z {twice}
  func.return %y, %z : {x}, {x}
}}""",
        x=np.arange(8, dtype=np.float32),
    )
    assert [record.name for record in result.records] == ["y", "y"]
    np.testing.assert_array_equal(result.outputs[0], result.outputs[1])


@pytest.mark.parametrize("shards", ["", SPLIT])
@pytest.mark.parametrize("monoid", ["max", "min"])
def test_extrema_propagate_nan(monoid, shards):
    x = np.random.default_rng(0).standard_normal((9, 40)).astype(np.float32)
    x[3, 7] = x[5, 39] = np.nan
    (y,) = run(fold("f32", monoid, shards=shards), x=x).outputs
    np.testing.assert_array_equal(y, getattr(x, monoid)(axis=1))
    assert np.isnan(y[[3, 5]]).all()


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shards", ["", SPLIT])
def test_sums_of_16_bit_floats_accumulate_in_float32(kind, shards):
    x = np.full((9, 40), 0.1).astype(kind)
    name = "f16" if kind is np.float16 else "bf16"
    (y,) = run(fold(name, "add", shards=shards), x=x).outputs
    exact = x.astype(np.float64).sum(axis=1).astype(kind)
    np.testing.assert_array_equal(y.astype(np.float64), exact.astype(np.float64))


def test_infinities_at_the_edge_of_a_tile_stay_where_they_are():
    """Lanes that are no points hold zeros: none of them may meet an infinity."""
    kind = "!loom.tensor<[0, 0] : [5, 5], f32>"
    x = np.full((5, 5), np.inf, np.float32)
    w = np.ones((5, 5), np.float32)
    (y,) = run(
        f"""
func.func @main(%x: {kind}, %w: {kind}) -> {kind} {{
  %y = loom.operation @product over <[0, 0, 0] : [5, 5, 5]> [map, map, fold] by @add
    ins(%x : (d0, d1, d2) -> (d0, d2), %w : (d0, d1, d2) -> (d2, d1))
    outs((d0, d1) -> (d0, d1))
    wrap (%a: f32, %b: f32) {{ %p = arith.mulf %a, %b : f32 loom.yield %p : f32 }}
    : ({kind}, {kind}) -> {kind}
  func.return %y : {kind}
}}""",
        x=x,
        w=w,
    ).outputs
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(("shape", "expected"), [((3, 0), [0.0, 0.0, 0.0]), ((0, 4), [])])
def test_folds_of_nothing(shape, expected):
    (y,) = run(fold("f32", "add", shape=shape), x=np.empty(shape, np.float32)).outputs
    np.testing.assert_array_equal(y, np.array(expected, np.float32))


def test_a_fold_that_does_not_commute_keeps_its_order():
    x = "!loom.tensor<[0, 0] : [5, 23], f32>"
    y = "!loom.tensor<[0] : [5], f32>"
    text = f"""
loom.monoid @line zero [1.0 : f32, 0.0 : f32] merge (%a: f32, %b: f32, %c: f32, %d: f32) {{
  %m = arith.mulf %a, %c : f32
  %n = arith.mulf %c, %b : f32
  %o = arith.addf %n, %d : f32
  loom.yield %m, %o : f32, f32
}}
func.func @main(%x: {x}) -> {y} {{
  %y = loom.operation @lines over <[0, 0] : [5, 23]> [map, fold] by @line
    ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    wrap (%a: f32) {{ loom.yield %a, %a : f32, f32 }}
    unwrap (%s: f32, %t: f32) {{ loom.yield %t : f32 }}
    : ({x}) -> {y}
  func.return %y : {y}
}}
"""
    given = np.random.default_rng(0).uniform(-1, 1, (5, 23)).astype(np.float32)
    module = parse_text(text)
    verify_module(module)
    (got,) = TritonExecutor().run(module, {"x": given}, NoWatch()).outputs
    (expected,) = ReferenceExecutor().run(module, {"x": given}, NoWatch()).outputs
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_states_of_several_parts_merge_across_shards():
    """logsumexp and welford divide and exponentiate, where states are infinite or count nothing."""
    x, y = "!loom.tensor<[0, 0] : [6, 21], f32>", "!loom.tensor<[0] : [6], f32>"
    over = """over <[0, 0] : [6, 21]> [map, fold]"""
    reads = """ins(%x : (d0, d1) -> (d0, d1)) outs((d0) -> (d0))
    shards <grid [[0, 2, 6], [0, 1, 8, 21]]>"""
    text = f"""
func.func @main(%x: {x}) -> ({y}, {y}) {{
  %l = loom.operation @lse {over} by @logsumexp {reads}
    wrap (%a: f32) {{ %one = arith.constant 1.0 : f32 loom.yield %a, %one : f32, f32 }}
    unwrap (%m: f32, %s: f32) {{
      %t = math.log %s : f32
      %r = arith.addf %m, %t : f32
      loom.yield %r : f32
    }}
    : ({x}) -> {y}
  %v = loom.operation @variance {over} by @welford {reads}
    wrap (%a: f32) {{
      %one = arith.constant 1.0 : f32
      %zero = arith.constant 0.0 : f32
      loom.yield %one, %a, %zero : f32, f32, f32
    }}
    unwrap (%n: f32, %mean: f32, %m2: f32) {{
      %r = arith.divf %m2, %n : f32
      loom.yield %r : f32
    }}
    : ({x}) -> {y}
  func.return %l, %v : {y}, {y}
}}
"""
    given = np.random.default_rng(0).standard_normal((6, 21)).astype(np.float32) * 20
    module = parse_text(text)
    verify_module(module)
    total, variance = TritonExecutor().run(module, {"x": given}, NoWatch()).outputs
    wide = given.astype(np.float64)
    np.testing.assert_allclose(total, np.log(np.exp(wide).sum(axis=1)), rtol=1e-6)
    np.testing.assert_allclose(variance, wide.var(axis=1), rtol=1e-5)


def test_an_input_that_is_returned_comes_back():
    x = "!loom.tensor<[0] : [4], i64>"
    given = np.arange(4)
    (y,) = run(f"func.func @main(%x: {x}) -> {x} {{ func.return %x : {x} }}", x=given).outputs
    np.testing.assert_array_equal(y, given)


def test_inputs_are_not_written_to_and_need_not_be_contiguous():
    x = np.random.default_rng(0).standard_normal((40, 9)).astype(np.float32).T
    before = x.copy()
    (y,) = run(fold("f32", "add"), x=x).outputs
    np.testing.assert_array_equal(x, before)
    np.testing.assert_allclose(y, x.sum(axis=1), rtol=1e-5, atol=1e-5)


def test_a_program_that_was_not_expanded_is_one_clear_error():
    x = "!loom.tensor<[0] : [4], f32>"
    with pytest.raises(InvalidProgramError, match=r"weft.apply cannot be lowered to Triton"):
        run(
            f"""
func.func @main(%x: {x}) -> {x} {{
  %y = weft.apply @relu(%x) : ({x}) -> {x}
  func.return %y : {x}
}}""",
            x=np.zeros(4, np.float32),
        )


def test_torch_is_not_needed_on_the_cpu():
    """Triton's own drivers may look for it."""
    script = '''
import sys
from concurrent.futures import ThreadPoolExecutor

class NoTorch:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch())
import numpy as np
from tapestry.frontend import parse_text
from tapestry.runtime.executor import NoWatch
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor

x = "!loom.tensor<[0] : [4], f32>"
module = parse_text(f"""
  func.func @main(%x: {x}) -> {x} {{
    %y = loom.operation @y over <[0] : [4]> [map] ins(%x : (d0) -> (d0)) outs((d0) -> (d0))
      wrap (%a: f32) {{ %s = arith.addf %a, %a : f32 loom.yield %s : f32 }} : ({x}) -> {x}
    func.return %y : {x}
  }}""")
given = np.arange(4, dtype=np.float32)
print(TritonExecutor(Cpu()).run(module, {"x": given}, NoWatch()).outputs[0])
'''
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[0. 2. 4. 6.]"


def test_kernels_are_interpreted_where_triton_was_imported_to_compile():
    """As PyTorch does; Triton's own functions are compiled ones again afterwards."""
    script = """
import triton
import numpy as np
import tapestry
from tapestry.runtime.triton.devices import Cpu
from tapestry.runtime.triton.executor import TritonExecutor
from tapestry.runtime.executor import NoWatch

x = tapestry.input("x", (7, 30))
given = np.arange(210, dtype=np.float32).reshape(7, 30)[:, ::-1].copy()
for y, want in ((x.sum(axis=1), given.sum(1)), (x.cumsum(axis=1), given.cumsum(1)),
                (x.sort(axis=1)[0], np.sort(given, 1)), (x.argmax(axis=1), given.argmax(1))):
    module = tapestry.compile(y, on="triton").lowered
    got = TritonExecutor(Cpu()).run(module, {"x": given}, NoWatch()).outputs[0]
    np.testing.assert_allclose(got, want, rtol=1e-5)
print(type(triton.language.sum).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "JITFunction", done.stderr


def test_several_threads_may_interpret_programs():
    x = tapestry.input("x", (16, 24))
    programs = [
        tapestry.compile(program, on="triton")
        for program in (tapestry.softmax(x), tapestry.cumsum(x, axis=1))
    ]
    given = np.random.default_rng(0).normal(size=(16, 24)).astype("f4")
    wanted = [program(given) for program in programs]

    def call(number: int) -> bool:
        return np.array_equal(programs[number % 2](given), wanted[number % 2])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(32)))
