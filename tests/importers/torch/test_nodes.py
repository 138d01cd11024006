"""Programs as tests of single nodes of other frameworks ask for: equal to PyTorch, none left to it.

Places as computed, writes with folds, sizes changed by every rule, windows, integers and bits.
"""

# pyright: basic
# PyTorch has no types to speak of.

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.importers.torch.compare import check_forward, compiled  # noqa: E402

F = nn.functional

X, SQUARE = (3, 4, 5), (1, 2, 6, 8)


def r(*shape):
    return torch.randn(shape)


def i(high, *shape):
    return torch.randint(0, high, shape)


def reversed_sequence(x, lengths):
    step = torch.arange(len(x))[:, None]
    at = torch.where(step < lengths, lengths - 1 - step, step)
    return x.gather(0, at[..., None].expand_as(x))


def resized(**how):
    return lambda x: F.interpolate(x, **how)


def padded(mode):
    return lambda x: F.pad(x, (2, 1, 1, 2), mode=mode)


def scattered(fold):
    return lambda x, at, src: x.scatter_reduce(1, at, src, fold)


def written(x, at, rows):
    copy = x.clone()
    copy[at] = rows
    return copy


DIFFERENTIABLE = {
    "gather_nd": lambda: (lambda x, at: x[at[:, 0], at[:, 1]], r(4, 4, 3), i(4, 6, 2)),
    "gather_nd_batched": lambda: (
        lambda x, at: x[torch.arange(2)[:, None], at],
        r(2, 5),
        i(5, 2, 4),
    ),
    "gather_from_the_end": lambda: (lambda x, at: x[:, at], r(3, 4), torch.tensor([-1, -4, 2])),
    "scatter_add": lambda: (scattered("sum"), r(3, 6), i(6, 3, 5), r(3, 5)),
    "scatter_mean": lambda: (scattered("mean"), r(3, 6), i(6, 3, 5), r(3, 5)),
    "scatter_max": lambda: (scattered("amax"), r(3, 6), i(6, 3, 5), r(3, 5)),
    "scatter_nd": lambda: (written, r(6, 3), torch.tensor([4, 0, 2]), r(3, 3)),
    "scatter_nd_add": lambda: (
        lambda x, at, rows: x.index_put((at[:, 0], at[:, 1]), rows, accumulate=True),
        *(r(4, 4, 3), i(4, 6, 2), r(6, 3)),
    ),
    "resize_nearest": lambda: (resized(scale_factor=(2, 3)), r(1, 2, 3, 4)),
    "resize_nearest_down": lambda: (resized(size=(3, 5)), r(*SQUARE)),
    "resize_nearest_exact": lambda: (resized(size=(5, 7), mode="nearest-exact"), r(1, 2, 3, 4)),
    "resize_linear": lambda: (resized(size=9, mode="linear"), r(1, 2, 5)),
    "resize_corners": lambda: (
        resized(size=(5, 7), mode="bilinear", align_corners=True),
        r(1, 2, 3, 4),
    ),
    "resize_cubic": lambda: (resized(size=(5, 7), mode="bicubic"), r(1, 1, 4, 4)),
    "resize_area": lambda: (resized(size=(3, 4), mode="area"), r(1, 2, 6, 7)),
    **{
        f"pad_{m}": lambda m=m: (padded(m), r(1, 2, 5, 4))
        for m in ("reflect", "replicate", "circular")
    },
    "pad_negative": lambda: (lambda x: F.pad(x, (-1, 2, 1, -1)), r(2, 5, 4)),
    "einsum_diagonal": lambda: (lambda x: torch.einsum("...ii->...i", x), r(3, 4, 4)),
    "einsum_inner": lambda: (lambda a, b: torch.einsum("i,i", a, b), r(4), r(4)),
    "einsum_of_three": lambda: (
        lambda a, w, b: torch.einsum("bi,oij,bj->bo", a, w, b),
        *(r(3, 4), r(5, 4, 6), r(3, 6)),
    ),
    "normalized_axes": lambda: (lambda x, w: F.layer_norm(x, (4, 5), w), r(*X), r(4, 5)),
    "local_response": lambda: (lambda x: F.local_response_norm(x, 3), r(2, 5, 4, 4)),
    "rolled": lambda: (lambda x: x.roll((1, -2), (0, 2)), r(*X)),
    "space_to_depth": lambda: (lambda x: F.pixel_unshuffle(x, 2), r(*SQUARE)),
    "channels_shuffled": lambda: (lambda x: F.channel_shuffle(x, 2), r(1, 8, 2, 3)),
    "reversed_sequence": lambda: (reversed_sequence, r(5, 3, 2), torch.tensor([5, 2, 3])),
    "folded_windows": lambda: (
        lambda x: F.fold(F.unfold(x, 3, 1, 1, 2), (6, 8), 3, 1, 1, 2),
        r(*SQUARE),
    ),
    "unpooled": lambda: (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        r(*SQUARE),
    ),
    "pooled_by_norm": lambda: (lambda x: F.lp_pool2d(x, 2, 3, 2), r(1, 2, 7, 7)),
    "affine_grid": lambda: (
        lambda x: F.affine_grid(x, (2, 3, 4, 5), align_corners=False),
        r(2, 2, 3),
    ),
    "quantile": lambda: (lambda x: x.quantile(torch.tensor([0.25, 0.5, 0.9]), dim=1), r(3, 7)),
    "median": lambda: (lambda x: (*x.median(1), x.median()), r(3, 7)),
    "running": lambda: (lambda x: (*x.cummax(1), x.logcumsumexp(1), x.diff(dim=1)), r(4, 5)),
    "losses": lambda: (
        lambda x, y: F.margin_ranking_loss(x, y, torch.ones(4)) + F.huber_loss(x, y, delta=0.3),
        *(r(4), r(4)),
    ),
    "windows_where_they_lie": lambda: (lambda x: x.as_strided((5, 3), (2, 1), 1), r(12)),
    "labels_until_none": lambda: (
        lambda x, y: F.multilabel_margin_loss(x, y, reduction="none"),
        *(r(2, 4), torch.tensor([[3, 0, -1, 1], [1, 2, 3, 0]])),
    ),
    "smoothed_classes": lambda: (
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=1),
        *(r(6, 3), i(3, 6)),
    ),
    "classes_of_pixels": lambda: (
        lambda x, y: F.nll_loss(F.log_softmax(x, 1), y, ignore_index=2),
        *(r(2, 3, 4, 5), i(3, 2, 4, 5)),
    ),
    "ctc": lambda: (
        lambda x, y: F.ctc_loss(x.log_softmax(-1), y, (7, 7), (3, 2)),
        r(7, 2, 5),
        1 + i(4, 2, 3),
    ),
    "rows_by_frequency": lambda: (
        lambda at, x: F.embedding(at, x, scale_grad_by_freq=True),
        *(i(9, 3, 4), r(9, 5)),
    ),
    "weight_norm": lambda: (
        lambda x, v, g: F.linear(x, torch._weight_norm(v, g, 0)),
        *(r(2, 4), r(3, 4), r(3, 1)),
    ),
    "quantized": lambda: (
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
        r(4, 5),
    ),
    "windows": lambda: (lambda x: x * torch.hamming_window(8) + torch.blackman_window(8), r(8)),
    "spectral_norm": lambda: (
        nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)).eval(),
        r(2, 4),
    ),
    "transposed_dilated": lambda: (
        lambda x, w: F.conv_transpose2d(x, w, None, (2, 3), (1, 2), 0, 2, (2, 1)),
        *(r(2, 4, 5, 6), r(4, 3, 3, 5)),
    ),
    "transposed_grouped_3d": lambda: (
        lambda x, w: F.conv_transpose3d(x, w, None, (2, 1, 2), (1, 0, 1), (1, 0, 0), 2),
        *(r(1, 4, 3, 4, 3), r(4, 2, 3, 2, 3)),
    ),
    "irregular_3d": lambda: (
        lambda x, w: F.conv3d(x, w, None, (1, 2, 1), (1, 2, 0), (1, 1, 2)),
        *(r(1, 3, 5, 9, 7), r(4, 3, 3, 5, 2)),
    ),
    "best_of_a_row": lambda: (lambda x: x.topk(3, 1), r(3, 7, 2)),
}

EXACT = {
    "one_hot": lambda: (lambda x: F.one_hot(x, 7), i(7, 3, 4)),
    "divisions": lambda: (
        lambda a, b: (a % b, torch.fmod(a, b), a // b, torch.div(a, b, rounding_mode="trunc")),
        *(torch.tensor([-7, 7, -8, 8, 5]), torch.tensor([3, -3, -3, 3, 2])),
    ),
    "divisions_of_floats": lambda: (lambda a, b: (a % b, torch.fmod(a, b)), r(20) * 5, r(20)),
    "triangles": lambda: (lambda x: (x.tril(-1), x.triu(1)), i(9, 2, 4, 5)),
    "bits": lambda: (lambda x, s: (x << s, x >> s, x & s, x | s, x ^ s, ~x), i(99, 6), i(4, 6)),
    "bits_of_bytes": lambda: (lambda x, s: (x << s, x >> s), *(i(9, 6).byte() for _ in range(2))),
    "words": lambda: (lambda x: x.to(torch.uint16).to(torch.int64), i(99, 6) - 50),
    "not_finite": lambda: (
        lambda x: (x.isinf(), x.isnan(), x.isposinf(), x.isneginf(), x.isfinite()),
        torch.tensor([1, torch.inf, -torch.inf, torch.nan]),
    ),
    "rounded": lambda: (
        lambda x: (x.round(), x.floor(), x.ceil(), x.trunc(), x.sign(), x.round(decimals=1)),
        torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.14159]),
    ),
    "casts": lambda: (
        lambda x: (x.to(torch.int8), x.bool(), x.double().half(), x.to(torch.uint8)),
        torch.tensor([0.0, 1.7, 2.5, 100.0]),
    ),
    "ranges": lambda: (
        lambda x: (torch.arange(2, 9, 2) + x, torch.eye(3, 4), torch.tril_indices(3, 3)),
        i(3, 1),
    ),
    "cells_where_they_lie": lambda: (lambda x: x.t().as_strided((3, 4), (4, 1)) + 1, r(3, 4)),
    "matrices_of_integers": lambda: (torch.matmul, i(9, 3, 4), i(9, 4, 5)),
    "medians": lambda: (
        lambda x: (x.median(0).values.isnan(), *x[:, :1].median(0)),
        torch.tensor([[1.0, torch.nan], [3, 2], [2, 4], [9, 9]]),
    ),
}

SOME = ("gather_nd", "resize_linear", "median", "one_hot", "rows_by_frequency")


def rows(table):
    return [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in table]


@pytest.mark.parametrize("name", rows(EXACT))
def test_exactly(name: str) -> None:
    torch.manual_seed(0)
    model, *inputs = EXACT[name]()
    report = check_forward(model, *inputs, rtol=0, atol=0)
    assert report.native_share == 1, report


@pytest.mark.parametrize("name", rows(DIFFERENTIABLE))
def test_with_gradients(name: str) -> None:
    torch.manual_seed(0)
    model, *inputs = DIFFERENTIABLE[name]()
    assert check_forward(model, *inputs, rtol=1e-4).native_share == 1
    slopes = []
    for run in (model, compiled(model, strict=True)):
        given = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        made = run(*given)
        outs = [x for x in (made if isinstance(made, tuple) else (made,)) if x.requires_grad]
        wanted = [x for x in given if x.requires_grad]
        slopes.append(torch.autograd.grad([x.sin().sum() for x in outs], wanted))
    torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-3, atol=1e-5)
