"""Chains of operators around a convolution or a product of matrices: equal to PyTorch, in training
as well, and none of their operators is left to it.
"""

# pyright: basic
# PyTorch has no types to speak of.

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.importers.torch.compare import check_forward, check_training  # noqa: E402

F = nn.functional


class Chain(nn.Module):
    """A layer, and a function of its result and of a parameter."""

    def __init__(self, layer, then, shape=None):
        super().__init__()
        self.layer, self.then = layer, then
        self.extra = None if shape is None else nn.Parameter(torch.randn(shape))

    def forward(self, x):
        return self.then(self.layer(x), *([] if self.extra is None else [self.extra]))


def image(*shape):
    return torch.randn(shape or (2, 3, 8, 8))


def conv():
    return nn.Conv2d(3, 4, 3)


def rows():
    return torch.randn(4, 6)


CHAINS = {
    "conv_relu_bias": lambda: (Chain(conv(), lambda y, b: F.relu(y) + b, (4, 1, 1)), image()),
    "conv_transpose_subtract_tanh": lambda: (
        Chain(nn.ConvTranspose2d(3, 4, 4, 2, 1, 1), lambda y, b: torch.tanh(y - b), (4, 1, 1)),
        image(2, 3, 4, 4),
    ),
    "conv3d_transpose_sum_norm_pool_gelu": lambda: (
        Chain(
            nn.ConvTranspose3d(2, 4, 3, 2, 1, 1),
            lambda y, s: F.gelu(F.avg_pool3d(F.layer_norm(y + s, y.shape[-1:]), 2)),
            (1,),
        ),
        image(1, 2, 2, 3, 2),
    ),
    "conv_subtract_twice_mish": lambda: (
        Chain(conv(), lambda y: F.mish(y - 0.5 - 0.2)),
        image(),
    ),
    "conv_hardswish_pool_mish": lambda: (
        Chain(conv(), lambda y: F.mish(F.max_pool2d(F.hardswish(y - 0.5), 2))),
        image(),
    ),
    "conv_softplus_tanh_scale_norm": lambda: (
        Chain(
            nn.Sequential(conv(), nn.BatchNorm2d(4)),
            lambda y: torch.tanh(F.softplus(y)) * y,
        ),
        image(),
    ),
    "conv3d_activations_bias": lambda: (
        Chain(
            nn.Conv3d(2, 3, 2),
            lambda y, b: torch.sigmoid(F.gelu(F.leaky_relu(F.relu(y), 0.01))) + b,
            (3, 1, 1, 1),
        ),
        image(1, 2, 3, 4, 3),
    ),
    "conv3d_divide_pool_average_sum": lambda: (
        Chain(
            nn.Conv3d(2, 3, 2),
            lambda y, b: (F.adaptive_avg_pool3d(F.max_pool3d(y / 2, 2), 1) + b).sum(1),
            (3, 1, 1, 1),
        ),
        image(2, 2, 5, 5, 5),
    ),
    "linear_subtract_multiply_relu": lambda: (
        Chain(nn.Linear(6, 5), lambda y: F.relu((y - 2) * 1.5)),
        rows(),
    ),
    "conv_transpose_pool_clamp_mean": lambda: (
        Chain(
            nn.ConvTranspose2d(3, 4, 3),
            lambda y: torch.tanh(F.hardtanh(F.max_pool2d(y, 2), -1, 1).mean((2, 3), keepdim=True)),
        ),
        image(2, 3, 4, 4),
    ),
    "gemm_multiply_leaky": lambda: (
        Chain(nn.Linear(6, 5), lambda y: F.leaky_relu(y * 2, 0.1)),
        rows(),
    ),
    "gemm_divide_sum_scale": lambda: (
        Chain(nn.Linear(6, 5), lambda y: (y / 2).sum(1, keepdim=True) * 1.5),
        rows(),
    ),
    "linear_folds_logsumexp": lambda: (
        Chain(
            nn.Linear(6, 5),
            lambda y: torch.logsumexp(torch.max(y, 1, keepdim=True)[0].mean(1, True), 1, True),
        ),
        rows(),
    ),
    "conv3d_min_softmax": lambda: (
        Chain(nn.Conv3d(2, 3, 2), lambda y: torch.softmax(torch.min(y, 2)[0], 1)),
        image(1, 2, 3, 4, 4),
    ),
    "linear_residual_sigmoid": lambda: (
        Chain(nn.Linear(6, 6), lambda y: torch.sigmoid(y) * 2 + y),
        rows(),
    ),
    "bmm_instance_norm_residual": lambda: (
        Chain(
            nn.Linear(6, 5),
            lambda y, z: (F.instance_norm(y[None, None])[0, 0] + z) * z,
            (4, 5),
        ),
        rows(),
    ),
    "gemm_group_norm_swish": lambda: (
        Chain(
            nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(2, 8)),
            lambda y, w: (z := y * torch.sigmoid(y) * w) * torch.sigmoid(z),
            (8,),
        ),
        rows(),
    ),
    "gemm_logsumexp_activations": lambda: (
        Chain(
            nn.Linear(6, 5),
            lambda y: F.gelu(F.gelu(F.leaky_relu(torch.logsumexp(y, 1, True), 0.01))),
        ),
        rows(),
    ),
    "gemm_scale_batch_norm": lambda: (
        Chain(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)), lambda y, s: y * s, (5,)),
        rows(),
    ),
    "gemm_sigmoid_sum_logsumexp": lambda: (
        Chain(nn.Linear(6, 5), lambda y: torch.logsumexp(torch.sigmoid(y).sum(1), 0)),
        rows(),
    ),
    "conv_global_pool_bias_logsumexp": lambda: (
        Chain(
            nn.ConvTranspose2d(3, 4, 3),
            lambda y, b: torch.logsumexp(y.mean((2, 3), True) + b, 1, True).sum((2, 3)) * 10,
            (4, 1, 1),
        ),
        image(2, 3, 4, 4),
    ),
    "conv_pool_sigmoid_sum": lambda: (
        Chain(conv(), lambda y: torch.sigmoid(F.avg_pool2d(y, 2)).sum((1, 2, 3))),
        image(),
    ),
    "linear_pool_gelu_scale_max": lambda: (
        Chain(
            nn.Linear(6, 8),
            lambda y: torch.max(F.gelu(F.avg_pool1d(y[:, None], 2)[:, 0]) * 2, 1)[0],
        ),
        rows(),
    ),
    "conv3d_norm_min_clamp": lambda: (
        Chain(
            nn.Sequential(nn.Conv3d(2, 4, 3), nn.GroupNorm(2, 4)),
            lambda y: torch.clamp(torch.min(y, torch.tensor(0.5)), -1, 1),
        ),
        image(2, 2, 4, 5, 4),
    ),
    "conv3d_transpose_swish_norm_hardswish": lambda: (
        Chain(
            nn.Sequential(nn.ConvTranspose3d(2, 4, 3, 2, 1), nn.SiLU(), nn.GroupNorm(2, 4)),
            F.hardswish,
        ),
        image(1, 2, 3, 4, 3),
    ),
    "conv3d_transpose_logsumexp_clamp": lambda: (
        Chain(
            nn.ConvTranspose3d(2, 4, 3, 2, 1),
            lambda y, b: torch.clamp(
                (z := torch.logsumexp(y, 1, True)) * torch.sigmoid(z + 3) / 6 - b, -1, 1
            ),
            (1, 1, 1, 1),
        ),
        image(1, 2, 3, 4, 3),
    ),
    "conv3d_transpose_clamp_softmax": lambda: (
        Chain(
            nn.ConvTranspose3d(2, 4, 3, 2, 1, 1),
            lambda y, s: torch.softmax(y.clamp(0, 1).flatten(2), 2).view_as(y) * s,
            (1, 4, 1, 1, 1),
        ),
        image(1, 2, 2, 3, 2),
    ),
    "conv3d_softmax_pool_twice": lambda: (
        Chain(
            nn.Conv3d(2, 3, 3),
            lambda y: F.max_pool3d(F.max_pool3d(torch.softmax(y, 1), 2), 2),
        ),
        image(1, 2, 6, 7, 6),
    ),
    "linear_pool_sum_scale": lambda: (
        Chain(nn.Linear(6, 8), lambda y: F.max_pool1d(y[:, None], 2)[:, 0].sum(1) * 0.5),
        rows(),
    ),
    "linear_norm_leaky_twice": lambda: (
        Chain(
            nn.Sequential(nn.Linear(6, 8), nn.GroupNorm(2, 8)),
            lambda y: (z := F.leaky_relu(y, 0.01)) + z,
        ),
        rows(),
    ),
    "attention_block": lambda: (
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        torch.randn(2, 5, 8),
    ),
}

SOME = ("conv_relu_bias", "linear_residual_sigmoid", "gemm_sigmoid_sum_logsumexp")


@pytest.mark.parametrize(
    "name",
    [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in CHAINS],
)
def test_a_chain(name):
    torch.manual_seed(0)
    model, x = CHAINS[name]()
    report = check_training(model, lambda run, x: (run(x) ** 2).mean(), [x])
    assert not report.external, report
    report = check_forward(model.eval(), x, rtol=1e-4)
    assert not report.external, report
