"""Programs in loom from a few lines of Python, for the cases of equality.

    p = Program(x=(4, 6))
    m = p.op((4, 6), "mf", ["x[d0, d1]"], "a", by="max")        # a row's maximum
    e = p.op((4, 6), "mm", ["x[d0, d1]", f"{m}[d0]"], "exp(a - b)")
    text = p.returns(e)

Bodies are expressions: `a, b, ...` are what wrap reads, `p, q, ...` the folded state, `e, f, ...`
the extra inputs, `i0, i1, ...` coordinates. A comma makes a state of several parts.
"""

from __future__ import annotations

import ast

FLOATS = {"exp", "log", "tanh", "sqrt", "rsqrt", "erf", "exp2", "log1p", "expm1", "floor"}
COMPARES = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq"}
KINDS = {"m": "map", "f": "fold", "s": "scan"}


class Body:
    """The lines of one region."""

    def __init__(self, types: dict[str, str], real: str) -> None:
        self.types, self.real = dict(types), real
        self.lines: list[str] = []

    def emit(self, text: str, kind: str, name: str | None = None) -> str:
        name = name or f"v{len(self.lines)}"
        self.lines.append(f"%{name} = {text}")
        self.types[name] = kind
        return name

    def value(self, node: ast.expr, wanted: str | None = None) -> str:
        match node:
            case ast.Name(name) if name[0] == "i" and name[1:].isdigit():
                return self.emit(f"loom.index {name[1:]} : i64", "i64")
            case ast.Name("inf"):
                return self.emit(f"arith.constant 0x7F800000 : {self.real}", self.real)
            case ast.Name(name):
                return name
            case ast.Constant(number):
                kind = wanted or self.real
                text = str(number) if kind == "i64" else decimal(number)
                return self.emit(f"arith.constant {text} : {kind}", kind)
            case ast.UnaryOp(ast.USub(), operand):
                x = self.value(operand)
                return self.emit(f"arith.negf %{x} : {self.real}", self.real)
            case ast.BinOp(left, op, right):
                x, y = self.pair(left, right)
                word = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}[type(op)]
                kind = self.types[x]
                return self.emit(
                    f"arith.{word}{'i' if kind == 'i64' else 'f'} %{x}, %{y} : {kind}", kind
                )
            case ast.Compare(left, [op], [right]):
                x, y = self.pair(left, right)
                word, kind = COMPARES[type(op)], self.types[x]
                whole = kind == "i64"
                order = ("" if word == "eq" else "s") if whole else "o"
                return self.emit(
                    f"arith.cmp{'i' if whole else 'f'} {order}{word}, %{x}, %{y} : {kind}", "i1"
                )
            case ast.Call(ast.Name("where"), [condition, left, right]):
                c = self.value(condition)
                x, y = self.pair(left, right)
                kind = self.types[x]
                return self.emit(f"arith.select %{c}, %{x}, %{y} : {kind}", kind)
            case ast.Call(ast.Name("float"), [operand]):
                x = self.value(operand, "i64")
                return self.emit(f"arith.sitofp %{x} : i64 to {self.real}", self.real)
            case ast.Call(ast.Name("max" | "min" as name), [left, right]):
                x, y = self.pair(left, right)
                return self.emit(f"arith.{name}imumf %{x}, %{y} : {self.real}", self.real)
            case ast.Call(ast.Name("abs"), [operand]):
                return self.emit(f"math.absf %{self.value(operand)} : {self.real}", self.real)
            case ast.Call(ast.Name(name), [operand]) if name in FLOATS:
                return self.emit(f"math.{name} %{self.value(operand)} : {self.real}", self.real)
            case _:
                raise ValueError(ast.dump(node))

    def pair(self, left: ast.expr, right: ast.expr) -> tuple[str, str]:
        if isinstance(left, ast.Constant):
            y = self.value(right)
            return self.value(left, self.types[y]), y
        x = self.value(left)
        return x, self.value(right, self.types[x])


def decimal(number: float) -> str:
    text = repr(float(number))
    return text if "." in text else text.replace("e", ".0e")


def region(expression: str, types: dict[str, str], real: str) -> str:
    tree = ast.parse(expression, mode="eval").body
    body = Body(types, real)
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    values = [body.value(part) for part in parts]
    kinds = [body.types[value] for value in values]
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in types.items())
    end = f"loom.yield {', '.join('%' + v for v in values)} : {', '.join(kinds)}"
    return f"({arguments}) {{ {' '.join([*body.lines, end])} }}"


def tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"!loom.tensor<[{', '.join('0' * len(shape))}] : {list(shape)}, {kind}>"


class Program:
    """One @main, built operation by operation; arguments are floats unless `whole` names them."""

    def __init__(self, whole: str = "", real: str = "f32", **inputs: tuple[int, ...]) -> None:
        self.real = real
        self.types = {
            name: tensor(shape, "i64" if name in whole.split() else real)
            for name, shape in inputs.items()
        }
        self.arguments = list(inputs)
        self.before: list[str] = []
        self.lines: list[str] = []

    def _element(self, name: str) -> str:
        return self.types[name].rsplit(", ", 1)[1][:-1]

    def monoid(self, name: str, zeros: str, merge: str, parts: int) -> None:
        names = [f"{letter}{side}" for side in "01" for letter in "pqr"[:parts]]
        body = region(merge, dict.fromkeys(names, self.real), self.real)
        zero = ", ".join(f"{z} : {self.real}" for z in zeros.split())
        self.before.append(f"loom.monoid @{name} commutative zero [{zero}] merge {body}")

    def op(
        self,
        over: tuple[int, ...],
        kinds: str,
        ins: list[str],
        wrap: str,
        *,
        by: str | None = None,
        extra: list[str] | None = None,
        unwrap: str | None = None,
        out: str | None = None,
        shape: tuple[int, ...] | None = None,
        shards: str = "",
        kind: str | None = None,
        state: int = 1,
    ) -> str:
        every = ", ".join(f"d{d}" for d in range(len(over)))
        kept = [d for d, k in enumerate(kinds) if k != "f"]
        few = ", ".join(f"d{n}" for n in range(len(kept)))

        def reads(specs: list[str], dims: str) -> tuple[list[str], str]:
            names = [spec.split("[", 1)[0] for spec in specs]
            rows = [spec.split("[", 1)[1].split("]", 1) for spec in specs]
            texts = [
                f"%{name} : ({dims}) -> ({row}){' ' + rest.strip() if rest else ''}"
                for name, (row, rest) in zip(names, rows, strict=True)
            ]
            return names, ", ".join(texts)

        names, inputs = reads(ins, every)
        more, extras = reads(extra or [], few)
        result = tensor(shape or tuple(over[d] for d in kept), kind or self.real)
        name = f"t{len(self.lines)}"
        wrapped = region(
            wrap, dict(zip("abcd", map(self._element, names), strict=False)), self.real
        )
        text = (
            f"%{name} = loom.operation @{name} over <[{', '.join('0' * len(over))}] : {list(over)}>"
        )
        text += f" [{', '.join(KINDS[k] for k in kinds)}]" + (f" by @{by}" if by else "")
        text += f" ins({inputs})" + (f" extra({extras})" if extras else "")
        text += f" outs(({few}) -> ({out or few}))" + (f" shards <{shards}>" if shards else "")
        text += f" wrap {wrapped}"
        if unwrap is not None:
            parts = dict(zip("pqr"[:state], [self.real] * state, strict=True))
            others = dict(zip("efgh", map(self._element, more), strict=False))
            text += f" unwrap {region(unwrap, {**parts, **others}, self.real)}"
        types = ", ".join(self.types[n] for n in [*names, *more])
        self.lines.append(f"{text} : ({types}) -> {result}")
        self.types[name] = result
        return name

    def line(self, text: str, shape: tuple[int, ...], kind: str | None = None) -> str:
        """Any operation of one result; `{x}` is the type of %x, `{}` the result's."""
        name = f"t{len(self.lines)}"
        self.types[name] = tensor(shape, kind or self.real)
        self.lines.append(f"%{name} = " + text.format(self.types[name], **self.types))
        return name

    def returns(self, *values: str) -> str:
        arguments = ", ".join(f"%{name}: {self.types[name]}" for name in self.arguments)
        results = ", ".join(self.types[value] for value in values)
        end = f"func.return {', '.join('%' + v for v in values)} : {results}"
        body = "\n  ".join([*self.lines, end])
        return "\n".join(
            [*self.before, f"func.func @main({arguments}) -> ({results}) {{\n  {body}\n}}"]
        )
