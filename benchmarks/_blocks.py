"""Blocks of networks that people run, as programs of library metakernels in f32.

    gpt2()                  layer norm, attention, layer norm, MLP: queries, keys and values apart
    gpt2(packed=True)       the same by one projection that is split in three, as GPT-2 has it
    llama()                 RMSNorm, rotary positions, grouped queries, SwiGLU
    resnet_basic(), resnet_bottleneck(), resnet_bottleneck(stride=2)    in inference

Sizes are parameters, so that tests run small ones: what becomes of a block depends on its shapes
only where dimensions coincide or are one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Shape = tuple[int, ...]


def _type(shape: Shape) -> str:
    return f"!loom.tensor<{[0] * len(shape)} : {list(shape)}, f32>"


@dataclass
class Program:
    """A function under construction: its arguments and applications, shapes by name."""

    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])
    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])

    def argument(self, name: str, *shape: int) -> str:
        """A further argument of the function."""
        self.shapes[name] = shape
        self.arguments.append(name)
        return name

    def apply(self, kernel: str, operands: str, shape: Shape, **parameters: object) -> str:
        """Apply a metakernel; returns the name of its result, which has that shape."""
        return self.apply_many(kernel, operands, [shape], **parameters)[0]

    def apply_many(
        self, kernel: str, operands: str, shapes: list[Shape], **parameters: object
    ) -> list[str]:
        """Apply a metakernel that has several results."""
        names = [f"{kernel}{len(self.lines)}_{n}" for n in range(len(shapes))]
        taken = operands.split()
        ins = ", ".join(_type(self.shapes[name]) for name in taken)
        outs = ", ".join(_type(shape) for shape in shapes)
        stated = ", ".join(f"{key} = {value}" for key, value in parameters.items())
        self.lines.append(
            f"{_values(names)} = weft.apply @{kernel}({_values(taken)}) {{{stated}}} "
            f": ({ins}) -> {outs if len(shapes) == 1 else f'({outs})'}"
        )
        self.shapes |= dict(zip(names, shapes, strict=True))
        return names

    def returning(self, name: str) -> str:
        """The whole program, which returns a tensor."""
        taken = ", ".join(f"%{name}: {_type(self.shapes[name])}" for name in self.arguments)
        kind = _type(self.shapes[name])
        body = "\n  ".join([*self.lines, f"func.return %{name} : {kind}"])
        return f"func.func @main({taken}) -> {kind} {{\n  {body}\n}}\n"


def _values(names: list[str]) -> str:
    return ", ".join(f"%{name}" for name in names)


def _linear(p: Program, name: str, x: str, out: int, *, bias: bool = True) -> str:
    *batch, width = p.shapes[x]
    w = p.argument(f"{name}_w", width, out)
    if not bias:
        return p.apply("matmul", f"{x} {w}", (*batch, out))
    return p.apply("linear", f"{x} {w} {p.argument(f'{name}_b', out)}", (*batch, out))


def _layer_norm(p: Program, name: str, x: str) -> str:
    width = p.shapes[x][-1]
    weight, bias = p.argument(f"{name}_w", width), p.argument(f"{name}_b", width)
    return p.apply("layer_norm", f"{x} {weight} {bias}", p.shapes[x])


def gpt2(
    *, batch: int = 1, tokens: int = 1024, width: int = 768, heads: int = 12, packed: bool = False
) -> str:
    """A block of GPT-2 in inference: pre-norm attention with a causal mask, then the MLP."""
    p = Program()
    rows: Shape = (batch, tokens, width)
    apart: Shape = (batch, heads, tokens, width // heads)
    x = p.argument("x", *rows)
    h = _layer_norm(p, "ln1", x)
    if packed:
        qkv = _linear(p, "qkv", h, 3 * width)
        parts = p.apply_many("split", qkv, [rows] * 3, chunk=width, axis=2)
    else:
        parts = [_linear(p, name, h, width) for name in "qkv"]
    split = [p.apply("split_heads", part, apart, heads=heads) for part in parts]
    a = p.apply("scaled_dot_product_attention", " ".join(split), apart, causal="true")
    merged = p.apply("merge_heads", a, rows)
    x = p.apply("add", f"{x} {_linear(p, 'proj', merged, width)}", rows)
    h = _layer_norm(p, "ln2", x)
    wide = _linear(p, "up", h, 4 * width)
    wide = p.apply("gelu", wide, p.shapes[wide], approximate='"tanh"')
    down = _linear(p, "down", wide, width)
    return p.returning(p.apply("add", f"{x} {down}", rows))


def llama(
    *,
    batch: int = 1,
    tokens: int = 2048,
    width: int = 4096,
    heads: int = 32,
    groups: int = 8,
    hidden: int = 14336,
    packed: bool = False,
) -> str:
    """A block of LLaMA 3: groups of query heads share keys and values, positions rotate both."""
    p = Program()
    size = width // heads
    rows: Shape = (batch, tokens, width)
    x = p.argument("x", *rows)
    turns = " ".join(p.argument(name, tokens, size // 2) for name in ("cosine", "sine"))
    h = p.apply("rms_norm", f"{x} {p.argument('rms1_w', width)}", rows)
    sizes = [width, groups * size, groups * size]
    if packed:
        qkv = _linear(p, "qkv", h, sum(sizes), bias=False)
        shapes: list[Shape] = [(batch, tokens, s) for s in sizes]
        parts = p.apply_many("split_with_sizes", qkv, shapes, sizes=sizes, axis=2)
    else:
        parts = [_linear(p, n, h, s, bias=False) for n, s in zip("qkv", sizes, strict=True)]
    counts = [heads, groups, groups]
    q, k, v = (
        p.apply("split_heads", part, (batch, n, tokens, size), heads=n)
        for part, n in zip(parts, counts, strict=True)
    )
    q, k = (p.apply("rotary_embedding", f"{t} {turns}", p.shapes[t]) for t in (q, k))
    a = p.apply("grouped_query_attention", f"{q} {k} {v}", p.shapes[q], causal="true")
    merged = p.apply("merge_heads", a, rows)
    x = p.apply("add", f"{x} {_linear(p, 'proj', merged, width, bias=False)}", rows)
    h = p.apply("rms_norm", f"{x} {p.argument('rms2_w', width)}", rows)
    gate, up = (_linear(p, name, h, hidden, bias=False) for name in ("gate", "up"))
    gated = p.apply("swiglu", f"{gate} {up}", p.shapes[up])
    down = _linear(p, "down", gated, width, bias=False)
    return p.returning(p.apply("add", f"{x} {down}", rows))


def _convolution(p: Program, name: str, x: str, out: int, kernel: int, stride: int = 1) -> str:
    """A convolution without bias and a batch norm by running statistics."""
    batch, channels, height, width = p.shapes[x]
    w = p.argument(f"{name}_w", out, channels, kernel, kernel)
    pad = kernel // 2
    cells = tuple((n + 2 * pad - kernel) // stride + 1 for n in (height, width))
    y = p.apply("conv2d", f"{x} {w}", (batch, out, *cells), stride=[stride] * 2, padding=[pad] * 2)
    names = ("mean", "variance", "scale", "shift")
    numbers = " ".join(p.argument(f"{name}_{n}", out) for n in names)
    return p.apply("batch_norm_inference", f"{y} {numbers}", p.shapes[y])


def resnet_basic(
    *, batch: int = 1, channels: int = 64, size: int = 56, out: int | None = None, stride: int = 1
) -> str:
    """A basic block of ResNet-18 in inference; strided ones project what they add."""
    p = Program()
    out = out or channels * stride
    x = p.argument("x", batch, channels, size, size)
    y = _convolution(p, "c1", x, out, 3, stride)
    y = p.apply("relu", y, p.shapes[y])
    y = _convolution(p, "c2", y, out, 3)
    kept = x if p.shapes[x] == p.shapes[y] else _convolution(p, "c0", x, out, 1, stride)
    y = p.apply("add", f"{y} {kept}", p.shapes[y])
    return p.returning(p.apply("relu", y, p.shapes[y]))


def resnet_bottleneck(
    *, batch: int = 1, channels: int = 256, size: int = 56, inner: int = 64, stride: int = 1
) -> str:
    """A bottleneck block of ResNet-50 in inference."""
    p = Program()
    x = p.argument("x", batch, channels, size, size)
    y = _convolution(p, "c1", x, inner, 1)
    y = p.apply("relu", y, p.shapes[y])
    y = _convolution(p, "c2", y, inner, 3, stride)
    y = p.apply("relu", y, p.shapes[y])
    y = _convolution(p, "c3", y, 4 * inner, 1)
    kept = x if p.shapes[x] == p.shapes[y] else _convolution(p, "c0", x, 4 * inner, 1, stride)
    y = p.apply("add", f"{y} {kept}", p.shapes[y])
    return p.returning(p.apply("relu", y, p.shapes[y]))
