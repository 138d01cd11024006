"""Programs of one operator, as benchmarks of kernels ask for: equal to PyTorch, none left to it."""

# pyright: basic
# PyTorch has no types to speak of.

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.importers.torch.compare import check_forward  # noqa: E402

F = torch.nn.functional

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def normal(*shape):
    return torch.randn(shape)


def uniform(*shape):
    return torch.rand(shape)


def classes(count, *shape):
    return torch.randint(0, count, shape)


def probabilities(*shape):
    return torch.softmax(normal(*shape), -1)


def triangular(n):
    return normal(n, n).triu()


MATMULS: dict[str, Callable[[], Program]] = {
    "square": lambda: (torch.matmul, (normal(8, 8), normal(8, 8))),
    "batched": lambda: (torch.bmm, (normal(3, 4, 5), normal(3, 5, 6))),
    "vector": lambda: (torch.matmul, (normal(6, 7), normal(7, 1))),
    "scalar": lambda: (lambda x: x * 3.5, (normal(5, 6),)),
    "of_four_dimensions": lambda: (
        lambda a, b: torch.einsum("bijl,lk->bijk", a, b),
        (normal(2, 3, 4, 5), normal(5, 6)),
    ),
    "of_three_dimensions": lambda: (torch.matmul, (normal(3, 4, 5), normal(5, 6))),
    "diagonal": lambda: (lambda a, b: torch.diag(a) @ b, (normal(5), normal(5, 4))),
    "symmetric": lambda: (lambda a: (a + a.T) @ (a + a.T), (normal(6, 6),)),
    "triangular": lambda: (
        lambda a, b: torch.tril(a.T @ b.T),
        (triangular(5), triangular(5)),
    ),
    "transposed": lambda: (lambda a, b: a.T @ b.T, (normal(5, 4), normal(6, 5))),
    "scaled_residual": lambda: (
        lambda a, b: (y := a @ b) * 0.5 + y.detach(),
        (normal(4, 5), normal(5, 6)),
    ),
}

ACTIVATIONS: dict[str, Callable[[], Program]] = {
    name: (lambda function=function: (function, (normal(4, 33) * 4,)))
    for name, function in {
        "relu": F.relu,
        "leaky_relu": lambda x: F.leaky_relu(x, 0.02),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "softmax": lambda x: F.softmax(x, 1),
        "log_softmax": lambda x: F.log_softmax(x, 1),
        "swish": lambda x: x * torch.sigmoid(x),
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "new_gelu": lambda x: (
            0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * torch.pow(x, 3))))
        ),
        "selu": F.selu,
        "elu": lambda x: F.elu(x, 0.7),
        "celu": lambda x: F.celu(x, 0.7),
        "hardsigmoid": F.hardsigmoid,
        "hardswish": F.hardswish,
        "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.75),
        "softplus": F.softplus,
        "softsign": F.softsign,
        "mish": F.mish,
        "logsigmoid": F.logsigmoid,
        "relu6": F.relu6,
        "softshrink": F.softshrink,
        "glu": lambda x: F.glu(x[:, :32]),
    }.items()
}

NORMS: dict[str, Callable[[], Program]] = {
    "batch": lambda: (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        (normal(4, 3, 5, 5), normal(3), normal(3)),
    ),
    "batch_evaluated": lambda: (
        lambda x, m, v: F.batch_norm(x, m, v),
        (normal(4, 3, 5, 5), normal(3), uniform(3) + 0.5),
    ),
    "instance": lambda: (F.instance_norm, (normal(2, 3, 5, 6),)),
    "group": lambda: (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        (normal(2, 4, 3, 5), normal(4), normal(4)),
    ),
    "layer": lambda: (
        lambda x, w, b: F.layer_norm(x, (4, 5), w, b),
        (normal(3, 4, 5), normal(4, 5), normal(4, 5)),
    ),
    "rms": lambda: (
        lambda x: x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5),
        (normal(3, 4, 5, 2),),
    ),
    "rms_module": lambda: (lambda x, w: F.rms_norm(x, (5,), w), (normal(3, 5), normal(5))),
    "frobenius": lambda: (lambda x: x / torch.norm(x, p="fro"), (normal(3, 4, 5),)),
    "l1": lambda: (lambda x: x / torch.sum(torch.abs(x), dim=1, keepdim=True), (normal(4, 9),)),
    "l2": lambda: (lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True), (normal(4, 9),)),
    "normalize": lambda: (lambda x: F.normalize(x, dim=1), (normal(4, 9),)),
}

REDUCTIONS: dict[str, Callable[[], Program]] = {
    "sum": lambda: (lambda x: torch.sum(x, 1, keepdim=True), (normal(3, 4, 5),)),
    "mean": lambda: (lambda x: torch.mean(x, 1), (normal(3, 4, 5),)),
    "max": lambda: (lambda x: torch.max(x, dim=2)[0], (normal(3, 4, 5),)),
    "min": lambda: (lambda x: torch.min(x, dim=-2)[0], (normal(3, 4, 5),)),
    "argmax": lambda: (lambda x: torch.argmax(x, 1), (normal(3, 4, 5),)),
    "argmin": lambda: (lambda x: torch.argmin(x, 0), (normal(3, 4, 5),)),
    "product": lambda: (lambda x: torch.prod(x, 1), (normal(3, 4, 5),)),
    "logsumexp": lambda: (lambda x: torch.logsumexp(x, 1), (normal(3, 4, 5),)),
    "variance": lambda: (lambda x: torch.var(x, 1), (normal(3, 4, 5),)),
    "cumsum": lambda: (lambda x: torch.cumsum(x, 1), (normal(3, 9),)),
    "cumprod": lambda: (lambda x: torch.cumprod(x, 1), (normal(3, 9),)),
    "cumsum_reverse": lambda: (lambda x: torch.cumsum(x.flip(1), 1).flip(1), (normal(3, 9),)),
    "cumsum_exclusive": lambda: (
        lambda x: torch.cumsum(
            torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), x), 1)[:, :-1], 1
        ),
        (normal(3, 9),),
    ),
    "cumsum_masked": lambda: (
        lambda x, mask: torch.cumsum(x * mask, 1),
        (normal(3, 9), normal(3, 9) > 0),
    ),
}

POOLS: dict[str, Callable[[], Program]] = {
    "max1d": lambda: (lambda x: F.max_pool1d(x, 3, 2, 1, 1), (normal(2, 3, 11),)),
    "max1d_dilated": lambda: (lambda x: F.max_pool1d(x, 3, 2, 1, 2), (normal(2, 3, 13),)),
    "max2d": lambda: (lambda x: F.max_pool2d(x, 3, 2, 1, 2), (normal(2, 3, 9, 8),)),
    "max2d_ceil": lambda: (
        lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
        (normal(2, 3, 5, 7),),
    ),
    "max3d": lambda: (lambda x: F.max_pool3d(x, 3, 2, 1), (normal(1, 2, 5, 6, 7),)),
    "avg1d": lambda: (lambda x: F.avg_pool1d(x, 4, 1, 2), (normal(2, 3, 11),)),
    "avg2d": lambda: (lambda x: F.avg_pool2d(x, 3), (normal(2, 3, 9, 8),)),
    "avg2d_unpadded": lambda: (
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        (normal(2, 3, 9, 8),),
    ),
    "avg3d": lambda: (lambda x: F.avg_pool3d(x, 3, 2, 1), (normal(1, 2, 5, 6, 7),)),
    "adaptive_avg": lambda: (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (normal(2, 3, 7, 8),)),
    "adaptive_max": lambda: (lambda x: F.adaptive_max_pool2d(x, (2, 3)), (normal(2, 3, 7, 8),)),
}

LOSSES: dict[str, Callable[[], Program]] = {
    "mse": lambda: (lambda x, y: torch.mean((x - y) ** 2), (normal(4, 7), normal(4, 7))),
    "cross_entropy": lambda: (F.cross_entropy, (normal(6, 5), classes(5, 6))),
    "cross_entropy_smoothed": lambda: (
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        (normal(6, 5), classes(5, 6)),
    ),
    "huber": lambda: (F.smooth_l1_loss, (normal(4, 7), normal(4, 7))),
    "kl_div": lambda: (
        lambda p, q: F.kl_div(torch.log(p), q, reduction="batchmean"),
        (probabilities(4, 7), probabilities(4, 7)),
    ),
    "triplet": lambda: (
        lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=1.0),
        (normal(4, 7), normal(4, 7), normal(4, 7)),
    ),
    "hinge": lambda: (
        lambda x, y: torch.mean(torch.clamp(1 - x * y, min=0)),
        (normal(9), torch.randint(0, 2, (9,)).float() * 2 - 1),
    ),
    "cosine": lambda: (
        lambda x, y: torch.mean(1 - F.cosine_similarity(x, y, dim=1)),
        (normal(4, 7), normal(4, 7)),
    ),
    "bce": lambda: (F.binary_cross_entropy_with_logits, (normal(4, 7), uniform(4, 7))),
}

ATTENTION: dict[str, Callable[[], Program]] = {
    "plain": lambda: (
        F.scaled_dot_product_attention,
        (normal(2, 2, 5, 4), normal(2, 2, 6, 4), normal(2, 2, 6, 4)),
    ),
    "causal": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (normal(2, 2, 5, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 4)),
    ),
}

PROGRAMS = {
    f"{family}_{name}": made
    for family, rows in {
        "matmul": MATMULS,
        "activation": ACTIVATIONS,
        "norm": NORMS,
        "reduction": REDUCTIONS,
        "pool": POOLS,
        "loss": LOSSES,
        "attention": ATTENTION,
    }.items()
    for name, made in rows.items()
}


SOME = ("matmul_square", "activation_mish", "reduction_cumsum_reverse", "pool_max2d", "loss_huber")


@pytest.mark.parametrize(
    "name",
    [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS],
)
def test_a_kernel(name):
    torch.manual_seed(0)
    function, inputs = PROGRAMS[name]()
    report = check_forward(function, *inputs)
    assert not report.external, report
