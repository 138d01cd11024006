"""Sequence models with states that run along, in the forms of public ones, small."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import torch
from torch import nn

from tests.importers.torch.sweep.language import WIDTH, WORDS, Language, words, x

F = nn.functional


class SelectiveScan(nn.Module):
    """Mamba: a short causal convolution, then a recurrence whose rates depend on the input."""

    def __init__(self, state=3, kernel=3):
        super().__init__()
        self.state, self.into = state, nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.conv = nn.Conv1d(WIDTH, WIDTH, kernel, padding=kernel - 1, groups=WIDTH)
        self.rates = nn.Linear(WIDTH, 1 + 2 * state, bias=False)
        self.step = nn.Linear(1, WIDTH)
        self.logs = nn.Parameter(torch.arange(1.0, state + 1).log().repeat(WIDTH, 1))
        self.skip, self.out = nn.Parameter(torch.ones(WIDTH)), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        y, gate = self.into(x).chunk(2, -1)
        y = F.silu(self.conv(y.mT)[..., : y.shape[1]].mT)
        step, into, out = self.rates(y).split((1, self.state, self.state), -1)
        step = F.softplus(self.step(step))
        kept = torch.exp(step[..., None] * -torch.exp(self.logs))
        given = step[..., None] * into[:, :, None, :] * y[..., None]
        state, made = torch.zeros_like(given[:, 0]), []
        for at in range(y.shape[1]):
            state = kept[:, at] * state + given[:, at]
            made.append((state * out[:, at, None, :]).sum(-1))
        return x + self.out((torch.stack(made, 1) + y * self.skip) * F.silu(gate))


class StateSpaceDual(nn.Module):
    """Mamba 2 in chunks: sums of segments inside them, a recurrence between them."""

    def __init__(self, heads=2, state=3, chunk=4):
        super().__init__()
        self.heads, self.chunk = heads, chunk
        self.rate = nn.Linear(WIDTH, heads)
        self.into, self.out = nn.Linear(WIDTH, heads * state), nn.Linear(WIDTH, heads * state)

    @staticmethod
    def segments(x):
        length = x.shape[-1]
        sums = x.cumsum(-1)
        apart = sums[..., :, None] - sums[..., None, :]
        inside = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        return apart.masked_fill(~inside, -torch.inf)

    def forward(self, x):
        cut = lambda t: t.unflatten(1, (-1, self.chunk)).unflatten(-1, (self.heads, -1))  # noqa: E731
        a = -F.softplus(self.rate(x)).unflatten(1, (-1, self.chunk)).permute(0, 3, 1, 2)
        v, b, c = cut(x), cut(self.into(x)), cut(self.out(x))
        sums = a.cumsum(-1)
        inside = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, self.segments(a).exp(), v)
        decay = torch.exp(sums[..., -1:] - sums)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, decay, v)
        states = torch.cat((torch.zeros_like(states[:, :1]), states), 1)
        between = self.segments(F.pad(sums[..., -1], (1, 0))).exp()
        states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
        across = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, sums.exp())
        return (inside + across).flatten(1, 2).flatten(2)


class Rwkv(nn.Module):
    """Time mixing: a running softmax over what came before, and shifted inputs."""

    def __init__(self):
        super().__init__()
        self.mix = nn.ParameterList(torch.rand(WIDTH) for _ in range(5))
        self.decay, self.first = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(WIDTH))
        self.k, self.v, self.r, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def running(self, k, v):
        above = below = torch.zeros_like(k[:, 0])
        most = torch.full_like(above, -1e38 if k.dtype == torch.float64 else -1e30)
        decay, made = -self.decay.exp(), []
        for at in range(k.shape[1]):
            now = torch.maximum(most, self.first + k[:, at])
            old, new = torch.exp(most - now), torch.exp(self.first + k[:, at] - now)
            made.append((old * above + new * v[:, at]) / (old * below + new))
            next_most = torch.maximum(most + decay, k[:, at])
            old, new = torch.exp(most + decay - next_most), torch.exp(k[:, at] - next_most)
            above, below, most = old * above + new * v[:, at], old * below + new, next_most
        return torch.stack(made, 1)

    def forward(self, x):
        y = self.norm1(x)
        before = F.pad(y, (0, 0, 1, -1))
        k, v, r = (
            layer(y * mix + before * (1 - mix))
            for layer, mix in zip((self.k, self.v, self.r), self.mix, strict=False)
        )
        x = x + self.out(torch.sigmoid(r) * self.running(k, v))
        y = self.norm2(x)
        before = F.pad(y, (0, 0, 1, -1))
        k = torch.relu(self.up(y * self.mix[3] + before * (1 - self.mix[3]))).square()
        return x + torch.sigmoid(self.down(k))


class LinearAttention(nn.Module):
    """Attention without softmax: sums of outer products of what came before."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        sums = (k[..., None] * v[..., None, :]).cumsum(1)
        return torch.einsum("bld,blde->ble", q, sums) / (q * k.cumsum(1)).sum(-1, keepdim=True)


class Translator(nn.Module):
    """A recurrent encoder and decoder, cell by cell, with attention between them."""

    def __init__(self, cell=nn.GRUCell):
        super().__init__()
        self.words, self.pairs = nn.Embedding(WORDS, WIDTH), cell is nn.LSTMCell
        self.encoder, self.decoder = cell(WIDTH, WIDTH), cell(2 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WORDS)

    def hidden(self, state):
        return state[0] if self.pairs else state

    def forward(self, asked, said):
        x, y = self.words(asked), self.words(said)
        state = x.new_zeros(len(x), WIDTH)
        state = (state, state) if self.pairs else state
        seen = []
        for at in range(x.shape[1]):
            state = self.encoder(x[:, at], state)
            seen.append(self.hidden(state))
        seen, made = torch.stack(seen, 1), []
        for at in range(y.shape[1]):
            weights = (seen @ self.hidden(state)[..., None]).softmax(1)
            state = self.decoder(torch.cat((y[:, at], (weights * seen).sum(1)), 1), state)
            made.append(self.out(self.hidden(state)))
        return torch.stack(made, 1)


RECURRENT = {
    "Mamba": lambda: (Language(SelectiveScan()), words()),
    "Mamba 2": lambda: (StateSpaceDual(), x(2, 8, WIDTH)),
    "RWKV": lambda: (Language(Rwkv(), norm=nn.LayerNorm), words()),
    "linear attention": lambda: (LinearAttention(), x()),
    "translation by GRU": lambda: (Translator(), words(2, 4), words(2, 3)),
    "translation by LSTM": lambda: (Translator(nn.LSTMCell), words(2, 4), words(2, 3)),
}
