"""Nodes of ONNX with a state or a loop, in PyTorch: recurrent layers, suppression of boxes.

Layers take what ONNX's take: all weights of a direction in one tensor, a bias for the input and one
for the state, an initial state, lengths of the sequences. They are loops over cells, which PyTorch
unrolls.
"""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import torch
from torch import nn

F = nn.functional
r = torch.randn


def _along(x, state, step, *, backward=False, lengths=None):
    """The states after each row of `x` (time, batch, cells), and the last ones."""
    made = [None] * x.shape[0]
    for at in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
        new = step(x[at], state)
        if lengths is not None:
            on = (at < lengths)[:, None]
            new = tuple(torch.where(on, one, old) for one, old in zip(new, state, strict=True))
        made[at], state = new[0], new
    return torch.stack(made), state


def rnn(x, w, r, b, h, lengths):
    wb, rb = b.chunk(2)

    def step(row, state):
        return (torch.tanh(row @ w.mT + state[0] @ r.mT + wb + rb),)

    y, (last,) = _along(x, (h,), step, lengths=lengths)
    on = torch.arange(x.shape[0])[:, None] < lengths
    return torch.where(on[..., None], y, 0), last


def lstm(x, w, r, b, h, c, p):
    wb, rb = b.chunk(2)
    pi, po, pf = p.chunk(3)  # peepholes

    def step(row, state):
        h, c = state
        i, o, f, g = (row @ w.mT + h @ r.mT + wb + rb).chunk(4, -1)
        c = torch.sigmoid(f + pf * c) * c + torch.sigmoid(i + pi * c) * torch.tanh(g)
        return torch.sigmoid(o + po * c) * torch.tanh(c), c

    return _along(x, (h, c), step)


def gru(x, w, r, b, h, linear_before_reset):
    wb, rb = b.chunk(2)
    (wz, wr, wh), (rz, rr, rh) = w.chunk(3), r.chunk(3)
    (bz, br, bh), (cz, cr, ch) = wb.chunk(3), rb.chunk(3)

    def step(row, state):
        (h,) = state
        z = torch.sigmoid(row @ wz.mT + h @ rz.mT + bz + cz)
        reset = torch.sigmoid(row @ wr.mT + h @ rr.mT + br + cr)
        past = reset * (h @ rh.mT + ch) if linear_before_reset else (reset * h) @ rh.mT + ch
        return ((1 - z) * torch.tanh(row @ wh.mT + past + bh) + z * h,)

    return _along(x, (h,), step)


def both_ways(x, w, r, b, h):
    def step(at):
        return lambda row, state: (F.relu(row @ w[at].mT + state[0] @ r[at].mT + b[at]),)

    made = [_along(x, (h[at],), step(at), backward=at == 1) for at in (0, 1)]
    return torch.stack([y for y, _ in made], 1), torch.stack([last for _, (last,) in made])


def suppressed(boxes, scores, most, overlap, least):
    """For each batch and class the places of boxes by score, -1 where there are no more."""
    low, high = boxes[..., :2], boxes[..., 2:]
    low, high = torch.minimum(low, high), torch.maximum(low, high)
    area = (high - low).prod(-1)
    inner = torch.minimum(high[:, :, None], high[:, None]) - torch.maximum(
        low[:, :, None], low[:, None]
    )
    shared = inner.clamp(min=0).prod(-1)
    near = shared / (area[:, :, None] + area[:, None] - shared) > overlap
    left = torch.where(scores > least, scores, -torch.inf)
    chosen = []
    for _ in range(most):
        best, at = left.max(-1)
        chosen.append(torch.where(best > -torch.inf, at, -1))
        out = near.gather(1, at[..., None].expand(-1, -1, near.shape[-1]))
        own = F.one_hot(at, left.shape[-1]).bool()
        left = left.masked_fill(out | own, -torch.inf)
    return torch.stack(chosen, -1)


def _boxes(*size):
    at = torch.rand(*size, 2)
    return torch.cat((at, at + torch.rand(*size, 2) / 2), -1)


STATES = {
    "RNN, lengths": lambda: (
        rnn, r(5, 3, 4), r(6, 4), r(6, 6), r(12), r(3, 6), torch.tensor([5, 2, 3]),
    ),
    "LSTM, peepholes": lambda: (
        lstm, r(5, 3, 4), r(24, 4), r(24, 6), r(48), r(3, 6), r(3, 6), r(18),
    ),
    "GRU": lambda: (gru, r(5, 3, 4), r(18, 4), r(18, 6), r(36), r(3, 6), False),
    "GRU, linear before reset": lambda: (
        gru, r(5, 3, 4), r(18, 4), r(18, 6), r(36), r(3, 6), True,
    ),
    "RNN, both ways": lambda: (
        both_ways, r(5, 3, 4), r(2, 6, 4), r(2, 6, 6), r(2, 6), r(2, 3, 6),
    ),
    "non-max suppression": lambda: (
        suppressed, _boxes(2, 9), torch.rand(2, 3, 9), 4, 0.3, 0.2,
    ),
    "non-max suppression, corners in any order": lambda: (
        suppressed, _boxes(1, 6)[..., [2, 1, 0, 3]], torch.rand(1, 2, 6), 6, 0.0, 0.5,
    ),
}  # fmt: skip
