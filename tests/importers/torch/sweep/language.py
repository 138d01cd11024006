"""Language and sequence models in the forms of public ones, small, with random weights."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import math

import torch
from torch import nn

from tests.importers.torch.models import Block

F = nn.functional

WORDS, WIDTH, LENGTH = 17, 8, 7


def words(*shape):
    return torch.randint(WORDS, shape or (2, LENGTH))


def wide(x):
    """In float32 at least, as models compute what is delicate."""
    return x if x.dtype == torch.float64 else x.float()


def rotate(x, base=10000.0):
    """Rotary positions over the last dimension of (batch, heads, length, width)."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
    low, high = x[..., :half], x[..., half:]
    return torch.cat((-high, low), -1) * angles.sin().repeat(1, 2) + x * angles.cos().repeat(1, 2)


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        made = wide(x) * torch.rsqrt(wide(x).pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * made.type_as(x)


class Language(nn.Module):
    """Words looked up, blocks, and the scores of the next word by the same table."""

    def __init__(self, *blocks, norm=RMSNorm, scale=1.0, cap=None):
        super().__init__()
        self.words, self.blocks = nn.Embedding(WORDS, WIDTH), nn.Sequential(*blocks)
        self.norm, self.scale, self.cap = norm(WIDTH), scale, cap

    def forward(self, words):
        scores = self.norm(self.blocks(self.words(words) * self.scale)) @ self.words.weight.T
        return scores if self.cap is None else self.cap * torch.tanh(scores / self.cap)


class GemmaNorm(nn.Module):
    """Weights are kept as what they add to one."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width) / 9)

    def forward(self, x):
        made = wide(x) * torch.rsqrt(wide(x).square().mean(-1, keepdim=True) + 1e-6)
        return (made * (1.0 + wide(self.weight))).type_as(x)


class SlidingAttention(nn.Module):
    """Words see a window of those before; keys are shared by heads; scores may be capped."""

    def __init__(self, heads=4, shared=2, window=3, cap=None):
        super().__init__()
        size = WIDTH // heads
        self.heads, self.groups, self.window, self.cap = heads, heads // shared, window, cap
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.kv = nn.Linear(WIDTH, 2 * self.groups * size, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        k, v = (heads_of(t, self.groups) for t in self.kv(x).chunk(2, -1))
        q, k = rotate(heads_of(self.q(x), self.heads)), rotate(k)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if self.cap is not None:
            scores = self.cap * torch.tanh(scores / self.cap)
        at = torch.arange(x.shape[1])
        apart = at[:, None] - at[None, :]
        hidden = (apart < 0) | (apart >= self.window)
        weights = scores.masked_fill(hidden, torch.finfo(x.dtype).min).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class GatedBlock(nn.Module):
    """Attention and a gated network, with norms before and (in some models) after each."""

    def __init__(self, attention, gate=F.silu, norm=RMSNorm, after=nn.Identity):
        super().__init__()
        self.attention, self.gated = attention, gate
        self.norms = nn.ModuleList([norm(WIDTH), norm(WIDTH), after(WIDTH), after(WIDTH)])
        self.gate, self.up = (nn.Linear(WIDTH, 16, bias=False) for _ in range(2))
        self.down = nn.Linear(16, WIDTH, bias=False)

    def forward(self, x):
        x = x + self.norms[2](self.attention(self.norms[0](x)))
        y = self.norms[1](x)
        return x + self.norms[3](self.down(self.gated(self.gate(y)) * self.up(y)))


class Experts(nn.Module):
    """The best two of the experts for each word: each expert's words are masked, as is its gate."""

    def __init__(self, experts=4, best=2):
        super().__init__()
        self.best, self.gate = best, nn.Linear(WIDTH, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 12), nn.SiLU(), nn.Linear(12, WIDTH))
            for _ in range(experts)
        )

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(self.best, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        hot = F.one_hot(chosen, len(self.experts))
        made = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            share = (hot[..., number] * weights).sum(-1, keepdim=True)
            made = made + expert(x) * share
        return made


class MixtralBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.experts = SlidingAttention(), Experts()
        self.norm1, self.norm2 = RMSNorm(WIDTH), RMSNorm(WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.experts(self.norm2(x))


class NeoXBlock(nn.Module):
    """Attention and network side by side; only a part of each head is rotated."""

    def __init__(self, heads=2, rotated=2):
        super().__init__()
        self.heads, self.rotated = heads, rotated
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)

    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = qkv.chunk(3, -1)
        q, k = (
            torch.cat((rotate(t[..., : self.rotated]), t[..., self.rotated :]), -1) for t in (q, k)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).flatten(2))
        return x + y + self.down(F.gelu(self.up(self.norm2(x))))


class BloomBlock(nn.Module):
    """Scores have a slope of their own for each head, by how far words are apart."""

    def __init__(self, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1))

    def forward(self, x):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(self.norm(x)).chunk(3, -1))
        at = torch.arange(x.shape[1])
        bias = (at[None, :] - at[:, None]) * self.slopes[:, None, None]
        bias = bias.masked_fill(at[None, :] > at[:, None], -torch.inf)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(x.dtype))
        return x + self.out(y.transpose(1, 2).flatten(2))


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


def bucket(apart, buckets=8, furthest=20):
    """T5's buckets: one for each near place, logarithmic for far ones."""
    half = buckets // 2
    side, apart = (apart > 0).long() * half, apart.abs()
    near = half // 2
    far = near + (
        torch.log(apart.clamp(min=1).float() / near) / math.log(furthest / near) * (half - near)
    ).long().clamp(max=half - near - 1)
    return side + torch.where(apart < near, apart, far.clamp(max=half - 1))


class T5Attention(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads, self.norm = heads, RMSNorm(WIDTH)
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x, memory=None, bias=None):
        y = self.norm(x)
        memory = y if memory is None else memory
        q, k, v = (heads_of(t, self.heads) for t in (self.q(y), self.k(memory), self.v(memory)))
        scores = q @ k.mT if bias is None else q @ k.mT + bias
        weights = wide(scores).softmax(-1).type_as(scores)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))


class T5(nn.Module):
    """Encoder and decoder, biases of relative places, and the scores of words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.near, self.before = nn.Embedding(8, 2), nn.Embedding(8, 2)
        self.encoder, self.decoder, self.across = T5Attention(), T5Attention(), T5Attention()
        self.ups = nn.ModuleList(nn.Linear(WIDTH, 16, bias=False) for _ in range(2))
        self.downs = nn.ModuleList(nn.Linear(16, WIDTH, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(RMSNorm(WIDTH) for _ in range(4))

    def network(self, x, number):
        return x + self.downs[number](F.relu(self.ups[number](self.norms[number](x))))

    def forward(self, asked, said):
        at, place = torch.arange(asked.shape[1]), torch.arange(said.shape[1])
        bias = self.near(bucket(at[None, :] - at[:, None])).permute(2, 0, 1)
        x = self.norms[2](self.network(self.encoder(self.words(asked), bias=bias), 0))
        apart = place[None, :] - place[:, None]
        bias = self.before(bucket(-torch.clamp(apart, max=0))).permute(2, 0, 1)
        bias = bias.masked_fill(apart > 0, torch.finfo(bias.dtype).min)
        y = self.across(self.decoder(self.words(said), bias=bias), x)
        return self.norms[3](self.network(y, 1)) * WIDTH**-0.5 @ self.words.weight.T


class Whisper(nn.Module):
    """Two convolutions over sound, an encoder, and a decoder of words that attends to it."""

    def __init__(self, sounds=5):
        super().__init__()
        self.conv1 = nn.Conv1d(sounds, WIDTH, 3, padding=1)
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.encoder = Block(WIDTH, 2)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.decoder = nn.TransformerDecoderLayer(
            WIDTH, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, sound, words):
        x = F.gelu(self.conv2(F.gelu(self.conv1(sound)))).mT
        rates = torch.exp(-math.log(10000.0) / 3 * torch.arange(4, dtype=x.dtype))
        angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * rates
        x = x + torch.cat((angles.sin(), angles.cos()), 1)
        x = self.norm1(self.encoder(x))
        y = self.words(words) + self.places[: words.shape[1]]
        mask = torch.full((words.shape[1],) * 2, -torch.inf, dtype=y.dtype).triu(1)
        return self.norm2(self.decoder(y, x, mask)) @ self.words.weight.T


class Wav2Vec(nn.Module):
    """Convolutions over a waveform, normalized by groups, and places by a grouped convolution."""

    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv1d(1, WIDTH, 5, 3, bias=False), nn.GroupNorm(WIDTH, WIDTH), nn.GELU(),
            nn.Conv1d(WIDTH, WIDTH, 3, 2, bias=False), nn.GELU(),
        )  # fmt: skip
        self.norm, self.places = nn.LayerNorm(WIDTH), nn.utils.parametrizations.weight_norm(
            nn.Conv1d(WIDTH, WIDTH, 4, padding=2, groups=2), dim=2
        )  # fmt: skip
        self.block = Block(WIDTH, 2)

    def forward(self, x):
        x = (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True) + 1e-7)
        x = self.norm(self.convs(x[:, None]).mT)
        return self.block(x + F.gelu(self.places(x.mT)[..., :-1]).mT)


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


class Relative(nn.Module):
    """DeBERTa: scores of words with words, and of words with how far apart they are."""

    def __init__(self, heads=2, furthest=4):
        super().__init__()
        self.heads, self.furthest = heads, furthest
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.places = nn.Embedding(2 * furthest, WIDTH // heads)

    def forward(self, x):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        at = torch.arange(x.shape[1])
        apart = (at[:, None] - at[None, :]).clamp(-self.furthest, self.furthest - 1) + self.furthest
        by_place = (q @ self.places.weight.T).gather(-1, apart.expand(*q.shape[:2], -1, -1))
        weights = ((q @ k.mT + by_place) / math.sqrt(3 * q.shape[-1])).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)


class Bags(nn.Module):
    """Words as bags: sums, means and largest of what is looked up."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(
            nn.EmbeddingBag(WORDS, WIDTH, mode=mode) for mode in ("sum", "mean", "max")
        )
        self.out = nn.Linear(3 * WIDTH, 5)

    def forward(self, words):
        return self.out(torch.cat([bag(words) for bag in self.bags], 1))


def transformer():
    return nn.Transformer(WIDTH, 2, 1, 1, 16, 0.0, batch_first=True)


class WholeTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = transformer()

    def forward(self, x, y, hidden):
        mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1], dtype=y.dtype)
        return self.net(x, y, tgt_mask=mask, src_key_padding_mask=hidden)


class MultiHead(nn.Module):
    """Attention of PyTorch's, with weights, masks and keys of other widths."""

    def __init__(self):
        super().__init__()
        self.same = nn.MultiheadAttention(WIDTH, 2, batch_first=True, add_bias_kv=True)
        self.other = nn.MultiheadAttention(WIDTH, 2, kdim=5, vdim=6, batch_first=True)

    def forward(self, x, k, v, hidden):
        y, weights = self.same(x, x, x, key_padding_mask=hidden, average_attn_weights=False)
        return *self.other(y, k, v, need_weights=False)[:1], weights


def gemma():
    return GatedBlock(
        SlidingAttention(cap=5.0), lambda x: F.gelu(x, approximate="tanh"), GemmaNorm, GemmaNorm
    )


def hidden():
    return torch.arange(LENGTH) >= torch.tensor([[LENGTH], [4]])


def x(*shape):
    return torch.randn(shape or (2, LENGTH, WIDTH))


LANGUAGE = {
    "Mistral": lambda: (Language(GatedBlock(SlidingAttention())), words()),
    "Gemma 2": lambda: (Language(gemma(), norm=GemmaNorm, scale=WIDTH**0.5, cap=9.0), words()),
    "Mixtral": lambda: (Language(MixtralBlock()), words()),
    "GPT-NeoX": lambda: (Language(NeoXBlock(), norm=nn.LayerNorm), words()),
    "Bloom": lambda: (Language(BloomBlock(), norm=nn.LayerNorm), words()),
    "Mamba": lambda: (Language(SelectiveScan()), words()),
    "Mamba 2": lambda: (StateSpaceDual(), x(2, 8, WIDTH)),
    "RWKV": lambda: (Language(Rwkv(), norm=nn.LayerNorm), words()),
    "linear attention": lambda: (LinearAttention(), x()),
    "T5": lambda: (T5(), words(), words(2, 5)),
    "Whisper": lambda: (Whisper(), x(2, 5, 12), words(2, 4)),
    "Wav2Vec": lambda: (Wav2Vec(), x(2, 40)),
    "translation by GRU": lambda: (Translator(), words(2, 4), words(2, 3)),
    "translation by LSTM": lambda: (Translator(nn.LSTMCell), words(2, 4), words(2, 3)),
    "DeBERTa": lambda: (Relative(), x()),
    "bags of words": lambda: (Bags(), words()),
    "transformer": lambda: (WholeTransformer(), x(), x(2, 4, WIDTH), hidden()),
    "multi-head attention": lambda: (MultiHead(), x(), x(2, 6, 5), x(2, 6, 6), hidden()),
}
