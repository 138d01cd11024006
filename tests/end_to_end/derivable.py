"""Programs whose folds read earlier folds, as they are defined: what `loom-derive` makes one of."""

from __future__ import annotations

SCALARS = """
!x = !loom.tensor<[0, 0] : [4, 12], f32>
!y = !loom.tensor<[0] : [4], f32>
"""

_VALUE = "wrap (%c: f32) { loom.yield %c : f32 }"

_MEAN = """unwrap (%s: f32) {
  %n = arith.constant 12.0 : f32
  %r = arith.divf %s, %n : f32
  loom.yield %r : f32 }"""

_MAX = f"""
  %m = loom.operation @max over <[0, 0] : [4, 12]> [map, fold] by @max
         ins(%x : (i, j) -> (i, j)) outs((i) -> (i)) {_VALUE} : (!x) -> !y"""

_SUM_EXP = """
  %l = loom.operation @sum over <[0, 0] : [4, 12]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           loom.yield %e : f32 } : (!x, !y) -> !y"""


def _mean(name: str, of: str) -> str:
    return f"""
  %{name} = loom.operation @{name} over <[0, 0] : [4, 12]> [map, fold] by @add
         ins(%{of} : (i, j) -> (i, j)) outs((i) -> (i)) {_VALUE} {_MEAN} : (!x) -> !y"""


def _program(body: str, results: int, arguments: str = "%x: !x") -> str:
    kinds = ", ".join(["!y"] * results)
    return f"{SCALARS}func.func @main({arguments}) -> ({kinds}) {{{body}\n}}"


SOFTMAX = _program(f"{_MAX}{_SUM_EXP}\n  func.return %m, %l : !y, !y", 2)

LOGSUMEXP = _program(
    f"""{_MAX}{_SUM_EXP}
  %r = loom.operation @lse over <[0] : [4]> [map]
         ins(%m : (i) -> (i), %l : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f32, %b: f32) {{
           %c = math.log %b : f32
           %p = arith.addf %a, %c : f32
           loom.yield %p : f32 }} : (!y, !y) -> !y
  func.return %r : !y""",
    1,
)

ENTROPY = _program(
    f"""{_MAX}{_SUM_EXP}
  %h = loom.operation @entropy over <[0, 0] : [4, 12]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i), %l : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32, %a: f32) {{
           %d = arith.subf %c, %b : f32
           %e = math.exp %d : f32
           %p = arith.divf %e, %a : f32
           %k = math.log %a : f32
           %q = arith.subf %d, %k : f32
           %r = arith.mulf %p, %q : f32
           %z = arith.negf %r : f32
           loom.yield %z : f32 }} : (!x, !y, !y) -> !y
  func.return %h : !y""",
    1,
)

CROSS_ENTROPY = _program(
    f"""{_MAX}{_SUM_EXP}
  %h = loom.operation @loss over <[0, 0] : [4, 12]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %m : (i, j) -> (i), %l : (i, j) -> (i), %t : (i, j) -> (i, j))
         outs((i) -> (i))
         wrap (%c: f32, %b: f32, %a: f32, %w: f32) {{
           %d = arith.subf %c, %b : f32
           %k = math.log %a : f32
           %q = arith.subf %d, %k : f32
           %r = arith.mulf %w, %q : f32
           loom.yield %r : f32 }} : (!x, !y, !y, !x) -> !y
  func.return %h : !y""",
    1,
    "%x: !x, %t: !x",
)

VARIANCE = _program(
    f"""{_mean("mean", "x")}
  %v = loom.operation @var over <[0, 0] : [4, 12]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %mean : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32) {{
           %d = arith.subf %c, %b : f32
           %q = arith.mulf %d, %d : f32
           loom.yield %q : f32 }} {_MEAN} : (!x, !y) -> !y
  func.return %mean, %v : !y, !y""",
    2,
)

COVARIANCE = _program(
    f"""{_mean("mx", "x")}{_mean("mt", "t")}
  %v = loom.operation @cov over <[0, 0] : [4, 12]> [map, fold] by @add
         ins(%x : (i, j) -> (i, j), %mx : (i, j) -> (i), %t : (i, j) -> (i, j),
             %mt : (i, j) -> (i)) outs((i) -> (i))
         wrap (%c: f32, %b: f32, %e: f32, %f: f32) {{
           %d = arith.subf %c, %b : f32
           %g = arith.subf %e, %f : f32
           %q = arith.mulf %d, %g : f32
           loom.yield %q : f32 }} : (!x, !y, !x, !y) -> !y
  func.return %v : !y""",
    1,
    "%x: !x, %t: !x",
)


def _product(name: str, *of: str) -> str:
    """The sum of products of distances from means."""
    ins = [f"%{x} : (i, j) -> (i, j), %m{x} : (i, j) -> (i)" for x in of]
    cells = [f"%c{n}: f32, %b{n}: f32" for n in range(len(of))]
    apart = [f"%d{n} = arith.subf %c{n}, %b{n} : f32" for n in range(len(of))]
    times = [f"%p{n + 1} = arith.mulf %p{n}, %d{n + 1} : f32" for n in range(len(of) - 1)]
    body = " ".join([*apart, *times]).replace("%p0", "%d0")
    return f"""
  %{name} = loom.operation @{name} over <[0, 0] : [4, 12]> [map, fold] by @add
         ins({", ".join(ins)}) outs((i) -> (i))
         wrap ({", ".join(cells)}) {{ {body} loom.yield %p{len(of) - 1} : f32 }} {_MEAN}
         : ({", ".join(["!x, !y"] * len(of))}) -> !y"""


CORRELATION = _program(
    _mean("mx", "x")
    + _mean("mt", "t")
    + _product("vx", "x", "x")
    + _product("vt", "t", "t")
    + _product("cov", "x", "t")
    + """
  %r = loom.operation @correlation over <[0] : [4]> [map]
         ins(%vx : (i) -> (i), %vt : (i) -> (i), %cov : (i) -> (i)) outs((i) -> (i))
         wrap (%a: f32, %b: f32, %c: f32) {
           %p = arith.mulf %a, %b : f32
           %q = math.rsqrt %p : f32
           %r = arith.mulf %c, %q : f32
           loom.yield %r : f32 } : (!y, !y, !y) -> !y
  func.return %mx, %r : !y, !y""",
    2,
    "%x: !x, %t: !x",
)

MOMENTS = _program(
    _mean("mx", "x")
    + _product("var", "x", "x")
    + _product("skew", "x", "x", "x")
    + "\n  func.return %mx, %var, %skew : !y, !y, !y",
    3,
)

_MASKS = {
    "none": ("", "%c: f32", "loom.yield %c : f32", ""),
    "causal": (
        "",
        "%c: f32",
        """%i = loom.index 1 : i64
           %j = loom.index 2 : i64
           %seen = arith.cmpi sge, %i, %j : i64
           %none = arith.constant 0xFF800000 : f32
           %u = arith.select %seen, %c, %none : f32
           loom.yield %u : f32""",
        "",
    ),
    "bias": (
        ", %b : (h, i, j) -> (i, j)",
        "%c: f32, %b: f32",
        "%u = arith.addf %c, %b : f32 loom.yield %u : f32",
        ", !w",
    ),
    "softcap": (
        "",
        "%c: f32",
        """%k = arith.constant 5.0 : f32
           %d = arith.divf %c, %k : f32
           %t = math.tanh %d : f32
           %u = arith.mulf %t, %k : f32
           loom.yield %u : f32""",
        "",
    ),
}

MASKS = tuple(_MASKS)


def attention(mask: str, *, guarded: bool = False) -> str:
    """Attention of four heads over two heads of keys, 8 queries over 10 keys, and how it is masked.

    `guarded` adds what PyTorch does for rows that are masked everywhere: they are zero.
    """
    read, arguments, body, kind = _MASKS[mask]
    guard = """
  %n = loom.operation @seen over <[0, 0, 0] : [4, 8, 10]> [map, map, fold] by @or
         ins(%t : (h, i, j) -> (h, i, j)) outs((h, i) -> (h, i))
         wrap (%c: f32) {
           %none = arith.constant 0xFF800000 : f32
           %no = arith.cmpf oeq, %c, %none : f32
           %true = arith.constant true
           %yes = arith.xori %no, %true : i1
           loom.yield %yes : i1 } : (!s) -> !z
  %g = loom.operation @guard over <[0, 0, 0] : [4, 8, 10]> [map, map, map]
         ins(%n : (h, i, j) -> (h, i), %p : (h, i, j) -> (h, i, j)) outs((h, i, j) -> (h, i, j))
         wrap (%yes: i1, %c: f32) {
           %zero = arith.constant 0.0 : f32
           %u = arith.select %yes, %c, %zero : f32
           loom.yield %u : f32 } : (!z, !s) -> !s"""
    last = "%g" if guarded else "%p"
    return f"""
!q = !loom.tensor<[0, 0, 0] : [4, 8, 4], f32>
!k = !loom.tensor<[0, 0, 0] : [2, 10, 4], f32>
!k4 = !loom.tensor<[0, 0, 0, 0] : [2, 2, 10, 4], f32>
!kk = !loom.tensor<[0, 0, 0] : [4, 10, 4], f32>
!s = !loom.tensor<[0, 0, 0] : [4, 8, 10], f32>
!w = !loom.tensor<[0, 0] : [8, 10], f32>
!r = !loom.tensor<[0, 0] : [4, 8], f32>
!z = !loom.tensor<[0, 0] : [4, 8], i1>
func.func @main(%q: !q, %k: !k, %v: !k, %b: !w) -> !q {{
  %k4 = loom.view %k : (g, r, j, c) -> (g, j, c) : !k -> !k4
  %kk = loom.reshape %k4 : !k4 -> !kk
  %v4 = loom.view %v : (g, r, j, c) -> (g, j, c) : !k -> !k4
  %vv = loom.reshape %v4 : !k4 -> !kk
  %s = loom.operation @scores over <[0, 0, 0, 0] : [4, 8, 10, 4]> [map, map, map, fold] by @add
         ins(%q : (h, i, j, c) -> (h, i, c), %kk : (h, i, j, c) -> (h, j, c))
         outs((h, i, j) -> (h, i, j))
         wrap (%a: f32, %b: f32) {{
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32 }}
         unwrap (%a: f32) {{
           %h = arith.constant 0.5 : f32
           %p = arith.mulf %a, %h : f32
           loom.yield %p : f32 }} : (!q, !kk) -> !s
  %t = loom.operation @mask over <[0, 0, 0] : [4, 8, 10]> [map, map, map]
         ins(%s : (h, i, j) -> (h, i, j){read}) outs((h, i, j) -> (h, i, j))
         wrap ({arguments}) {{ {body} }} : (!s{kind}) -> !s
  %m = loom.operation @max over <[0, 0, 0] : [4, 8, 10]> [map, map, fold] by @max
         ins(%t : (h, i, j) -> (h, i, j)) outs((h, i) -> (h, i)) {_VALUE} : (!s) -> !r
  %e = loom.operation @exp over <[0, 0, 0] : [4, 8, 10]> [map, map, map]
         ins(%t : (h, i, j) -> (h, i, j), %m : (h, i, j) -> (h, i)) outs((h, i, j) -> (h, i, j))
         wrap (%c: f32, %b: f32) {{
           %d = arith.subf %c, %b : f32
           %r = math.exp %d : f32
           loom.yield %r : f32 }} : (!s, !r) -> !s
  %l = loom.operation @sum over <[0, 0, 0] : [4, 8, 10]> [map, map, fold] by @add
         ins(%e : (h, i, j) -> (h, i, j)) outs((h, i) -> (h, i)) {_VALUE} : (!s) -> !r
  %p = loom.operation @div over <[0, 0, 0] : [4, 8, 10]> [map, map, map]
         ins(%e : (h, i, j) -> (h, i, j), %l : (h, i, j) -> (h, i)) outs((h, i, j) -> (h, i, j))
         wrap (%c: f32, %b: f32) {{
           %r = arith.divf %c, %b : f32
           loom.yield %r : f32 }} : (!s, !r) -> !s{guard if guarded else ""}
  %o = loom.operation @mix over <[0, 0, 0, 0] : [4, 8, 4, 10]> [map, map, map, fold] by @add
         ins({last} : (h, i, d, j) -> (h, i, j), %vv : (h, i, d, j) -> (h, j, d))
         outs((h, i, d) -> (h, i, d))
         wrap (%a: f32, %b: f32) {{
           %p = arith.mulf %a, %b : f32
           loom.yield %p : f32 }} : (!s, !kk) -> !q
  func.return %o : !q
}}"""
