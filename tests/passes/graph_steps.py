"""Steps of random graphs: metakernels of the library, and chains that a model would have.

Each step reads values of the graph and adds some, with the bound and error of what it makes, see
`graphs`. A step that finds nothing to work on adds nothing.
"""

from __future__ import annotations

from itertools import zip_longest
from math import exp, log, prod, sqrt

from tests.passes.graphs import (
    ROUNDING,
    Graph,
    Shape,
    Value,
    reshapes,
    rounded,
)


def _float(value: Value) -> bool:
    return value.is_float


def _number(value: Value) -> bool:
    return value.dtype != "i1"


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape that two shapes are stretched to."""
    pairs = list(zip_longest(reversed(a), reversed(b), fillvalue=1))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        return None
    return tuple(reversed([y if x == 1 else x for x, y in pairs]))


def elementwise(graph: Graph) -> None:
    """A map of one tensor."""
    x = graph.pick(_number)
    if x is None:
        return
    b, e, r = x.bound, x.error, ROUNDING.get(x.dtype, 0.0)
    known = {"relu": (b, e), "neg": (b, e), "abs": (b, e)}
    if x.is_float:
        known |= {
            "tanh": (1.0, e + r),
            "sigmoid": (1.0, e + r),
            "gelu": (b, 1.2 * e + 4 * r * b),
            "silu": (b, 1.2 * e + 4 * r * b),
            "square": (b * b, 2 * b * e),
        }
        if b <= 5:
            known["exp"] = (exp(b), exp(b) * (e + 4 * r))
    kernel = graph.random.choice(sorted(known))
    bound, error = known[kernel]
    graph.apply(kernel, [x], bound=bound, error=error)


def binary(graph: Graph) -> None:
    """A map of two tensors of one dtype, stretched to each other."""
    x = graph.pick(_number)
    if x is None:
        return

    def fits(v: Value) -> bool:
        return v.dtype == x.dtype and broadcast(x.shape, v.shape) is not None

    y = graph.pick(fits, newest=0.2)
    if y is None:
        return
    known = {
        "add": (x.bound + y.bound, x.error + y.error),
        "sub": (x.bound + y.bound, x.error + y.error),
        "mul": (x.bound * y.bound, x.bound * y.error + y.bound * x.error),
        "maximum": (max(x.bound, y.bound), max(x.error, y.error)),
        "minimum": (max(x.bound, y.bound), max(x.error, y.error)),
    }
    kernel = graph.random.choice(sorted(known))
    bound, error = known[kernel]
    graph.apply(kernel, [x, y], bound=bound, error=error)


def choose(graph: Graph) -> None:
    """Cells of one tensor or another, as a comparison of exact ones says."""
    x = graph.pick(lambda v: _number(v) and v.error == 0)
    if x is None:
        return
    y = graph.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape and v.error == 0, newest=0)
    assert y is not None
    compared = graph.apply(graph.random.choice(["lt", "ge", "eq"]), [x, y], bound=1, error=0)
    one = graph.pick(lambda v: _number(v) and v.shape == x.shape)
    if not compared or one is None:
        return
    other = graph.pick(lambda v: v.dtype == one.dtype and v.shape == x.shape, newest=0.1)
    assert other is not None
    graph.apply(
        "where",
        [compared[0], one, other],
        bound=max(one.bound, other.bound),
        error=max(one.error, other.error),
    )


def fold(graph: Graph) -> None:
    """A fold along some axes."""
    x = graph.pick(lambda v: v.rank > 0)
    if x is None:
        return
    axes = sorted(graph.random.sample(range(x.rank), graph.random.choice([1, 1, min(2, x.rank)])))
    n = prod(x.shape[a] for a in axes)
    b, e, r = x.bound, x.error, rounded(x, n)
    known: dict[str, tuple[float, float]] = {}
    if x.dtype == "i1":
        known = {"any": (1, 0), "all": (1, 0)}
    else:
        known = {"sum": (n * b, n * (e + r)), "max": (b, e), "min": (b, e)}
    if x.is_float:
        known |= {
            "mean": (b, e + r),
            "mean_square": (b * b, 2 * b * e + r * b),
            "var": (4 * b * b, 8 * b * e + 16 * r * b),
            "logsumexp": (b + log(n), e + 8 * (rounded(x, n + 4) + r)),
        }
    kernel = graph.random.choice(sorted(known))
    bound, error = known[kernel]
    parameters: dict[str, object] = {"axis": axes, "keepdim": graph.random.random() < 0.4}
    if kernel == "var":
        parameters["correction"] = 0.0
    if kernel == "mean_square" and not x.is_float:
        return
    graph.apply(kernel, [x], bound=bound, error=error, **parameters)


def position(graph: Graph) -> None:
    """Where the greatest or least cell is, of exact ones; or a sorted copy."""
    x = graph.pick(lambda v: v.rank > 0 and v.error == 0 and _number(v))
    if x is None:
        return
    axis = graph.random.randrange(x.rank)
    kernel = graph.random.choice(["argmax", "argmin", "sort", "cummax"])
    graph.apply(kernel, [x], bound=max(x.bound, x.shape[axis]), error=0.0, axis=axis)


def scan(graph: Graph) -> None:
    """A running sum."""
    x = graph.pick(lambda v: v.rank > 0 and _number(v))
    if x is None:
        return
    axis = graph.random.randrange(x.rank)
    n = x.shape[axis]
    kernel = graph.random.choice(["cumsum", "logcumsumexp"]) if x.is_float else "cumsum"
    if kernel == "cumsum":
        bound, error = n * x.bound, n * (x.error + rounded(x, n))
    else:
        bound, error = x.bound + log(n), x.error + 8 * rounded(x, 2 * n + 4)
    graph.apply(kernel, [x], bound=bound, error=error, axis=axis)


def contract(graph: Graph) -> None:
    """A matrix product with a new argument or a value that fits."""
    x = graph.pick(lambda v: v.rank >= 2 and _number(v) and graph.has_room(v))
    if x is None:
        return
    inner, columns = x.shape[-1], graph.extent(4)
    batch = x.shape[:-2] if graph.random.random() < 0.4 else ()
    w = graph.argument((*batch, inner, columns), x.dtype)
    if prod((*x.shape, columns)) > graph.most_points:
        return
    bound = inner * x.bound * w.bound
    error = inner * (x.error * w.bound + rounded(x, inner) * w.bound)
    if not batch and x.is_float and graph.random.random() < 0.5:
        bias = graph.argument((columns,), x.dtype)
        graph.apply("linear", [x, w, bias], bound=bound + bias.bound, error=error)
    else:
        graph.apply("matmul", [x, w], bound=bound, error=error)


def softmax(graph: Graph) -> None:
    """Softmax or its logarithm along one axis."""
    x = graph.pick(lambda v: v.is_float and v.rank > 0 and v.bound < 50)
    if x is None:
        return
    axis = graph.random.randrange(x.rank)
    n = x.shape[axis]
    rough = 10 * rounded(x) + 10 * ROUNDING[x.dtype] * (n + 4)
    if graph.random.random() < 0.6:
        graph.apply("softmax", [x], bound=1, error=2 * x.error + rough, axis=axis)
    else:
        bound = 2 * x.bound + log(n)
        graph.apply("log_softmax", [x], bound=bound, error=2 * x.error + rough, axis=axis)


def normalize(graph: Graph) -> None:
    """Layer norm or RMS norm of the last axes; eps keeps it well conditioned."""
    x = graph.pick(lambda v: v.is_float and v.rank > 0)
    if x is None:
        return
    dims = graph.random.choice([1, 1, min(2, x.rank)])
    n = prod(x.shape[-dims:])
    error = (x.error + rounded(x, n + 4)) * 8 * (1 + sqrt(n))
    operands = [x]
    bound = sqrt(n)
    if graph.random.random() < 0.5:
        weight = graph.argument(x.shape[-dims:], x.dtype)
        operands.append(weight)
        bound, error = bound * weight.bound, error * weight.bound
    kernel = graph.random.choice(["layer_norm", "rms_norm"])
    graph.apply(kernel, operands, bound=bound, error=error, dims=dims, eps=0.0625)


def attention(graph: Graph) -> None:
    """Attention of new keys and values; masks may leave rows without a key."""
    q = graph.pick(lambda v: v.is_float and v.rank in (2, 3) and v.bound <= 8 and graph.has_room(v))
    if q is None:
        return
    *batch, length, width = q.shape
    keys = graph.random.choice([length, graph.extent(8)])
    if prod((*batch, length, keys, width)) > graph.most_points:
        return
    k = graph.argument((*batch, keys, width), q.dtype, -1.5, 1.5)
    v = graph.argument((*batch, keys, graph.extent(4)), q.dtype)
    operands = [q, k, v]
    if graph.random.random() < 0.3:
        masks = ["i1", q.dtype]
        operands.append(graph.argument((length, keys), graph.random.choice(masks)))
    scores = sqrt(width) * q.bound * k.bound + operands[-1].bound
    wrong = sqrt(width) * q.error * k.bound + width * ROUNDING[q.dtype] * scores
    error = (2 * wrong + 10 * ROUNDING[q.dtype] * (scores + keys + 4)) * v.bound
    graph.apply(
        "scaled_dot_product_attention",
        operands,
        bound=v.bound,
        error=error,
        causal=graph.random.random() < 0.4,
    )


def chain(graph: Graph) -> None:
    """Softmax times values, or moments, step by step, some steps read by others too."""
    x = graph.pick(lambda v: v.is_float and v.rank > 0 and v.bound <= 20 and graph.has_room(v))
    if x is None:
        return
    axis, r = x.rank - 1, ROUNDING[x.dtype]
    n = x.shape[axis]
    along: dict[str, object] = {"axis": [axis], "keepdim": True}
    if graph.random.random() < 0.5:
        m = graph.apply("max", [x], bound=x.bound, error=x.error, **along)
        d = m and graph.apply("sub", [x, m[0]], bound=2 * x.bound, error=2 * x.error + r * x.bound)
        rough = 2 * x.error + r * (2 * x.bound + 4)
        w = d and graph.apply("exp", d, bound=1, error=rough)
        s = w and graph.apply("sum", w, bound=n, error=n * (rough + r * n), **along)
        if s and graph.random.random() < 0.6:
            graph.apply("div", [w[0], s[0]], bound=1, error=rough + s[0].error)
        if w and x.rank == 2 and graph.random.random() < 0.7:
            v = graph.argument((n, graph.extent(3)), x.dtype)
            graph.apply("matmul", [w[0], v], bound=n * v.bound, error=s[0].error * v.bound)
    else:
        m = graph.apply("mean", [x], bound=x.bound, error=x.error + rounded(x, n), **along)
        d = m and graph.apply("sub", [x, m[0]], bound=2 * x.bound, error=x.error + 2 * m[0].error)
        for power in (2, 3):
            if d and graph.random.random() < 0.7:
                bound = (2 * x.bound) ** power
                error = power * (2 * x.bound) ** (power - 1) * d[0].error + r * bound * n
                first = [d[0], d[0]] if power == 2 else [graph.values[-1], d[0]]
                if first[0].shape != d[0].shape:
                    continue
                q = graph.apply("mul", first, bound=bound, error=error)
                if q:
                    graph.apply("sum", q, bound=n * bound, error=n * (error + r * bound), **along)


def layers(graph: Graph) -> None:
    """The same few operations over and over, with weights of their own or shared."""
    x = graph.pick(
        lambda v: v.is_float and v.rank == 2 and v.shape[1] <= 5 * graph.scale and graph.has_room(v)
    )
    if x is None or x.dtype not in ("f32", "f64"):
        return
    width, r = x.shape[1], ROUNDING[x.dtype]
    shared = graph.argument((width, width), x.dtype, -1, 1) if graph.random.random() < 0.3 else None
    between = graph.random.choice(["tanh", "sigmoid"])
    mixed, residual = graph.random.random() < 0.4, graph.random.random() < 0.5
    for _ in range(graph.random.randint(2, 4)):
        w = shared or graph.argument((width, width), x.dtype, -1, 1)
        wrong = width * w.bound * (x.error + rounded(x, width))
        made = graph.apply("matmul", [x, w], bound=width * x.bound * w.bound, error=wrong)
        made = made and graph.apply(between, made, bound=1, error=wrong + 4 * r)
        if made and mixed:
            error = 2 * made[0].error + 10 * r * (width + 8)
            made = graph.apply("softmax", made, bound=1, error=error, axis=1)
        if made and residual:
            bound, error = x.bound + 1, x.error + made[0].error
            made = graph.apply("add", [x, made[0]], bound=bound, error=error)
        if not made:
            return
        (x,) = made


def window(graph: Graph) -> None:
    """A convolution or a pooling, padded, strided, dilated."""
    x = graph.pick(lambda v: v.rank in (3, 4) and _number(v) and graph.has_room(v))
    if x is None:
        shape = graph.shape(graph.random.choice([3, 4]), 4)
        x = graph.argument(shape, graph.random.choice(["f32", "i32", "f64"]))
    dims = x.rank - 2

    def each(low: int, high: int) -> list[int]:
        return [graph.random.randint(low, high) for _ in range(dims)]

    size = each(1, 3)
    if graph.random.random() < 0.5 or not x.is_float:
        if graph.random.random() < 0.4:
            graph.apply(
                f"max_pool{dims}d", [x], bound=x.bound, error=x.error, kernel=size,
                stride=each(1, 2), padding=[n // 2 for n in size],
            )  # fmt: skip
            return
        w = graph.argument((graph.extent(3), x.shape[1], *size), x.dtype)
        n = prod(w.shape[1:])
        graph.apply(
            f"conv{dims}d", [x, w], bound=n * x.bound * w.bound,
            error=n * w.bound * (x.error + rounded(x, n)), stride=each(1, 2),
            padding=each(0, 2), dilation=each(1, 2),
        )  # fmt: skip
    else:
        graph.apply(
            f"avg_pool{dims}d", [x], bound=x.bound, error=x.error + rounded(x, prod(size)),
            kernel=size, stride=each(1, 2), padding=[n // 2 for n in size],
        )  # fmt: skip


def lookup(graph: Graph) -> None:
    """Rows of a table at computed places."""
    x = graph.pick(lambda v: v.rank > 0 and graph.has_room(v))
    if x is None:
        return
    axis = graph.random.randrange(x.rank)
    kernel = graph.random.choice(["index_select", "gather", "embedding"])
    if kernel == "embedding":
        if x.rank != 2 or x.dtype == "i1":
            return
        ids = graph.argument(graph.shape(graph.random.choice([1, 2]), 4), "i64", -1, x.shape[0])
        graph.apply("embedding", [x, ids], bound=x.bound, error=x.error + rounded(x, x.shape[0]))
        return
    shape = list(x.shape)
    shape[axis] = graph.extent(4)
    ids = graph.argument(
        (shape[axis],) if kernel == "index_select" else tuple(shape), "i64", 0, x.shape[axis] - 1
    )
    graph.apply(kernel, [x, ids], bound=x.bound, error=x.error, axis=axis)


def cast(graph: Graph) -> None:
    """Another dtype; floats that are not exact stay floats."""
    x = graph.pick(_number)
    if x is None:
        return
    floats = ["f32", "f64", "f32", "bf16", "f16"]
    kinds = floats if x.error or x.bound > 100 else [*floats, "i32", "i64", "i8"]
    kind = graph.random.choice(kinds)
    if kind in ROUNDING and x.bound > 1e4:
        return
    lossless = x.error == 0 and kind not in ("bf16", "f16")
    error = 0.0 if lossless else x.error + ROUNDING.get(kind, 0.0) * x.bound
    graph.apply("cast", [x], bound=x.bound, error=error, dtype=kind)


def move(graph: Graph) -> None:
    """The same cells elsewhere: transposed, reshaped, sliced, padded, joined, repeated."""
    x = graph.pick()
    if x is None:
        return
    random = graph.random
    keep = {"bound": x.bound, "error": x.error}
    kernel = random.choice(["transpose", "reshape", "reshape", "slice", "pad", "flip", "join",
                            "expand", "roll", "repeat", "diagonal"])  # fmt: skip
    if kernel == "transpose":
        graph.apply(kernel, [x], **keep, perm=random.sample(range(x.rank), x.rank))
    elif kernel == "reshape":
        graph.apply(kernel, [x], **keep, shape=list(random.choice(reshapes(x.shape))))
    elif x.rank == 0:
        return
    elif kernel == "slice":
        axis = random.randrange(x.rank)
        start = random.randint(0, x.shape[axis] - 1)
        stop, step = random.randint(start + 1, x.shape[axis]), random.choice([1, 1, 2])
        graph.apply(kernel, [x], **keep, axis=axis, start=start, stop=stop, step=step)
    elif kernel == "pad":
        if x.dtype == "i1":
            return
        mode = random.choice(["constant", "constant", "reflect", "replicate", "circular"])
        before, after = ([random.randint(0, 1) for _ in x.shape] for _ in range(2))
        graph.apply(kernel, [x], **keep, before=before, after=after, mode=mode)
    elif kernel == "flip":
        graph.apply(kernel, [x], **keep, axes=[random.randrange(x.rank)])
    elif kernel == "roll":
        graph.apply(
            kernel, [x], **keep, shifts=[random.randint(-2, 2)], axes=[random.randrange(x.rank)]
        )
    elif kernel == "repeat":
        graph.apply(kernel, [x], **keep, repeats=[random.randint(1, 2) for _ in x.shape])
    elif kernel == "expand":
        graph.apply(kernel, [x], **keep, shape=[random.randint(1, 2), *x.shape])
    elif kernel == "diagonal":
        graph.apply(kernel, [x], **keep)
    else:
        y = graph.pick(lambda v: v.shape == x.shape and v.dtype == x.dtype, newest=0)
        assert y is not None
        both = {"bound": max(x.bound, y.bound), "error": max(x.error, y.error)}
        kernel = random.choice(["concat", "stack"])
        graph.apply(kernel, [[x, y]], **both, axis=random.randrange(x.rank))


STEPS = (
    elementwise, elementwise, binary, binary, choose, fold, fold, position, scan, contract,
    softmax, normalize, attention, chain, chain, layers, window, lookup, cast, move, move, move,
)  # fmt: skip
