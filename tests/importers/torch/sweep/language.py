"""Language models that attend, in the forms of public ones, small, with random weights."""

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
    "T5": lambda: (T5(), words(), words(2, 5)),
    "Whisper": lambda: (Whisper(), x(2, 5, 12), words(2, 4)),
    "Wav2Vec": lambda: (Wav2Vec(), x(2, 40)),
    "DeBERTa": lambda: (Relative(), x()),
    "bags of words": lambda: (Bags(), words()),
    "transformer": lambda: (WholeTransformer(), x(), x(2, 4, WIDTH), hidden()),
    "multi-head attention": lambda: (MultiHead(), x(), x(2, 6, 5), x(2, 6, 6), hidden()),
}
