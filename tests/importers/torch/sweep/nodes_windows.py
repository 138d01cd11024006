"""Single nodes that fold: products, sums, windows, convolutions, norms, losses and running sums."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import torch
from torch import nn

from tests.importers.torch.sweep.nodes_cells import b, i, nonzero, r, u

F = nn.functional


def fold(function, *shape):
    """A fold of one axis, of several, of all, with and without keeping them."""
    return lambda: (
        lambda x: (
            function(x, 1, True),
            function(x, -1, False),
            function(x, (0, 2), True),
            function(x, (0, 1, 2), False),
        ),
        r(*(shape or (3, 4, 5))),
    )


def pooled(function, *args, shape=(1, 2, 7, 8), **how):
    return lambda: (lambda x: function(x, *args, **how), r(*shape))


def convolved(function, kernel, *args, shape=(2, 3, 7, 8), **how):
    return lambda: (lambda x, w: function(x, w, None, *args, **how), r(*shape), r(*kernel))


def convolved_with_bias(function, kernel, bias, *args, shape=(2, 3, 7, 8), **how):
    return lambda: (
        lambda x, w, c: function(x, w, c, *args, **how),
        *(r(*shape), r(*kernel), r(bias)),
    )


def frames_and_back(x):
    """A signal by the spectra of frames that overlap."""
    how = {"n_fft": 16, "hop_length": 4, "window": torch.hann_window(16, dtype=x.dtype)}
    return torch.istft(torch.stft(x, **how, return_complex=True), **how, length=x.shape[-1])


def same(x, w, lower=False):
    """Padded so that the sizes stay, with the odd cell at the end or at the beginning."""
    rows, columns = w.shape[2] - 1, w.shape[3] - 1
    few = (columns // 2, columns - columns // 2), (rows // 2, rows - rows // 2)
    pads = [p for pair in few for p in (reversed(pair) if lower else pair)]
    return F.conv2d(F.pad(x, pads), w)


def equation(text, *shapes):
    return lambda: (lambda *xs: torch.einsum(text, *xs), *(r(*shape) for shape in shapes))


def of_loss(loss, make, **how):
    """A loss, summed, as a mean, and cell by cell."""

    def run(*inputs):
        return tuple(loss(*inputs, reduction=fold, **how) for fold in ("none", "sum", "mean"))

    return lambda: (run, *make())


def classes_of(*shape):
    """Scores over classes in the second dimension, and the classes."""
    return lambda: (r(*shape), i(shape[1], shape[0], *shape[2:]))


def nll(x, at, **how):
    return F.nll_loss(F.log_softmax(x, 1), at, **how)


def exclusive(x, dim, reverse=False):
    x = x.flip(dim) if reverse else x
    made = x.cumsum(dim) - x
    return made.flip(dim) if reverse else made


def normalized(axis):
    return lambda: (
        lambda x, w, c: F.layer_norm(x, x.shape[axis:], w, c, 1e-5),
        *(r(2, 3, 4, 5), r(*(2, 3, 4, 5)[axis:]), r(*(2, 3, 4, 5)[axis:])),
    )


def mean_and_variance(x, axes=(0, 2, 3)):
    centred = x - x.mean(axes, keepdim=True)
    return centred / (centred.square().mean(axes, keepdim=True).sqrt() + 1e-9)


def adam(x, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return x - 0.1 * m / (v.sqrt() + 1e-8), m, v


def rotary(x, cos, sin):
    low, high = x.chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def rotary_by_pairs(x, cos, sin):
    low, high = x[..., ::2], x[..., 1::2]
    return torch.stack((low * cos - high * sin, high * cos + low * sin), -1).flatten(-2)


SDPA = F.scaled_dot_product_attention

WINDOWS = {
    "sum": fold(torch.sum),
    "mean": fold(torch.mean),
    "l1": fold(lambda x, d, k: x.abs().sum(d, k)),
    "l2": fold(lambda x, d, k: torch.linalg.vector_norm(x, 2, d, k)),
    "norms": fold(
        lambda x, d, k: torch.stack(
            [torch.linalg.vector_norm(x, p, d, k) for p in (0.5, 1, 3, torch.inf, -torch.inf)]
        )
    ),
    "log sum": fold(lambda x, d, k: x.abs().sum(d, k).log()),
    "log-sum-exp": fold(lambda x, d, k: x.logsumexp(d, k)),
    "log-sum-exp of nothing": lambda: (
        lambda x: (x.logsumexp(1), x.masked_fill(x > 0, -torch.inf).logsumexp((0, 1))),
        r(3, 4, 5).masked_fill(torch.arange(3)[:, None, None] == 1, -torch.inf),
    ),
    "frames and back": lambda: (frames_and_back, r(2, 64)),
    "max, min": fold(lambda x, d, k: (x.amax(d, k), x.amin(d, k))),
    "sum of squares": fold(lambda x, d, k: x.square().sum(d, k)),
    "variance": fold(lambda x, d, k: (x.var(d, keepdim=k), x.std(d, keepdim=k, unbiased=False))),
    "product": lambda: (lambda x: (x.prod(1), x.prod(0, True), x.prod()), r(3, 4, 5)),
    "folds of an empty axis": lambda: (
        lambda x: (x.sum(1), x.prod(1), x.any(1), x.all(1), x.logsumexp(1), x.mean(1)),
        r(3, 0, 4),
    ),
    "folds of truths": lambda: (
        lambda x: (x.any(), x.all(1), x.sum(0), x.amax(1), x.int().prod(0)),
        b(3, 4),
    ),
    "folds of integers": lambda: (
        lambda x: (x.sum(1), x.prod(0), x.amax(), x.amin(1), x.sum(0, dtype=torch.int32)),
        i(5, 3, 4, low=-5, dtype=torch.int32),
    ),
    "arg max": lambda: (
        lambda x: (x.argmax(), x.argmax(1), x.argmin(0, True), x.argmax(-1, keepdim=True)),
        r(3, 4, 5),
    ),
    "arg max with equals": lambda: (lambda x: (x.argmax(1), x.argmin(0)), i(2, 3, 9)),
    "arg max, the last": lambda: (lambda x: 8 - x.flip(1).argmax(1), i(2, 3, 9)),
    "max with places": lambda: (lambda x: (*x.max(1), *x.min(2, True), *x.median(0)), r(3, 4, 5)),
    "cumulative": lambda: (
        lambda x: (x.cumsum(0), x.cumsum(1), x.cumprod(1), x.logcumsumexp(1), x.cummax(0)[0]),
        r(3, 6),
    ),
    "cumulative, exclusive": lambda: (lambda x: exclusive(x, 1), r(3, 6)),
    "cumulative, backwards": lambda: (lambda x: x.flip(0).cumsum(0).flip(0), r(3, 6)),
    "cumulative, both": lambda: (lambda x: exclusive(x, 1, reverse=True), r(3, 6)),
    "cumulative integers": lambda: (lambda x: (x.cumsum(1), x.cumprod(0)), i(5, 3, 6)),
    "softmax": lambda: (
        lambda x: (*(x.softmax(d) for d in (0, 1, 2, -1)), x.log_softmax(1), F.softmin(x, 0)),
        r(3, 4, 5),
    ),
    "softmax of large": lambda: (lambda x: (x.softmax(1), x.log_softmax(1)), 10000 + r(2, 4)),
    "hard max": lambda: (lambda x: F.one_hot(x.argmax(1), 5).to(x.dtype), r(3, 5)),
    "gumbel": lambda: (lambda x: F.gumbel_softmax(x, hard=True).sum(-1), r(3, 5)),
    "matmul": lambda: (
        lambda a, c, d, v: (a @ c, v @ c, a @ d, a @ c @ d[:2]),
        *(r(4, 5), r(5, 2), r(5, 4), r(5)),
    ),
    "matmul of batches": lambda: (
        lambda a, c, d: (a @ c, a @ d, d.mT @ a.mT),
        *(r(2, 1, 4, 5), r(3, 5, 6), r(5, 6)),
    ),
    "matmul of vectors": lambda: (lambda a, v: (a @ v, v @ a.mT, v @ v), r(2, 4, 5), r(5)),
    "matmul of integers": lambda: (
        lambda a, c: (a - 3).int() @ (c - 2).int(),
        *(i(9, 4, 3, dtype=torch.uint8), i(9, 3, 2, dtype=torch.uint8)),
    ),
    "gemm": lambda: (
        lambda a, c, d, e: (
            torch.addmm(d, a, c, alpha=0.5, beta=0.35),
            0.25 * a @ c + e,
            torch.addmm(d.T, c.T, a.T, beta=0),
            c.T @ a.T,
        ),
        *(r(3, 5), r(5, 4), r(3, 4), r(4)),
    ),
    "other products": lambda: (
        lambda a, c, v: (
            torch.baddbmm(c, a, a.mT, alpha=2),
            torch.kron(c[0], v[None]),
            torch.outer(v, v),
            torch.cross(a[..., :3], a[..., 1:4], -1),
            torch.tensordot(a, a, ([0, 2], [0, 2])),
            torch.linalg.multi_dot((a[0], a[1].T, a[0])),
            torch.cdist(a, a + 1),
            torch.chain_matmul(a[0], a[1].T),
        ),
        *(r(2, 3, 4), r(2, 3, 3), r(3)),
    ),
    "bilinear": lambda: (
        lambda x, y, w, c: F.bilinear(x, y, w, c),
        *(r(3, 4), r(3, 5), r(2, 4, 5), r(2)),
    ),
    "matrix power": lambda: (lambda a: (torch.linalg.matrix_power(a, 3), a.trace()), r(3, 3)),
    "determinant": lambda: (torch.linalg.det, r(3, 3) + 3 * torch.eye(3)),
    "equation, a product": equation("ij,jk->ik", (3, 4), (4, 5)),
    "equation, transposed": equation("ji", (3, 4)),
    "equation, a sum": equation("ij->i", (3, 4)),
    "equation, a diagonal": equation("...ii->...i", (2, 3, 3)),
    "equation, a trace": equation("ii", (3, 3)),
    "equation, batches": equation("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    "equation, inner": equation("i,i", (4,), (4,)),
    "equation, outer": equation("i,j->ij", (3,), (4,)),
    "equation, broadcast": equation("...ij,...jk->...ik", (2, 1, 3, 4), (3, 4, 5)),
    "equation, three": equation("bn,anm,bm->ba", (2, 4), (3, 4, 5), (2, 5)),
    "equation, heads": equation("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    "equation, experts": equation("becd,edf->becf", (2, 3, 4, 5), (3, 5, 6)),
    "equation, gated": equation("bld,dn,bl->bdn", (2, 3, 4), (4, 5), (2, 3)),
    "average pool": pooled(F.avg_pool2d, 3),
    "average pool, strides": pooled(F.avg_pool2d, (5, 3), (3, 2)),
    "average pool, pads": pooled(F.avg_pool2d, 3, 1, 1, count_include_pad=False),
    "average pool, pads count": pooled(F.avg_pool2d, 3, 2, 1, count_include_pad=True),
    "average pool, ceil": pooled(F.avg_pool2d, 3, 2, ceil_mode=True),
    "average pool, ceil, pads": pooled(F.avg_pool2d, 3, 2, 1, True, False),
    "average pool, ceil, pads count": pooled(F.avg_pool2d, 3, 2, 1, True, True),
    "average pool, divisor": pooled(F.avg_pool2d, 2, divisor_override=3),
    "average pool of one": pooled(F.avg_pool1d, 2, 2, 1, shape=(1, 3, 9)),
    "average pool of one, ceil": pooled(F.avg_pool1d, 3, 2, 0, True, shape=(1, 3, 10)),
    "average pool of three": pooled(F.avg_pool3d, 2, shape=(1, 2, 4, 5, 6)),
    "average pool of three, ceil": pooled(
        F.avg_pool3d, 3, 2, 1, True, False, shape=(1, 2, 4, 5, 6)
    ),
    "max pool": pooled(F.max_pool2d, 3),
    "max pool, strides, pads": pooled(F.max_pool2d, (3, 4), (2, 1), (1, 2)),
    "max pool, ceil": pooled(F.max_pool2d, 3, 2, ceil_mode=True),
    "max pool, dilated": pooled(F.max_pool2d, 2, 1, 0, 2),
    "max pool, dilated, ceil": pooled(F.max_pool2d, 3, 2, 1, 2, True),
    "max pool with places": pooled(F.max_pool2d, 3, 2, 1, return_indices=True),
    "max pool of one": pooled(F.max_pool1d, 2, shape=(1, 3, 9)),
    "max pool of three": pooled(F.max_pool3d, 2, 1, shape=(1, 2, 4, 5, 6)),
    "max pool of bytes": lambda: (lambda x: F.max_pool2d(x.float(), 2), i(9, 1, 1, 5, 5)),
    "global pools": lambda: (
        lambda x: (
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_max_pool2d(x, 1),
            x.square().sum((2, 3), keepdim=True).sqrt(),
        ),
        r(2, 3, 4, 5),
    ),
    "adaptive pools": lambda: (
        lambda x: (
            F.adaptive_avg_pool2d(x, (3, 2)),
            F.adaptive_avg_pool2d(x, (None, 2)),
            F.adaptive_max_pool2d(x, (3, 2)),
            F.adaptive_avg_pool1d(x[0], 3),
        ),
        r(2, 3, 7, 5),
    ),
    "lp pool": lambda: (
        lambda x: (F.lp_pool2d(x, 2, 3, 2), F.lp_pool1d(x[0], 3, 2), F.lp_pool2d(x, 1, 2)),
        u(1, 2, 7, 8) + 0.1,
    ),
    "unpooled": lambda: (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, 2, return_indices=True), 2, 2, 0, (7, 8)),
        r(1, 2, 7, 8),
    ),
    "convolution": convolved_with_bias(F.conv2d, (4, 3, 3, 3), 4),
    "convolution, pads": convolved(F.conv2d, (4, 3, 3, 3), 1, 1),
    "convolution, strides": convolved(F.conv2d, (4, 3, 3, 2), (2, 3), (0, 1)),
    "convolution, dilated": convolved(F.conv2d, (4, 3, 2, 3), 1, 2, 2),
    "convolution, groups": convolved(F.conv2d, (6, 1, 3, 3), 1, 1, 1, 3),
    "convolution, same": lambda: (
        lambda x, w: (F.conv2d(x, w, padding="same"), same(x, w), same(x, w, lower=True)),
        *(r(1, 2, 5, 6), r(3, 2, 4, 3)),
    ),
    "convolution, valid": convolved(F.conv2d, (4, 3, 2, 2), padding="valid"),
    "convolution of a point": convolved_with_bias(F.conv2d, (5, 3, 1, 1), 5),
    "convolution of one": convolved_with_bias(F.conv1d, (4, 3, 3), 4, 2, 1, 2, shape=(2, 3, 11)),
    "convolution of one, one sample": convolved(F.conv1d, (4, 3, 3), shape=(3, 11)),
    "convolution of three": convolved(F.conv3d, (4, 3, 2, 3, 2), 1, 1, shape=(1, 3, 4, 5, 6)),
    "convolution of three, groups": convolved(
        F.conv3d, (6, 1, 2, 3, 2), (1, 2, 1), (0, 1, 1), 1, 3, shape=(1, 3, 4, 5, 6)
    ),
    "convolution of bytes": lambda: (
        lambda x, w: F.conv2d(x.float() - 3, w.float() - 4).int(),
        *(i(9, 1, 1, 5, 5, dtype=torch.uint8), i(9, 1, 1, 2, 2, dtype=torch.uint8)),
    ),
    "transposed": convolved_with_bias(F.conv_transpose2d, (3, 4, 3, 3), 4),
    "transposed, strides, pads": convolved(F.conv_transpose2d, (3, 4, 3, 2), (3, 2), (1, 0)),
    "transposed, output pads": convolved(F.conv_transpose2d, (3, 4, 3, 3), (3, 2), 1, (2, 1)),
    "transposed, dilated": convolved(F.conv_transpose2d, (3, 4, 2, 2), 1, 0, 0, 1, 2),
    "transposed, groups": convolved(F.conv_transpose2d, (3, 2, 3, 3), 2, 1, 1, 3),
    "transposed, groups, dilated": convolved(F.conv_transpose2d, (3, 2, 3, 3), 2, 2, 1, 3, 2),
    "transposed, to a size": lambda: (
        lambda x, w: nn.functional.pad(F.conv_transpose2d(x, w, stride=(3, 2)), (0, 1, 0, 1)),
        *(r(1, 1, 3, 3), r(1, 2, 3, 3)),
    ),
    "transposed of one": convolved(F.conv_transpose1d, (3, 4, 3), 2, 1, 1, 1, 2, shape=(2, 3, 6)),
    "transposed of three": convolved(
        F.conv_transpose3d, (3, 4, 3, 2, 3), (1, 2, 2), 1, 0, shape=(1, 3, 3, 4, 3)
    ),
    "deformed by hand": lambda: (
        lambda x, w, at: (F.unfold(x, 2).transpose(1, 2) @ w + at.mean()).transpose(1, 2),
        *(r(1, 2, 4, 4), r(8, 3), r(3)),
    ),
    "batch norm": lambda: (
        lambda x, m, v, w, c: (
            F.batch_norm(x, m.detach(), v.detach(), w, c),
            F.batch_norm(x, m.detach(), v.detach(), w, c, eps=1e-2),
            F.batch_norm(x, None, None, w, c, training=True),
        ),
        *(r(2, 3, 4, 5), r(3), nonzero(3), r(3), r(3)),
    ),
    "instance norm": lambda: (
        lambda x, w, c: F.instance_norm(x, None, None, w, c, eps=1e-2),
        *(r(2, 3, 4, 5), r(3), r(3)),
    ),
    "group norm": lambda: (
        lambda x, w, c: F.group_norm(x, 2, w, c, 1e-2),
        *(r(3, 4, 2, 2), r(4), r(4)),
    ),
    **{f"layer norm, axis {axis}": normalized(axis) for axis in (-4, -3, -2, -1, 1, 2)},
    "rms norm": lambda: (
        lambda x, w, v: (F.rms_norm(x, (4, 5), w, 1e-5), F.rms_norm(x, (5,), v)),
        *(r(2, 3, 4, 5), r(4, 5), r(5)),
    ),
    "local response norm": lambda: (
        lambda x: F.local_response_norm(x, 3, 0.0002, 0.5, 2.0),
        r(2, 5, 3, 3),
    ),
    "lp norm": lambda: (
        lambda x: (F.normalize(x, 1, 0), F.normalize(x, 2, -1), F.normalize(x)),
        r(3, 4),
    ),
    "mean and variance norm": lambda: (mean_and_variance, r(3, 3, 3, 2)),
    "cosine similarity": lambda: (
        lambda x, y: (F.cosine_similarity(x, y), F.pairwise_distance(x, y), F.pdist(x)),
        *(r(4, 5), r(4, 5)),
    ),
    "nll": of_loss(nll, classes_of(4, 5)),
    "nll of pixels": of_loss(nll, classes_of(2, 5, 3, 4)),
    "nll of volumes, ignored": of_loss(nll, classes_of(2, 4, 2, 3, 2), ignore_index=1),
    "nll, weighted, ignored": of_loss(
        lambda x, at, w, **how: nll(x, at, weight=w.detach(), ignore_index=0, **how),
        lambda: (r(4, 5, 3), i(5, 4, 3), nonzero(5)),
    ),
    "cross entropy": of_loss(F.cross_entropy, classes_of(4, 5)),
    "cross entropy of volumes": of_loss(F.cross_entropy, classes_of(2, 4, 2, 3, 2)),
    "cross entropy, ignored": of_loss(F.cross_entropy, classes_of(6, 5), ignore_index=2),
    "cross entropy, weighted, smoothed": of_loss(
        lambda x, at, w, **how: F.cross_entropy(x, at, w.detach(), label_smoothing=0.2, **how),
        lambda: (r(4, 5), i(5, 4), nonzero(5)),
    ),
    "cross entropy of probabilities": of_loss(
        F.cross_entropy, lambda: (r(4, 5, 3), r(4, 5, 3).softmax(1))
    ),
    "mse, l1, huber": lambda: (
        lambda x, y: (
            F.mse_loss(x, y),
            F.l1_loss(x, y),
            F.smooth_l1_loss(x, y, beta=0.5),
            F.huber_loss(x, y),
            F.poisson_nll_loss(x, y.abs()),
            F.soft_margin_loss(x, y.detach().sign()),
        ),
        *(r(4, 5), r(4, 5)),
    ),
    "binary cross entropy": of_loss(F.binary_cross_entropy, lambda: (0.1 + 0.8 * u(4, 5), u(4, 5))),
    "binary cross entropy of logits": of_loss(
        lambda x, y, w, p, **how: F.binary_cross_entropy_with_logits(
            x, y.detach(), w.detach(), pos_weight=p.detach(), **how
        ),
        lambda: (r(4, 5), u(4, 5), nonzero(4, 5), nonzero(5)),
    ),
    "divergence": of_loss(F.kl_div, lambda: (r(4, 5).log_softmax(1), r(4, 5).softmax(1))),
    "margins": lambda: (
        lambda x, y, z, at: (
            F.triplet_margin_loss(x, y, z),
            F.hinge_embedding_loss(x, y.sign()),
            F.cosine_embedding_loss(x, y, z[:, 0].sign()),
            F.multi_margin_loss(x, at),
            F.multilabel_soft_margin_loss(x, (y > 0).to(x.dtype)),
            F.triplet_margin_with_distance_loss(x, y, z),
        ),
        *(r(4, 5), r(4, 5), r(4, 5), i(5, 4)),
    ),
    "gaussian": lambda: (
        lambda x, y, v: F.gaussian_nll_loss(x, y, v),
        *(r(4, 5), r(4, 5), nonzero(4, 5)),
    ),
    "adam": lambda: (adam, r(3, 4), r(3, 4), r(3, 4), nonzero(3, 4)),
    "momentum": lambda: (
        lambda x, g, v: (x - 0.1 * (g + 0.9 * (0.9 * v + g)), 0.9 * v + g),
        *(r(3), r(3), r(3)),
    ),
    "adagrad": lambda: (
        lambda x, g, h: (x - 0.1 * g / ((h + g * g).sqrt() + 1e-5), h + g * g),
        *(r(3), r(3), nonzero(3)),
    ),
    "attention": lambda: (SDPA, r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 5)),
    "attention, causal": lambda: (
        lambda q, k, v: SDPA(q, k, v, is_causal=True),
        *(r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8)),
    ),
    "attention, scaled": lambda: (
        lambda q, k, v: SDPA(q, k, v, scale=0.01),
        *(r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8)),
    ),
    "attention, groups": lambda: (
        lambda q, k, v: SDPA(q, k, v, enable_gqa=True),
        *(r(2, 6, 4, 8), r(2, 2, 6, 8), r(2, 2, 6, 8)),
    ),
    "attention, masked": lambda: (
        lambda q, k, v, m, z: (SDPA(q, k, v, m), SDPA(q, k, v, z)),
        *(r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8), r(4, 6), b(2, 1, 4, 6)),
    ),
    "attention, capped": lambda: (
        lambda q, k, v: (2 * torch.tanh(q @ k.mT / 2)).softmax(-1) @ v,
        *(r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8)),
    ),
    "attention with past": lambda: (
        lambda q, k, v, pk, pv: SDPA(q, torch.cat((pk, k), 2), torch.cat((pv, v), 2)),
        *(r(2, 3, 4, 8), r(2, 3, 4, 8), r(2, 3, 4, 8), r(2, 3, 5, 8), r(2, 3, 5, 8)),
    ),
    "rotary": lambda: (
        lambda x, c, s: (rotary(x, c, s), rotary_by_pairs(x, c, s)),
        *(r(2, 3, 4, 8), r(4, 4), r(4, 4)),
    ),
    "windows of signals": lambda: (
        lambda x: x * torch.hann_window(8) + torch.hamming_window(8) * torch.blackman_window(8),
        r(8),
    ),
    "trapezoids": lambda: (
        lambda x: (torch.trapezoid(x), torch.cumulative_trapezoid(x, dx=0.1), x.diff(2)),
        r(3, 6),
    ),
    "statistics": lambda: (
        lambda x: (torch.cov(x), torch.corrcoef(x), x.quantile(0.3, 1), x.nanmean(0), x.std()),
        r(3, 6),
    ),
    "gradients of cells": lambda: (lambda x: torch.gradient(x), r(4, 5)),
}
