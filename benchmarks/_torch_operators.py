"""Single operations of PyTorch, for operators.py: what each is called with, and what it computes.

`large` arguments take some megabytes, more than a core's own cache; `small` ones some thousand
cells, where a call costs more than what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Operation: TypeAlias = Callable[..., Any]
Arguments: TypeAlias = Callable[[], Sequence[Tensor]]

LARGE, SMALL = (2048, 1024), (64, 64)
IMAGES, FEW_IMAGES = (8, 32, 64, 64), (1, 8, 16, 16)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers, the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def places(count: int, *shape: int) -> Tensor:
    """Places of one of so many."""
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(1))


def _of(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Arguments:
    return lambda: [numbers(*shape, dtype=dtype) for shape in shapes]


def _elementwise() -> dict[str, tuple[int, Operation]]:
    """On one matrix or on two."""
    return {
        "relu": (1, torch.relu),
        "gelu": (1, functional.gelu),
        "gelu, tanh": (1, lambda x: functional.gelu(x, approximate="tanh")),
        "silu": (1, functional.silu),
        "sigmoid": (1, torch.sigmoid),
        "tanh": (1, torch.tanh),
        "exp": (1, torch.exp),
        "log1p of abs": (1, lambda x: torch.log1p(x.abs())),
        "sin": (1, torch.sin),
        "erf": (1, torch.erf),
        "x + 1": (1, lambda x: x + 1),
        "clamp": (1, lambda x: x.clamp(-1, 1)),
        "x + y": (2, lambda x, y: x + y),
        "x * y + x": (2, lambda x, y: x * y + x),
        "x / y": (2, lambda x, y: x / y),
        "where": (2, lambda x, y: torch.where(x > 0, x, y)),
        "greater": (2, torch.gt),
        "to bf16": (1, lambda x: x.bfloat16()),
        "to int": (1, lambda x: x.int()),
        "power of 3": (1, lambda x: x**3),
        "floor": (1, torch.floor),
    }


def _folds() -> dict[str, tuple[int, Operation]]:
    """Of one matrix."""
    return {
        "sum": (1, torch.sum),
        "sum, rows": (1, lambda x: x.sum(1)),
        "sum, columns": (1, lambda x: x.sum(0)),
        "mean": (1, torch.mean),
        "var, rows": (1, lambda x: x.var(1)),
        "max": (1, torch.max),
        "amax, rows": (1, lambda x: x.amax(1)),
        "max and place, rows": (1, lambda x: x.max(1)),
        "argmax, rows": (1, lambda x: x.argmax(1)),
        "argmax, columns": (1, lambda x: x.argmax(0)),
        "any, rows": (1, lambda x: (x > 2).any(1)),
        "norm": (1, torch.linalg.vector_norm),
        "prod, rows": (1, lambda x: x.prod(1)),
        "logsumexp, rows": (1, lambda x: x.logsumexp(1)),
        "softmax, rows": (1, lambda x: x.softmax(1)),
        "softmax, columns": (1, lambda x: x.softmax(0)),
        "log_softmax, rows": (1, lambda x: x.log_softmax(1)),
        "layer norm": (1, lambda x: functional.layer_norm(x, x.shape[1:])),
        "rms norm": (1, lambda x: functional.rms_norm(x, x.shape[1:])),
        "cumsum, rows": (1, lambda x: x.cumsum(1)),
        "cumsum, columns": (1, lambda x: x.cumsum(0)),
        "sort, rows": (1, lambda x: x.sort(1).values),
        "topk of 8, rows": (1, lambda x: x.topk(8, 1).values),
    }


def _layouts() -> dict[str, tuple[int, Operation]]:
    """What only moves cells of one matrix or two."""
    return {
        "transposed": (1, lambda x: x.T.contiguous()),
        "cat, rows": (2, lambda x, y: torch.cat([x, y], 0)),
        "cat, columns": (2, lambda x, y: torch.cat([x, y], 1)),
        "stack, last": (2, lambda x, y: torch.stack([x, y], -1)),
        "roll, rows": (1, lambda x: x.roll(5, 0)),
        "roll, columns": (1, lambda x: x.roll(5, 1)),
        "flip, rows": (1, lambda x: x.flip(0)),
        "flip, columns": (1, lambda x: x.flip(1)),
        "pad": (1, lambda x: functional.pad(x, (1, 1, 1, 1))),
        "repeat": (1, lambda x: x.repeat(2, 2)),
        "repeat_interleave": (1, lambda x: x.repeat_interleave(2, 1)),
        "every second column": (1, lambda x: x[:, ::2].contiguous()),
        "triu": (1, torch.triu),
        "x + a column": (1, lambda x: x + x[:, :1]),
        "outer": (1, lambda x: torch.outer(x[:, 0], x[0])),
    }


def _on_images() -> dict[str, Operation]:
    return {
        "max_pool2d": lambda x: functional.max_pool2d(x, 2),
        "max_pool2d, 3 by 2": lambda x: functional.max_pool2d(x, 3, 2, 1),
        "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
        "adaptive_avg_pool2d to 1": lambda x: functional.adaptive_avg_pool2d(x, 1),
        "interpolate, nearest": lambda x: functional.interpolate(x, scale_factor=2),
        "interpolate, bilinear": lambda x: functional.interpolate(
            x, scale_factor=2, mode="bilinear"
        ),
        "group norm": lambda x: functional.group_norm(x, 4),
        "mean of images": lambda x: x.mean((2, 3)),
        "to channels last": lambda x: x.permute(0, 2, 3, 1).contiguous(),
        "pixel_shuffle": lambda x: functional.pixel_shuffle(x, 2),
        "pad of images": lambda x: functional.pad(x, (1, 1, 1, 1)),
        "reflection pad": lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    }


def _products() -> dict[str, tuple[Operation, Arguments, Arguments]]:
    def conv(channels: int, kernel: int) -> tuple[Arguments, Arguments]:
        shapes = [(IMAGES, 32, channels), (FEW_IMAGES, 8, channels // 4)]
        large, small = (
            _of(images, (count, inner, kernel, kernel)) for images, count, inner in shapes
        )
        return large, small

    bf16 = torch.bfloat16
    return {
        "matmul": (torch.matmul, _of((512, 512), (512, 512)), _of(SMALL, SMALL)),
        "matmul, transposed": (
            lambda x, y: x @ y.T,
            _of((512, 512), (512, 512)),
            _of(SMALL, SMALL),
        ),
        "matmul, bf16": (
            torch.matmul,
            _of((512, 512), (512, 512), dtype=bf16),
            _of(SMALL, SMALL, dtype=bf16),
        ),
        "bmm": (torch.bmm, _of((16, 256, 64), (16, 64, 256)), _of((4, 16, 16), (4, 16, 16))),
        "matrix by vector": (torch.mv, _of((2048, 1024), (1024,)), _of(SMALL, (64,))),
        "linear": (
            functional.linear,
            _of((256, 768), (768, 768), (768,)),
            _of((1, 64), SMALL, (64,)),
        ),
        "dot": (torch.dot, _of((1 << 21,), (1 << 21,)), _of((4096,), (4096,))),
        "einsum bhid,bhjd": (
            lambda x, y: torch.einsum("bhid,bhjd->bhij", x, y),
            _of((2, 8, 256, 64), (2, 8, 256, 64)),
            _of((1, 2, 16, 16), (1, 2, 16, 16)),
        ),
        "attention": (
            functional.scaled_dot_product_attention,
            _of(*3 * [(2, 8, 256, 64)]),
            _of(*3 * [(1, 2, 16, 16)]),
        ),
        "attention, causal": (
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
            _of(*3 * [(2, 8, 256, 64)]),
            _of(*3 * [(1, 2, 16, 16)]),
        ),
        "conv2d 3x3": (lambda x, w: functional.conv2d(x, w, padding=1), *conv(32, 3)),
        "conv2d 1x1": (functional.conv2d, *conv(32, 1)),
        "conv2d 3x3 by 2": (
            lambda x, w: functional.conv2d(x, w, stride=2, padding=1),
            *conv(32, 3),
        ),
        "conv2d, depthwise": (
            lambda x, w: functional.conv2d(x, w, padding=1, groups=x.shape[1]),
            _of(IMAGES, (32, 1, 3, 3)),
            _of(FEW_IMAGES, (8, 1, 3, 3)),
        ),
        "conv1d": (
            lambda x, w: functional.conv1d(x, w, padding=2),
            _of((8, 64, 1024), (64, 64, 5)),
            _of((1, 8, 64), (8, 8, 5)),
        ),
        "conv_transpose2d": (
            lambda x, w: functional.conv_transpose2d(x, w, stride=2),
            _of((4, 32, 32, 32), (32, 32, 2, 2)),
            _of((1, 8, 8, 8), (8, 8, 2, 2)),
        ),
    }


def _at_places() -> dict[str, tuple[Operation, Arguments, Arguments]]:
    def table(count: int, width: int, *shape: int) -> Arguments:
        return lambda: [numbers(count, width), places(count, *shape)]

    def added(count: int, width: int, many: int) -> Arguments:
        return lambda: [numbers(count, width), places(count, many), numbers(many, width)]

    def cells(rows: int, columns: int, many: int) -> Arguments:
        return lambda: [numbers(rows, columns), places(columns, rows, many), numbers(rows, many)]

    return {
        "embedding": (
            lambda w, i: functional.embedding(i, w),
            table(4096, 512, 4096),
            table(64, 16, 64),
        ),
        "index_select, columns": (
            lambda x, i: x.index_select(1, i),
            lambda: [numbers(*LARGE), places(1024, 512)],
            lambda: [numbers(*SMALL), places(64, 32)],
        ),
        "gather": (
            lambda x, i, _: x.gather(1, i),
            cells(2048, 1024, 512),
            cells(64, 64, 32),
        ),
        "index_add": (
            lambda x, i, y: x.index_add(0, i, y),
            added(1024, 512, 4096),
            added(64, 16, 64),
        ),
        "scatter_add": (
            lambda x, i, y: x.scatter_add(1, i, y),
            cells(2048, 1024, 512),
            cells(64, 64, 32),
        ),
        "scatter": (
            lambda x, i, y: x.scatter(1, i[:, :1], y[:, :1]),
            cells(2048, 1024, 8),
            cells(64, 64, 8),
        ),
        "cross entropy": (
            functional.cross_entropy,
            lambda: [numbers(*LARGE), places(1024, 2048)],
            lambda: [numbers(*SMALL), places(64, 64)],
        ),
        "one_hot": (
            lambda i: functional.one_hot(i, 256),
            lambda: [places(256, 8192)],
            lambda: [places(256, 16)],
        ),
    }


def operations() -> dict[str, tuple[Operation, Arguments, Arguments]]:
    """By name: the operation, and its large and small arguments."""
    matrices = {**_elementwise(), **_folds(), **_layouts()}
    made = {
        name: (call, _of(*count * [LARGE]), _of(*count * [SMALL]))
        for name, (count, call) in matrices.items()
    }
    halves = {
        f"{name}, bf16": (
            made[name][0],
            _of(LARGE, dtype=torch.bfloat16),
            _of(SMALL, dtype=torch.bfloat16),
        )
        for name in ("gelu", "sum", "softmax, rows", "layer norm")
    }
    images = {name: (call, _of(IMAGES), _of(FEW_IMAGES)) for name, call in _on_images().items()}
    return {**made, **halves, **images, **_products(), **_at_places()}
