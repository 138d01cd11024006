"""What benchmarks/cpu.py measures: programs, and the same expressions of the peers.

A case has its arrays, and a function per implementation that prepares a call on them: a compiled
program or a graph of dask's is made once, and called often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Array = Any
Call = Callable[[], Any]

DIGITS = Path(__file__).parents[1] / "examples" / "digits"
PEERS = ("tapestry", "numpy", "dask", "torch")
PLAIN = "weft-apply,loom-simplify,loom-fuse,loom-group"
"""The default pipeline without what derives one pass of several."""

_CHUNK = 1 << 20
"""Cells of a chunk of dask's: some rows, four megabytes; larger ones leave a core idle."""


@dataclass(frozen=True)
class Case:
    """One computation: its inputs, and how each implementation says it.

    `numpy`, `tapestry` and `torch` take arrays of their own kind; `dask` takes dask's. What only
    `reads` its inputs cannot be faster than memory is. Of calls in a `burst` the caches hold what
    the call before them left there, inputs, results and code.
    """

    name: str
    arrays: Callable[[], Mapping[str, Array]]
    numpy: Callable[..., Any]
    tapestry: Callable[..., Any]
    torch: Callable[..., Any]
    dask: Callable[..., Any]
    pipeline: str = "default"
    reads: bool = False
    burst: int = 1

    def reading(self, threads: int) -> Call:
        """A function that reads all inputs once: the largest of their bits, as integers."""
        pool = ThreadPoolExecutor(threads)
        parts = [
            part
            for one in self.arrays().values()
            for part in np.array_split(one.reshape(-1).view(np.int32), threads)
        ]
        return lambda: list(pool.map(np.max, parts))

    def call(self, peer: str) -> Call:
        """A function that computes it once more."""
        return {
            "tapestry": self._tapestry,
            "numpy": self._numpy,
            "dask": self._dask,
            "torch": self._torch,
        }[peer]()

    def _tapestry(self) -> Call:
        import tapestry

        arrays = self.arrays()
        given = [tapestry.input(name, one.shape, str(one.dtype)) for name, one in arrays.items()]
        program = tapestry.compile(self.tapestry(*given), pipeline=self.pipeline)
        return lambda: program(**arrays)

    def _numpy(self) -> Call:
        arrays = self.arrays()
        return lambda: self.numpy(*arrays.values())

    def _torch(self) -> Call:
        import torch

        tensors = [torch.from_numpy(one) for one in self.arrays().values()]

        def run() -> Any:
            with torch.no_grad():
                return _numbers(self.torch(*tensors))

        return run

    def _dask(self) -> Call:
        import dask
        import dask.array as da

        def chunked(one: Array) -> Any:
            rows = max(1, _CHUNK * len(one) // one.size)
            return da.from_array(one, chunks=(rows, *one.shape[1:]), name=False)

        made = self.dask(*map(chunked, self.arrays().values()))
        return lambda: dask.compute(made)[0]


def _numbers(made: Any) -> Any:
    return tuple(one.numpy() for one in made) if isinstance(made, tuple) else made.numpy()


_Numbers: TypeAlias = Callable[[], Mapping[str, Array]]


def _random(**shapes: tuple[int, ...]) -> _Numbers:
    """Normal numbers, the same for every implementation; made once."""
    made: dict[str, Array] = {}

    def arrays() -> Mapping[str, Array]:
        if not made:
            source = np.random.default_rng(0)
            for name, shape in shapes.items():
                made[name] = source.standard_normal(shape, np.float32)
                if len(shape) > 1:
                    made[name] /= np.float32(np.sqrt(shape[-1]) if name.startswith("w") else 1)
        return made

    return arrays


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _normalized(x: Array, g: Array, b: Array) -> Array:
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * g + b


def _attention(q: Array, k: Array, v: Array) -> Array:
    return _softmax(q @ k.swapaxes(1, 2) * np.float32(0.125)) @ v


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    return np.float32(0.5) * x * (1 + erf(x * np.float32(0.5**0.5)))


def _digits(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> tuple[Array, Array]:
    made = _softmax(_gelu(x @ w1 + b1) @ w2 + b2)
    return made, made.argmax(axis=1)


def _images(count: int = 65536) -> Callable[[], Mapping[str, Array]]:
    made: dict[str, Array] = {}

    def arrays() -> Mapping[str, Array]:
        if not made:
            with np.load(DIGITS / "digits.npz") as digits, np.load(DIGITS / "weights.npz") as w:
                images = digits["images"].astype(np.float32) / 16
                made.update(x=np.resize(images, (count, images.shape[1])))
                made.update({name: w[name] for name in ("w1", "b1", "w2", "b2")})
        return made

    return arrays


def _mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return np.maximum(x @ w1 + b1, 0) @ w2 + b2


def _chain(x: Array) -> Array:
    return np.exp(x - np.sqrt(np.maximum(x * 1.5 + 0.25, 0))) * 0.5 + x


def _tapestry_digits(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    import tapestry

    made = tapestry.softmax(tapestry.gelu(x @ w1 + b1) @ w2 + b2, axis=1)
    return made, made.argmax(axis=1)


def _torch_digits(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    from torch.nn import functional

    made = (functional.gelu(x @ w1 + b1) @ w2 + b2).softmax(1)
    return made, made.argmax(1)


def _tapestry_chain(x: Any) -> Any:
    import tapestry

    return tapestry.exp(x - tapestry.sqrt(tapestry.relu(x * 1.5 + 0.25))) * 0.5 + x


def _tapestry_attention(q: Any, k: Any, v: Any) -> Any:
    import tapestry

    return tapestry.softmax(q @ tapestry.swapaxes(k, 1, 2) * 0.125, axis=-1) @ v


def _tapestry_named(name: str, **parameters: Any) -> Callable[..., Any]:
    def apply(*given: Any) -> Any:
        import tapestry

        return getattr(tapestry, name)(*given, **parameters)

    return apply


def _torch_norm(x: Any, g: Any, b: Any) -> Any:
    from torch.nn import functional

    return functional.layer_norm(x, (x.shape[1],), g, b)


def _torch_attention(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.transpose(1, 2) * 0.125).softmax(-1) @ v


def _torch_chain(x: Any) -> Any:
    return (x - (x * 1.5 + 0.25).relu().sqrt()).exp() * 0.5 + x


def _dask_digits(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    made = _softmax((x @ w1 + b1).map_blocks(_gelu) @ w2 + b2)
    return made, made.argmax(axis=1)


def _dask_attention(q: Any, k: Any, v: Any) -> Any:
    """Head by head: what dask multiplies in stacks, it does not in parallel."""
    import dask.array as da

    q, k, v = (one.rechunk((1, *one.shape[1:])) for one in (q, k, v))
    return _softmax(da.matmul(q, k.swapaxes(1, 2)) * np.float32(0.125)) @ v


_ROWS = _random(x=(8192, 4096))
_HEADS = _random(q=(8, 1024, 64), k=(8, 1024, 64), v=(8, 1024, 64))


def _reduction(name: str, axis: int | None, arrays: _Numbers = _ROWS, size: str = "") -> Case:
    """A sum, a maximum or its place along an axis, or of all, of so many numbers."""

    def expression(x: Any) -> Any:
        return getattr(x, name)(axis=axis)

    def torch_expression(x: Any) -> Any:
        if axis is None:
            return getattr(x, name)()
        return getattr(x, "amax" if name == "max" else name)(axis)

    def tapestry_expression(x: Any) -> Any:
        return getattr(np, name)(x, axis=axis)

    label = f"{name} of all" if axis is None else f"{name} along axis {axis}"
    label += size
    return Case(
        label, arrays, expression, tapestry_expression, torch_expression, expression, reads=True
    )


def _sorted_rows(x: Any) -> Any:
    return np.sort(x, axis=1)


def _layouts() -> Sequence[Case]:
    """What is read across memory, read once by a product, and put in order."""

    def turned(x: Any) -> Any:
        return np.ascontiguousarray(x.T)

    def both(x: Any, y: Any) -> Any:
        return x + y.T

    def vector(x: Any, v: Any) -> Any:
        return v @ x

    pair, product = _random(x=(4096, 4096), y=(4096, 4096)), _random(x=(8192, 4096), v=(8192,))
    rows = _random(x=(8192, 1024))
    return (
        Case(
            "transposed, 8192 x 4096",
            _ROWS,
            turned,
            np.transpose,
            lambda x: x.T.contiguous(),
            lambda x: x.T.map_blocks(np.ascontiguousarray),
        ),
        Case("x + y transposed, 4096 x 4096", pair, both, both, both, both),
        Case("vector by 8192 x 4096", product, vector, vector, vector, vector, reads=True),
        Case(
            "sorted rows, 8192 x 1024",
            rows,
            _sorted_rows,
            _sorted_rows,
            lambda x: x.sort(dim=1).values,
            lambda x: x.map_blocks(_sorted_rows),
        ),
    )


_BURST = 50
"""Calls of a case that a cache holds, some milliseconds."""


def _in_cache() -> Sequence[Case]:
    """What a cache holds, where it shows what a call takes beside what it computes."""
    numbers, size = _random(x=(1024, 1024)), ", 1024 x 1024"
    softmax = Case(
        "softmax, 64 x 64",
        _random(x=(64, 64)),
        _softmax,
        _tapestry_named("softmax", axis=1),
        lambda x: x.softmax(1),
        _softmax,
    )
    norm = Case(
        "layer norm, 64 x 64",
        _random(x=(64, 64), g=(64,), b=(64,)),
        _normalized,
        _tapestry_named("layer_norm"),
        _torch_norm,
        _normalized,
    )
    network = Case(
        "perceptron, 1 x 64-32-10",
        _random(x=(1, 64), w1=(64, 32), b1=(32,), w2=(32, 10), b2=(10,)),
        _mlp,
        lambda x, w1, b1, w2, b2: _tapestry_named("relu")(x @ w1 + b1) @ w2 + b2,
        lambda x, w1, b1, w2, b2: (x @ w1 + b1).relu() @ w2 + b2,
        _mlp,
    )
    pairs = [*product(("sum", "max"), (0, None)), ("argmax", 1), ("argmax", None)]
    small = (softmax, norm, network)
    made = (*(_reduction(name, axis, numbers, size) for name, axis in pairs), *small)
    return [replace(case, burst=_BURST) for case in made]


def chain(power: int) -> Case:
    """Operations on each cell of so many, a power of two."""
    label, arrays = f"8 operations on 2^{power}", _random(x=(1 << power,))
    return Case(label, arrays, _chain, _tapestry_chain, _torch_chain, _chain)


def cases() -> Sequence[Case]:
    """All that is measured."""
    return (
        Case("digits, 65,536", _images(), _digits, _tapestry_digits, _torch_digits, _dask_digits),
        Case(
            "perceptron, 512 x 4096-4096-4096",
            _random(x=(512, 4096), w1=(4096, 4096), b1=(4096,), w2=(4096, 4096), b2=(4096,)),
            _mlp,
            lambda x, w1, b1, w2, b2: _tapestry_named("relu")(x @ w1 + b1) @ w2 + b2,
            lambda x, w1, b1, w2, b2: (x @ w1 + b1).relu() @ w2 + b2,
            _mlp,
        ),
        Case(
            "softmax, 8192 x 4096",
            _ROWS,
            _softmax,
            _tapestry_named("softmax", axis=1),
            lambda x: x.softmax(1),
            _softmax,
        ),
        Case(
            "layer norm, 8192 x 4096",
            _random(x=(8192, 4096), g=(4096,), b=(4096,)),
            _normalized,
            _tapestry_named("layer_norm"),
            _torch_norm,
            _normalized,
        ),
        Case(
            "attention, 8 x 1024 x 64, as defined",
            _HEADS,
            _attention,
            _tapestry_attention,
            _torch_attention,
            _dask_attention,
            PLAIN,
        ),
        Case(
            "attention, 8 x 1024 x 64, as derived",
            _HEADS,
            _attention,
            _tapestry_attention,
            _torch_attention,
            _dask_attention,
        ),
        chain(24),
        *(_reduction(name, axis) for name in ("sum", "max", "argmax") for axis in (0, 1, None)),
        _reduction("sum", 0, _random(x=(1 << 22, 8)), ", 2^22 x 8"),
        _reduction("max", 0, _random(x=(1 << 22, 3)), ", 2^22 x 3"),
        _reduction("sum", 1, _random(x=(1 << 19, 64)), ", 2^19 x 64"),
        _reduction("sum", 1, _random(x=(1 << 22, 8)), ", 2^22 x 8"),
        _reduction("max", 1, _random(x=(1 << 22, 3)), ", 2^22 x 3"),
        *_layouts(),
        *_in_cache(),
    )
