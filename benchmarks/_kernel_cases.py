"""The programs of `kernels.py`: each with its inputs, and what PyTorch computes it with.

>>> case = next(one for one in CASES if one.name.startswith("softmax"))
>>> case.small.inputs[0].shape[-1] < case.inputs[0].shape[-1]
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from _kernel_attention import attention, attention_backward
from _kernel_case import WARPGROUP_ROWS, Case, Given

import tapestry as t
from tapestry.importers.expressions.nodes import Expression


def _matmul(dtype: str, *sizes: int, turned: bool = False, name: str = "") -> Case:
    def given(m: int, n: int, k: int) -> list[Given]:
        return [Given("a", (m, k), dtype), Given("b", (n, k) if turned else (k, n), dtype)]

    shown = "x".join(map(str, dict.fromkeys(sizes)))
    return Case(
        f"matmul {dtype} {name or shown}",
        "matmul",
        sizes,
        given,
        (lambda a, b: a @ b.T) if turned else (lambda a, b: a @ b),
        (lambda _, a, b: a @ b.T) if turned else (lambda _, a, b: a @ b),
        multiplies=min(sizes) >= WARPGROUP_ROWS,
    )


def _linear(rows: int, width: int, out: int) -> Case:
    def given(m: int, k: int, n: int) -> list[Given]:
        return [
            Given("x", (m, k)),
            Given("w", (k, n)),
            Given("b", (n,)),
            Given("r", (m, n)),
        ]

    return Case(
        f"linear+bias+gelu+residual {rows}x{width}x{out}",
        "linear",
        (rows, width, out),
        given,
        lambda x, w, b, r: t.gelu(x @ w + b) + r,
        lambda torch, x, w, b, r: torch.nn.functional.gelu(x @ w + b) + r,
        multiplies=True,
        beside={"product": lambda _, x, w, *_rest: x @ w},
    )


def _gated(rows: int, width: int, out: int) -> Case:
    def given(m: int, k: int, n: int) -> list[Given]:
        shapes = {"x": (m, k), "g": (k,), "w": (k, n), "v": (k, n)}
        return [Given(name, shape, "bf16") for name, shape in shapes.items()]

    def program(x: Expression, g: Expression, w: Expression, v: Expression) -> Expression:
        h = t.rms_norm(x, g, eps=1e-6)
        return t.swiglu(h @ w, h @ v)

    def peer(torch: Any, x: Any, g: Any, w: Any, v: Any) -> Any:
        h = torch.nn.functional.rms_norm(x, g.shape, g, 1e-6)
        return torch.nn.functional.silu(h @ w) * (h @ v)

    return Case(
        f"rms norm+swiglu {rows}x{width}x{out}",
        "linear",
        (rows, width, out),
        given,
        program,
        peer,
        multiplies=rows >= WARPGROUP_ROWS,
        beside={"product": lambda _, x, _g, w, v: (x @ w, x @ v)},
    )


def _rows(name: str, rows: int, columns: int, program: Any, peer: Any, *vectors: str) -> Case:
    def given(m: int, n: int) -> list[Given]:
        return [Given("x", (m, n)), *(Given(one, (n,)) for one in vectors)]

    return Case(f"{name} {rows}x{columns}", name, (rows, columns), given, program, peer)


def _cross_entropy(rows: int, classes: int) -> Case:
    return Case(
        f"cross entropy {rows}x{classes}",
        "cross entropy",
        (rows, classes),
        lambda m, n: [Given("x", (m, n)), Given("y", (m,), "i64", n)],
        t.cross_entropy_loss,
        lambda torch, x, y: torch.nn.functional.cross_entropy(x, y),
    )


def _reduce(axis: int, shape: tuple[int, int, int]) -> Case:
    return Case(
        f"sum along axis {axis} of {'x'.join(map(str, shape))}",
        "reduction",
        shape,
        lambda *sizes: [Given("x", sizes, "f32")],
        lambda x: x.sum(axis=axis),
        lambda _, x: x.sum(axis),
    )


def _scan(axis: int, shape: tuple[int, ...]) -> Case:
    return Case(
        f"cumulative sum along axis {axis} of {'x'.join(map(str, shape))}",
        "scan",
        shape,
        lambda *sizes: [Given("x", sizes, "f32")],
        lambda x: x.cumsum(axis),
        lambda _, x: x.cumsum(axis),
    )


def _conv(n: int, c: int, size: int, k: int, kernel: int, stride: int = 1) -> Case:
    def given(n: int, c: int, h: int, k: int) -> list[Given]:
        return [Given("x", (n, c, h, h)), Given("w", (k, c, kernel, kernel)), Given("b", (k,))]

    pad = kernel // 2
    steps = f" by {stride}" if stride > 1 else ""
    return Case(
        f"conv2d {n}x{c}x{size}x{size} -> {k}, {kernel}x{kernel}{steps}, relu",
        "convolution",
        (n, c, size, k),
        given,
        lambda x, w, b: t.relu(t.conv2d(x, w, b, padding=[pad, pad], stride=[stride, stride])),
        lambda torch, x, w, b: torch.relu(torch.nn.functional.conv2d(x, w, b, stride, pad)),
        multiplies=True,
    )


def _depthwise(n: int, c: int, size: int, kernel: int) -> Case:
    """A filter of its own for each channel, which multiplies no matrices."""
    pad = kernel // 2
    return Case(
        f"depthwise {n}x{c}x{size}x{size}, {kernel}x{kernel}",
        "windows",
        (n, c, size),
        lambda n, c, h: [Given("x", (n, c, h, h)), Given("w", (c, 1, kernel, kernel))],
        lambda x, w: t.conv2d(x, w, padding=[pad, pad], groups=w.shape[0]),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=pad, groups=w.shape[0]),
    )


def _chain(torch: Any, x: Any, y: Any) -> Any:
    return torch.tanh(torch.exp(-(x * y + 1).abs()) * x).sqrt().nan_to_num() + y.sigmoid()


def _chain_here(x: Expression, y: Expression) -> Expression:
    inner = t.tanh(t.exp(-abs(x * y + 1)) * x)
    return t.nan_to_num(t.sqrt(inner)) + t.sigmoid(y)


def _adam(x: Any, gradient: Any, mean: Any, square: Any) -> tuple[Any, Any, Any]:
    """The parameter and both moments after a step."""
    new = 0.9 * mean + 0.1 * gradient
    second = 0.999 * square + 0.001 * gradient * gradient
    return x - 0.001 * new / (second**0.5 + 1e-8), new, second


def _f32(*names: str) -> Callable[[int], list[Given]]:
    return lambda n: [Given(name, (n,), "f32") for name in names]


_TYPES = ("f16", "bf16", "f32")

CASES: tuple[Case, ...] = (
    *(_matmul(dtype, n, n, n) for n in (512, 1024, 2048, 4096, 8192) for dtype in ("bf16", "f16")),
    *(_matmul(dtype, 16384, 16384, 16384) for dtype in ("bf16", "f16")),
    *(_matmul("f32", n, n, n) for n in (512, 1024, 2048, 4096, 8192, 16384)),
    *(_matmul("f64", n, n, n) for n in (2048, 4096)),
    *(_matmul(dtype, 1001, 1003, 997, name="odd 1001x1003x997") for dtype in _TYPES),
    *(_matmul(dtype, *(4096,) * 3, turned=True, name="4096 transposed") for dtype in _TYPES),
    _matmul("f16", 16, 8192, 8192, name="thin 16x8192x8192"),
    Case(
        "matmul f16 batched 64x512x512x128",
        "matmul",
        (64, 512, 512, 128),
        lambda b, m, n, k: [Given("a", (b, m, k)), Given("b", (b, k, n))],
        lambda a, b: a @ b,
        lambda _, a, b: a @ b,
        multiplies=True,
    ),
    Case(
        "matmul f16 broadcast 64x512x512x128",
        "matmul",
        (64, 512, 512, 128),
        lambda b, m, n, k: [Given("a", (b, m, k)), Given("b", (k, n))],
        lambda a, b: a @ b,
        lambda _, a, b: a @ b,
        multiplies=True,
    ),
    Case(
        "matmul f16 batched transposed 64x512x512x128",
        "matmul",
        (64, 512, 512, 128),
        lambda b, m, n, k: [Given("a", (b, m, k)), Given("b", (b, n, k))],
        lambda a, b: a @ b.swapaxes(-1, -2),
        lambda _, a, b: a @ b.transpose(-1, -2),
        multiplies=True,
    ),
    _linear(8192, 4096, 4096),
    _linear(2048, 1024, 4096),
    _gated(2048, 4096, 14336),
    _gated(16, 4096, 14336),
    *(
        _rows("softmax", rows, n, lambda x: t.softmax(x, axis=-1), lambda _, x: x.softmax(-1))
        for rows, n in ((32768, 1024), (8192, 4096), (2048, 32768), (512, 262144))
    ),
    *(
        _rows(
            "layer norm",
            rows,
            n,
            t.layer_norm,
            lambda torch, x, w, b: torch.nn.functional.layer_norm(x, w.shape, w, b),
            "w",
            "b",
        )
        for rows, n in ((32768, 1024), (8192, 8192), (1024, 65536), (512, 262144))
    ),
    *(
        _rows(
            "rms norm",
            rows,
            n,
            lambda x, w: t.rms_norm(x, w, eps=1e-6),
            lambda torch, x, w: torch.nn.functional.rms_norm(x, w.shape, w, 1e-6),
            "w",
        )
        for rows, n in ((32768, 1024), (8192, 8192), (1024, 65536), (512, 262144))
    ),
    *(
        _cross_entropy(rows, n)
        for rows, n in ((32768, 1024), (8192, 32000), (4096, 128256), (1024, 262144))
    ),
    attention("causal d=64", 4, 16, 4096, 4096, 64, causal=True, kv=16),
    attention("causal d=128", 4, 16, 4096, 4096, 128, causal=True, kv=16),
    attention("full d=64", 4, 16, 4096, 4096, 64, causal=False, kv=16),
    attention("full d=128", 4, 16, 4096, 4096, 128, causal=False, kv=16),
    attention("grouped d=128", 4, 32, 2048, 2048, 128, causal=True, kv=8),
    attention("decode d=128", 16, 32, 1, 8192, 128, causal=False, kv=32),
    attention("grouped decode d=128", 1, 32, 1, 32768, 128, causal=False, kv=8),
    attention("float32 d=64", 2, 16, 2048, 2048, 64, causal=True, kv=16, dtype="f32"),
    attention("float32 full d=128", 2, 16, 2048, 2048, 128, causal=False, kv=16, dtype="f32"),
    attention("float32 d=128", 2, 16, 2048, 2048, 128, causal=True, kv=16, dtype="f32"),
    attention("bfloat16 d=128", 4, 16, 4096, 4096, 128, causal=True, kv=16, dtype="bf16"),
    attention("bfloat16 d=64", 4, 16, 4096, 4096, 64, causal=True, kv=16, dtype="bf16"),
    attention("bfloat16 full d=64", 4, 16, 4096, 4096, 64, causal=False, kv=16, dtype="bf16"),
    attention_backward("causal d=64", 4, 16, 4096, 64, causal=True),
    attention_backward("causal d=128", 4, 16, 4096, 128, causal=True),
    attention_backward("full d=64", 4, 16, 4096, 64, causal=False),
    attention_backward("full d=128", 4, 16, 4096, 128, causal=False),
    attention_backward("bfloat16 d=128", 4, 16, 4096, 128, causal=True, dtype="bf16"),
    *(_reduce(axis, (512, 1024, 256)) for axis in range(3)),
    Case(
        "transpose 8192x8192",
        "views",
        (8192, 8192),
        lambda m, n: [Given("x", (m, n))],
        lambda x: x.T * 1,
        lambda _, x: x.T.contiguous(),
    ),
    Case(
        "chain of eight 2^26",
        "elementwise",
        (1 << 26,),
        _f32("x", "y"),
        _chain_here,
        _chain,
    ),
    Case(
        "add 2^27",
        "elementwise",
        (1 << 27,),
        _f32("x", "y"),
        lambda x, y: x + y,
        lambda _, x, y: x + y,
    ),
    _conv(32, 64, 56, 64, 3),
    _conv(32, 256, 28, 256, 1),
    _conv(32, 128, 28, 256, 3),
    _conv(32, 512, 7, 512, 3),
    _conv(32, 128, 56, 128, 3, 2),
    _conv(32, 3, 224, 64, 7, 2),
    Case(
        "max pool 64x64x112x112, 3x3 by 2",
        "windows",
        (64, 64, 112),
        lambda n, c, h: [Given("x", (n, c, h, h))],
        lambda x: t.max_pool2d(x, kernel=[3, 3], stride=[2, 2], padding=[1, 1]),
        lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
    ),
    _depthwise(32, 192, 56, 3),
    _depthwise(32, 192, 56, 7),
    Case(
        "embedding 65536 of 50257x1024",
        "indexing",
        (50257, 1024, 65536),
        lambda n, d, m: [Given("table", (n, d)), Given("ids", (m,), "i64", n)],
        t.embedding,
        lambda _, table, ids: table[ids],
    ),
    Case(
        "index add 8192 to 50257x768",
        "indexing",
        (50257, 768, 8192),
        lambda n, d, m: [
            Given("table", (n, d)),
            Given("ids", (m,), "i64", n),
            Given("rows", (m, d)),
        ],
        t.index_add,
        lambda _, table, ids, rows: table.index_add(0, ids, rows),
    ),
    _scan(0, (1 << 24,)),
    _scan(1, (64, 1 << 16)),
    _scan(0, (4096, 4096)),
    Case(
        "optimizer step 2^25",
        "elementwise",
        (1 << 25,),
        _f32("x", "g", "m", "v"),
        lambda x, g, m, v: _adam(x, g, m, abs(v)),
        lambda _, x, g, m, v: _adam(x, g, m, v.abs()),
    ),
)
