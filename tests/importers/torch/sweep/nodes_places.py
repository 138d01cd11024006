"""Single nodes that move cells: slices, gathers, scatters, pads, resizes, and what counts them."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import torch
from torch import nn

from tests.importers.torch.sweep.nodes_cells import b, i, nonzero, r, u

F = nn.functional


def resized(*shape, **how):
    return lambda: (lambda x: F.interpolate(x, **how), r(*shape))


def scattered(fold, include=True):
    return lambda: (
        lambda x, at, src: x.scatter_reduce(1, at, src, fold, include_self=include),
        *(r(3, 5), i(5, 3, 4), r(3, 4)),
    )


def scatter_nd(fold):
    def run(x, at, rows):
        return x.clone().index_put((at[:, 0], at[:, 1]), rows, accumulate=fold)

    return lambda: (run, r(4, 4, 3), torch.tensor([[0, 1], [2, 3], [1, 0]]), r(3, 3))


def one_hot(at, depth, on=5.0, off=2.0, axis=-1):
    hot = torch.arange(depth) == (at % depth)[..., None]
    return torch.where(hot, on, off).movedim(-1, axis)


def compressed(x, keep):
    """Of a mask that is known when the graph is traced."""
    return x[:, [position for position, kept in enumerate(keep) if kept]]


def slid(x, start, sizes):
    return x.index_select(0, start + torch.arange(sizes))


def in_place(x, y):
    x = x.clone()
    x[1:3, ::2] = y
    x[:, -1] += 1
    x[x < 0] = 0.0
    return x


def cached(cache, keys, at):
    cache = cache.clone()
    cache[:, :, at] = keys
    return cache, cache.index_copy(2, at, keys)


def sampled(mode, padding, align):
    return lambda: (
        lambda x, at: F.grid_sample(x, at, mode, padding, align_corners=align),
        *(r(1, 2, 4, 5), 2.4 * u(1, 3, 4, 2) - 1.2),
    )


PLACES = {
    "concat": lambda: (
        lambda x, y: (torch.cat((x, y)), torch.cat((x, y), 1), torch.cat((x, y), -1)),
        *(r(2, 3, 4), r(2, 3, 4)),
    ),
    "concat of types": lambda: (lambda x, y: torch.cat((x, y), 1), r(2, 3), i(4, 2, 2)),
    "split": lambda: (
        lambda x: (*x.split(2), *x.split([2, 4], 0), *x.chunk(4), *x.tensor_split(4)),
        r(6, 3),
    ),
    "split to sequence": lambda: (lambda x: torch.stack(x.split(1, 1)), r(3, 6)),
    "unbind": lambda: (lambda x: torch.stack([y * k for k, y in enumerate(x.unbind(1))]), r(3, 4)),
    "slice": lambda: (
        lambda x: (x[0:3, 0:5], x[:, 1:], x[::2, 1:-1:2], x[-3:, -2:], x[:, 100:], x[..., 3]),
        r(6, 7, 4),
    ),
    "slice backwards": lambda: (lambda x: (x.flip(0)[1:], x.flip((0, 1)), x.fliplr()), r(6, 7)),
    "slice at a place": lambda: (lambda x, at: slid(x, at, 3), r(7, 2), torch.tensor(2)),
    "squeeze": lambda: (
        lambda x: (x.squeeze(), x.squeeze(0), x.squeeze((0, -1)), x.unsqueeze(-2)),
        r(1, 3, 1, 4, 1),
    ),
    "reshape": lambda: (
        lambda x: (x.reshape(4, 6), x.reshape(-1, 2), x.flatten(1), x.unflatten(2, (2, 2))),
        r(2, 3, 4),
    ),
    "transpose": lambda: (
        lambda x: (x.permute(2, 0, 1), x.mT, x.movedim(0, 2), x.transpose(0, 1).contiguous()),
        r(2, 3, 4),
    ),
    "tile": lambda: (
        lambda x: (x.tile(2, 1, 3), x.repeat(2, 2), x.repeat_interleave(3, 1)),
        r(2, 3),
    ),
    "repeated as counted": lambda: (
        lambda x, n: torch.repeat_interleave(x, n, 0, output_size=6),
        *(r(3, 2), torch.tensor([1, 2, 3])),
    ),
    "depth to space": lambda: (
        lambda x: (
            F.pixel_shuffle(x, 2),
            x.reshape(2, 2, 2, 2, 3, 4).permute(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 8),
        ),
        r(2, 8, 3, 4),
    ),
    "space to depth": lambda: (lambda x: F.pixel_unshuffle(x, 2), r(2, 3, 4, 6)),
    "gather": lambda: (
        lambda x, at: (x[at], x[:, at], x.index_select(1, at[0]), x.take(at)),
        *(r(5, 4, 3), i(4, 2, 3)),
    ),
    "gather from the end": lambda: (lambda x, at: x[at], r(5, 4), i(5, 3, low=-5)),
    "gather elements": lambda: (
        lambda x, at: (x.gather(0, at), x.gather(1, at), torch.take_along_dim(x, at, 0)),
        *(r(3, 4), i(3, 3, 4)),
    ),
    "gather nd": lambda: (
        lambda x, at: (x[at[:, 0], at[:, 1]], x[at[:, 0]], x[at[:, 0], at[:, 1], at[:, 0] % 3]),
        *(r(4, 4, 3), i(4, 5, 2)),
    ),
    "gather nd of batches": lambda: (
        lambda x, at: x[torch.arange(2)[:, None], at[..., 0], at[..., 1]],
        *(r(2, 4, 4, 3), i(4, 2, 5, 2)),
    ),
    "gather of integers": lambda: (lambda x, at: x[:, at], i(9, 3, 5, dtype=torch.int16), i(5, 2)),
    "advanced places": lambda: (
        lambda x, a, c: (x[a, :, c], x[:, a, c], x[None, a], x[a[:, None], c], x[..., a, 1:3]),
        *(r(4, 4, 4), i(4, 3), i(4, 3)),
    ),
    "scatter elements": lambda: (
        lambda x, at, src: (
            x.scatter(1, at, src),
            x.scatter(1, at, 2.0),
            x.scatter_add(1, at, src),
        ),
        *(r(3, 5), torch.tensor([[0, 2], [3, 1], [4, 0]]), r(3, 2)),
    ),
    "scatter of axis 0": lambda: (
        lambda x, at, src: x.scatter(0, at, src),
        *(r(5, 3), torch.tensor([[0, 2, 1], [3, 1, 4]]), r(2, 3)),
    ),
    **{
        f"scatter by {fold}, {'with' if include else 'without'} itself": scattered(fold, include)
        for fold in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    },
    "scatter nd": scatter_nd(fold=False),
    "scatter nd by add": scatter_nd(fold=True),
    "tensor scatter, a cache": lambda: (
        cached,
        *(r(2, 3, 8, 4), r(2, 3, 2, 4), torch.tensor([3, 5])),
    ),
    "index add": lambda: (
        lambda x, at, y: (
            x.index_add(0, at, y),
            x.index_add(0, at, y, alpha=0.5),
            x.index_fill(0, at, 3.0),
            x.index_reduce(0, at, y, "amax"),
        ),
        *(r(5, 3), torch.tensor([0, 4, 0, 2]), r(4, 3)),
    ),
    "written in place": lambda: (in_place, r(4, 5), r(2, 3)),
    "masked": lambda: (
        lambda x, m, y: (
            x.masked_fill(m, -1.0),
            x.masked_scatter(m, y),
            torch.where(m, x, y),
            (x * m).sum(),
        ),
        *(r(3, 4), b(3, 4), r(3, 4)),
    ),
    "put": lambda: (
        lambda x, at, y: (x.put(at, y), x.put(at, y, accumulate=True)),
        *(r(3, 4), torch.tensor([0, 5, 9]), r(3)),
    ),
    "one hot": lambda: (
        lambda at: (one_hot(at, 6), one_hot(at, 6, axis=1), F.one_hot(at.abs() % 6, 6)),
        i(6, 3, 4, low=-6),
    ),
    "eye like": lambda: (lambda x: (torch.eye(3, 5) + x, x + torch.ones(3, 5).tril(1)), r(3, 5)),
    "constant of shape": lambda: (
        lambda x: (torch.full((3, 4), 2) + x, torch.zeros_like(x), torch.full_like(x, 0.5)),
        r(3, 4),
    ),
    "range": lambda: (
        lambda x: (torch.arange(10, 4, -2) + x, torch.arange(1.0, 5.0, 1.5) + x, x.numel()),
        r(3),
    ),
    "linspace": lambda: (
        lambda x: x * torch.linspace(-1, 1, 7, dtype=x.dtype) + torch.logspace(0, 1, 7),
        r(7),
    ),
    "trilu": lambda: (
        lambda x: (x.tril(), x.tril(-1), x.tril(6), x.triu(), x.triu(2), x.triu(-3), x.tril(-9)),
        r(2, 4, 5),
    ),
    "trilu of integers": lambda: (lambda x: (x.tril(1), x.triu(-1)), i(9, 3, 4, 5)),
    "diagonals": lambda: (
        lambda x: (x.diagonal(), x.diagonal(1, 0, 1), torch.diag_embed(x[0], 1), x[0].diag(-1)),
        r(4, 4, 4),
    ),
    "pad": lambda: (
        lambda x: (
            F.pad(x, (1, 2)),
            F.pad(x, (0, 0, 2, 1), value=1.5),
            F.pad(x, (1, 2, 2, 1), "reflect"),
            F.pad(x, (1, 2, 2, 1), "replicate"),
            F.pad(x, (1, 2, 2, 1), "circular"),
            F.pad(x, (-1, 0, 1, -2)),
        ),
        r(2, 3, 4, 5),
    ),
    "pad of one and three dimensions": lambda: (
        lambda x, y: (
            F.pad(x, (2, 1), "reflect"),
            F.pad(x, (2, 1), "replicate"),
            F.pad(y, (1, 1, 2, 0, 0, 1), "replicate"),
            F.pad(y, (1, 1, 2, 0, 0, 1), "reflect"),
            F.pad(y, (1, 1, 2, 0, 0, 1), "circular"),
        ),
        *(r(2, 3, 5), r(1, 2, 3, 4, 5)),
    ),
    "pad of integers": lambda: (lambda x: F.pad(x, (1, 2, 1, 0), value=7), i(9, 3, 4)),
    "resize up, nearest": resized(1, 2, 3, 4, scale_factor=2),
    "resize nearest, uneven": resized(1, 2, 3, 4, size=(7, 5)),
    "resize nearest, exact": resized(1, 2, 3, 4, size=(7, 6), mode="nearest-exact"),
    "resize down, nearest": resized(1, 2, 7, 8, scale_factor=0.6, recompute_scale_factor=True),
    "resize by a factor that is kept": resized(1, 2, 7, 8, scale_factor=(0.6, 1.7)),
    "resize bilinear": resized(1, 2, 3, 4, size=(7, 6), mode="bilinear"),
    "resize bilinear, corners": resized(
        1, 2, 3, 4, size=(7, 6), mode="bilinear", align_corners=True
    ),
    "resize bilinear by factor": resized(1, 2, 5, 4, scale_factor=(1.3, 0.7), mode="bilinear"),
    "resize bilinear, antialias": resized(1, 2, 9, 8, size=(4, 5), mode="bilinear", antialias=True),
    "resize bicubic": resized(1, 2, 5, 4, size=(8, 9), mode="bicubic"),
    "resize bicubic, corners": resized(1, 2, 5, 4, size=(8, 9), mode="bicubic", align_corners=True),
    "resize bicubic down": resized(1, 2, 8, 8, scale_factor=0.8, mode="bicubic"),
    "resize bicubic, antialias": resized(1, 2, 9, 8, size=(4, 5), mode="bicubic", antialias=True),
    "resize linear": resized(1, 2, 5, size=8, mode="linear"),
    "resize trilinear": resized(1, 2, 3, 4, 2, size=(5, 3, 4), mode="trilinear"),
    "resize by area": resized(1, 2, 7, 8, size=(3, 4), mode="area"),
    "upsample": lambda: (nn.UpsamplingBilinear2d(scale_factor=2), r(1, 2, 3, 4)),
    **{
        f"grid sample, {mode}, {padding}{', corners' if align else ''}": sampled(
            mode, padding, align
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for align in (True, False)
    },
    "grid sample where cells lie": lambda: (
        lambda x, at: tuple(
            F.grid_sample(x, at, padding_mode=padding, align_corners=True)
            for padding in ("zeros", "border", "reflection")
        ),
        r(1, 2, 3, 5),
        F.affine_grid(torch.eye(2, 3)[None], [1, 2, 3, 5], align_corners=True),
    ),
    "grid sample of volumes": lambda: (
        lambda x, at: (
            F.grid_sample(x, at, align_corners=True),
            F.grid_sample(x, at, "nearest", "border", align_corners=False),
        ),
        *(r(1, 2, 3, 4, 5), 2.4 * u(1, 2, 3, 4, 3) - 1.2),
    ),
    "affine grid": lambda: (
        lambda x, y: (
            F.affine_grid(x, [2, 3, 4, 5], align_corners=True),
            F.affine_grid(x, [2, 3, 4, 5], align_corners=False),
            F.affine_grid(y, [2, 3, 2, 4, 5], align_corners=False),
        ),
        *(r(2, 2, 3), r(2, 3, 4)),
    ),
    "crop and pad": lambda: (lambda x: F.pad(x[:, :, 1:4, 2:], (1, 1, 0, 2)), r(1, 2, 5, 6)),
    "col2im": lambda: (
        lambda x: (
            F.fold(x, (5, 6), (2, 3), 1, 0, 1),
            F.fold(F.unfold(x[:, :4, :].reshape(1, 2, 4, 8), 2, 1, 1, 2), (4, 8), 2, 1, 1, 2),
        ),
        r(1, 12, 16),
    ),
    "sorted": lambda: (
        lambda x: (*x.sort(1), *x.sort(0, descending=True), x.argsort(2), *x.msort().unbind()),
        r(3, 4, 5),
    ),
    "sorted with equals": lambda: (
        lambda x: (
            *torch.sort(x, dim=1, stable=True),
            *torch.sort(x, dim=1, descending=True, stable=True),
        ),
        i(3, 4, 9),
    ),
    "top k": lambda: (
        lambda x: (*x.topk(3), *x.topk(2, 0), *x.topk(3, 1, largest=False), *x.kthvalue(2, 1)),
        r(4, 5, 6),
    ),
    "top k of integers": lambda: (lambda x: x.topk(3)[0], i(99, 4, 9)),
    "searched": lambda: (
        lambda x, at: (torch.searchsorted(x, at), torch.bucketize(at, x, right=True)),
        *(r(7).sort()[0], r(3, 4)),
    ),
    "counted": lambda: (
        lambda x: (x.bincount(minlength=9)[:9], torch.histc(x.float(), 5, 0, 8)),
        i(8, 20),
    ),
    "kept places": lambda: (lambda x: compressed(x, (True, False, True, True)), r(3, 4)),
    "reversed sequences": lambda: (
        lambda x, n: x.gather(
            0,
            torch.where(
                torch.arange(4)[:, None] < n,
                n - 1 - torch.arange(4)[:, None],
                torch.arange(4)[:, None],
            ),
        ),
        *(r(4, 3), torch.tensor([4, 1, 2])),
    ),
    "rolled": lambda: (
        lambda x: (x.roll(1), x.roll((1, -2), (0, 1)), x.rot90(), x.rot90(2, (1, 2))),
        r(3, 4, 5),
    ),
    "meshes": lambda: (
        lambda x, y: (*torch.meshgrid(x, y, indexing="ij"), torch.cartesian_prod(x, y)),
        *(r(3), r(4)),
    ),
    "stacks": lambda: (
        lambda x, y: (torch.stack((x, y), 1), torch.hstack((x, y)), torch.dstack((x, y))),
        *(r(3, 4), r(3, 4)),
    ),
    "windows of steps": lambda: (lambda x: x.unfold(1, 3, 2).mean(-1), r(2, 9, 3)),
    "embedding": lambda: (
        lambda at, x: (F.embedding(at, x), F.embedding(at, x, padding_idx=1)),
        *(i(7, 2, 3), r(7, 4)),
    ),
    "embedding bag": lambda: (
        lambda at, x: (
            F.embedding_bag(at, x, mode="sum"),
            F.embedding_bag(at, x, mode="mean"),
            F.embedding_bag(at, x, mode="max"),
        ),
        *(i(7, 3, 4), r(7, 5)),
    ),
    "embedding bag with offsets": lambda: (
        lambda at, x, off, w: (
            F.embedding_bag(at, x, off, mode="sum", per_sample_weights=w),
            F.embedding_bag(at, x, off, mode="mean"),
            F.embedding_bag(at, x, off, mode="max"),
        ),
        *(i(7, 9), r(7, 5), torch.tensor([0, 2, 2, 5]), nonzero(9)),
    ),
}
