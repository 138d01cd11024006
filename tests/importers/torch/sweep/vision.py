"""Models of images, points and rays in the forms that public ones have, small and random."""

# pyright: basic
# PyTorch has no types to speak of.

from __future__ import annotations

import math

import torch
from torch import nn

from tests.importers.torch.models import Block
from tests.importers.torch.sweep.chains import chain, residual

F = nn.functional


def unit(have, want, kernel=3, stride=1, groups=1, act=nn.ReLU):
    """A convolution, normalized, and what follows it."""
    return nn.Sequential(
        nn.Conv2d(have, want, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(want),
        act(),
    )


class Excitation(nn.Module):
    def __init__(self, width, gate=torch.sigmoid):
        super().__init__()
        self.down, self.up, self.gate = nn.Conv2d(width, 2, 1), nn.Conv2d(2, width, 1), gate

    def forward(self, x):
        return x * self.gate(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class ConvNextBlock(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.up = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 4 * width)
        self.down, self.scale = nn.Linear(4 * width, width), nn.Parameter(torch.ones(width) / 9)

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class Dense(nn.Module):
    """Every layer sees what all before it made."""

    def __init__(self, have=4, growth=3, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(have + growth * n), nn.ReLU(),
                nn.Conv2d(have + growth * n, growth, 3, padding=1, bias=False),
            )
            for n in range(layers)
        )  # fmt: skip

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat((x, layer(x)), 1)
        return x


class Inception(nn.Module):
    def __init__(self, have=4):
        super().__init__()
        self.branches = nn.ModuleList([
            unit(have, 2, 1), nn.Sequential(unit(have, 2, 1), unit(2, 3)),
            nn.Sequential(unit(have, 2, 1), unit(2, 2, 5)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(have, 2, 1)),
        ])  # fmt: skip

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class Shuffle(nn.Module):
    """Half of the channels pass; then they are shuffled."""

    def __init__(self, width=4):
        super().__init__()
        half = width // 2
        self.passed = nn.Sequential(
            unit(half, half, 1), unit(half, half, 3, groups=half, act=nn.Identity),
            unit(half, half, 1),
        )  # fmt: skip

    def forward(self, x):
        kept, x = x.chunk(2, 1)
        return (
            torch.cat((kept, self.passed(x)), 1).unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        )


class DownUp(nn.Module):
    """U-Net: two levels down and up, with what each level saw beside it."""

    def __init__(self, width=3):
        super().__init__()
        self.into, self.down = unit(1, width), unit(width, 2 * width)
        self.middle = unit(2 * width, 4 * width)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.out1, self.out2 = unit(4 * width, 2 * width), unit(2 * width, width)
        self.classes = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        first = self.into(x)
        second = self.down(F.max_pool2d(first, 2))
        x = self.middle(F.max_pool2d(second, 2))
        x = self.out1(torch.cat((self.up1(x), second), 1))
        return self.classes(self.out2(torch.cat((self.up2(x), first), 1))).softmax(1)


class Variational(nn.Module):
    """An autoencoder: noise is an input, so that runs can be compared."""

    def __init__(self):
        super().__init__()
        self.encoder = chain(nn.Conv2d(1, 3, 3, 2, 1), nn.SiLU(), nn.Flatten(), nn.Linear(48, 8))
        self.decoder = chain(
            nn.Linear(4, 48), nn.Unflatten(1, (3, 4, 4)), nn.SiLU(),
            nn.ConvTranspose2d(3, 1, 4, 2, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x, noise):
        mean, logs = self.encoder(x).chunk(2, 1)
        made = self.decoder(mean + noise * torch.exp(0.5 * logs))
        apart = -0.5 * torch.sum(1 + logs - mean.square() - logs.exp(), 1).mean()
        return made, F.binary_cross_entropy(made, torch.sigmoid(x)) + apart


class Denoised(nn.Module):
    """A step back of a diffusion model: schedules are tables, times are places in them."""

    def __init__(self, steps=10):
        super().__init__()
        self.net = chain(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU(),
                         nn.Conv2d(4, 1, 3, padding=1))  # fmt: skip
        self.time = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 1))
        rates = torch.linspace(1e-4, 0.02, steps)
        self.register_buffer("rates", rates)
        self.register_buffer("kept", torch.cumprod(1 - rates, 0))

    def forward(self, x, time, noise):
        rates = torch.exp(-math.log(10000.0) * torch.arange(4, dtype=x.dtype) / 4)
        angles = time[:, None].to(x.dtype) * rates
        shift = self.time(torch.cat((angles.sin(), angles.cos()), -1))
        found = self.net(x + shift[:, :, None, None])
        at = lambda table: table.gather(0, time)[:, None, None, None]  # noqa: E731
        rate, kept = at(self.rates), at(self.kept)
        mean = (x - rate / (1 - kept).sqrt() * found) / (1 - rate).sqrt()
        return mean + torch.where((time > 0)[:, None, None, None], rate.sqrt() * noise, 0.0)


class Radiance(nn.Module):
    """NeRF: places by their frequencies, a network with a skip, and a sum along each ray."""

    def __init__(self, width=8, frequencies=3):
        super().__init__()
        size = 3 + 6 * frequencies
        self.frequencies = frequencies
        self.first, self.second = nn.Linear(size, width), nn.Linear(width + size, width)
        self.density, self.color = nn.Linear(width, 1), nn.Linear(width + 3, 3)

    def forward(self, starts, ways, depths):
        places = starts[:, None] + ways[:, None] * depths[..., None]
        bands = [places]
        for power in range(self.frequencies):
            bands += [torch.sin(2.0**power * places), torch.cos(2.0**power * places)]
        encoded = torch.cat(bands, -1)
        hidden = F.relu(self.first(encoded))
        hidden = F.relu(self.second(torch.cat((hidden, encoded), -1)))
        ways = F.normalize(ways, dim=-1)[:, None].expand(places.shape)
        color = torch.sigmoid(self.color(torch.cat((hidden, ways), -1)))
        steps = torch.cat((depths.diff(dim=-1), torch.full_like(depths[:, :1], 1e10)), -1)
        stopped = 1 - torch.exp(-F.relu(self.density(hidden)[..., 0]) * steps)
        through = torch.cumprod(1 - stopped + 1e-10, -1)
        weights = stopped * torch.cat((torch.ones_like(through[:, :1]), through[:, :-1]), -1)
        return (weights[..., None] * color).sum(1), (weights * depths).sum(-1)


class PointNet(nn.Module):
    """Points turned by a matrix that is found from them; then the largest of each feature."""

    def __init__(self, width=8):
        super().__init__()
        self.turn = chain(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU(),
                          lambda x: x.amax(2), nn.Linear(width, 9))  # fmt: skip
        self.features = chain(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU())
        self.classes = nn.Linear(width, 4)

    def forward(self, x):
        turn = self.turn(x).view(-1, 3, 3) + torch.eye(3, dtype=x.dtype)
        x = (x.mT @ turn).mT
        return self.classes(torch.max(self.features(x), 2)[0]).log_softmax(1)


class Graph(nn.Module):
    """A network over a graph: sums over edges, normalized by degrees, and attention over them."""

    def __init__(self, have=4, width=6):
        super().__init__()
        self.first, self.second = nn.Linear(have, width), nn.Linear(width, width)
        self.scores = nn.Linear(2 * width, 1)

    def forward(self, x, edges):
        source, target = edges
        degree = torch.zeros_like(x[:, 0]).index_add(0, target, torch.ones_like(x[source, 0])) + 1
        y = self.first(x)
        share = (degree[source] * degree[target]).rsqrt()[:, None]
        y = F.relu(
            y / degree[:, None] + torch.zeros_like(y).index_add(0, target, y[source] * share)
        )
        y = self.second(y)
        scores = F.leaky_relu(self.scores(torch.cat((y[source], y[target]), 1)), 0.2)[:, 0]
        most = torch.full_like(x[:, 0], -torch.inf).scatter_reduce(0, target, scores, "amax")
        weights = torch.exp(scores - most.detach()[target])
        sums = torch.zeros_like(x[:, 0]).scatter_add(0, target, weights)
        weights = weights / sums[target]
        return torch.zeros_like(y).index_add(0, target, y[source] * weights[:, None])


class Clip(nn.Module):
    """Images and texts by the same measure, and the loss of pairs."""

    def __init__(self, width=8):
        super().__init__()
        self.patches, self.words = nn.Conv2d(3, width, 4, 4), nn.Embedding(17, width)
        self.image, self.text = Block(width, 2), Block(width, 2, causal=True)
        self.to_image, self.to_text = (nn.Linear(width, 6, bias=False) for _ in range(2))
        self.scale = nn.Parameter(torch.tensor(2.6592))

    def forward(self, images, words):
        image = self.image(self.patches(images).flatten(2).mT).mean(1)
        text = self.text(self.words(words))
        text = text[torch.arange(len(words)), words.argmax(-1)]  # where a text ends
        image, text = (
            F.normalize(self.to_image(image), dim=-1),
            F.normalize(self.to_text(text), dim=-1),
        )
        scores = self.scale.exp() * image @ text.T
        pairs = torch.arange(len(words))
        return scores, (F.cross_entropy(scores, pairs) + F.cross_entropy(scores.T, pairs)) / 2


class Detector(nn.Module):
    """DETR: an image as a sequence with places, questions that are learnt, classes and boxes."""

    def __init__(self, width=8, questions=3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 1)
        )
        self.net = nn.Transformer(width, 2, 1, 1, 16, 0.0, batch_first=True)
        self.questions = nn.Parameter(torch.randn(questions, width))
        self.rows, self.columns = (nn.Parameter(torch.randn(4, width // 2)) for _ in range(2))
        self.classes, self.boxes = nn.Linear(width, 5), nn.Linear(width, 4)

    def forward(self, x):
        x = self.body(x)
        rows, columns = x.shape[2:]
        places = torch.cat((
            self.columns[:columns].expand(rows, -1, -1),
            self.rows[:rows, None].expand(-1, columns, -1),
        ), -1).flatten(0, 1)  # fmt: skip
        seen = x.flatten(2).mT + places
        found = self.net(seen, self.questions.expand(len(x), -1, -1))
        centre, size = torch.sigmoid(self.boxes(found)).chunk(2, -1)
        return self.classes(found), torch.cat((centre - size / 2, centre + size / 2), -1)


class Segmenter(nn.Module):
    """SAM: attention in windows with relative places by axes; masks from what a prompt asks for."""

    def __init__(self, width=8, heads=2, window=2):
        super().__init__()
        self.patches, self.heads, self.window = nn.Conv2d(3, width, 2, 2), heads, window
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rows, self.columns = (nn.Parameter(torch.randn(2 * window - 1, width // heads))
                                   for _ in range(2))  # fmt: skip
        self.prompt = nn.Linear(8, width)
        self.frequencies = nn.Parameter(torch.randn(2, 4))
        self.up = nn.ConvTranspose2d(width, width, 2, 2)

    def attention(self, x):
        batch, rows, columns, _ = x.shape
        qkv = self.qkv(x).view(batch, rows * columns, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.flatten(1, 2)
        scores = (q * q.shape[-1] ** -0.5) @ k.mT
        at = torch.arange(self.window)
        apart = at[:, None] - at[None, :] + self.window - 1
        grid = q.view(-1, rows, columns, q.shape[-1])
        by_row = torch.einsum("bhwc,hkc->bhwk", grid, self.rows[apart])
        by_column = torch.einsum("bhwc,wkc->bhwk", grid, self.columns[apart])
        scores = scores.view(-1, rows, columns, rows, columns)
        scores = scores + by_row[..., None] + by_column[..., None, :]
        made = scores.flatten(3).flatten(1, 2).softmax(-1) @ v
        made = made.view(batch, self.heads, rows, columns, -1).permute(0, 2, 3, 1, 4)
        return self.out(made.flatten(3))

    def forward(self, x, points):
        x = self.patches(x).permute(0, 2, 3, 1)
        batch, rows, columns, width = x.shape
        pads = -rows % self.window, -columns % self.window
        y = F.pad(x, (0, 0, 0, pads[1], 0, pads[0]))
        high, wide = y.shape[1] // self.window, y.shape[2] // self.window
        y = y.view(batch, high, self.window, wide, self.window, width).transpose(2, 3)
        y = self.attention(y.reshape(-1, self.window, self.window, width))
        y = y.view(batch, high, wide, self.window, self.window, width).transpose(2, 3)
        x = x + y.reshape(batch, high * self.window, wide * self.window, width)[:, :rows, :columns]
        angles = 2 * math.pi * (2 * points - 1) @ self.frequencies
        asked = self.prompt(torch.cat((angles.sin(), angles.cos()), -1))
        seen = self.up(x.permute(0, 3, 1, 2))
        masks = asked @ seen.flatten(2)
        masks = masks.unflatten(2, seen.shape[2:])
        return F.interpolate(masks, scale_factor=2, mode="bilinear", align_corners=False)


class Pyramid(nn.Module):
    """Features of three sizes, each with what the smaller ones saw."""

    def __init__(self, width=4):
        super().__init__()
        self.downs = nn.ModuleList(unit(3 if n == 0 else width, width, 3, 2) for n in range(3))
        self.sides = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(3))

    def forward(self, x):
        seen = []
        for down in self.downs:
            x = down(x)
            seen.append(x)
        made = [self.sides[-1](seen[-1])]
        for side, x in zip(self.sides[-2::-1], seen[-2::-1], strict=False):
            made.append(side(x) + F.interpolate(made[-1], size=x.shape[2:]))
        return tuple(made)


class Clusters(nn.Module):
    """NetVLAD: what is left of features after the centres of soft clusters."""

    def __init__(self, width=4, clusters=3):
        super().__init__()
        self.clusters = nn.Parameter(torch.randn(width, clusters))
        self.centres = nn.Parameter(torch.randn(1, width, clusters))
        self.norm = nn.BatchNorm1d(clusters)

    def forward(self, x):
        shares = self.norm(x.flatten(0, 1) @ self.clusters).softmax(1).view(len(x), -1, 3)
        left = (shares.mT @ x).mT - shares.sum(1, keepdim=True) * self.centres
        return F.normalize(F.normalize(left, dim=1).flatten(1))


def inverted(act=nn.Hardswish, gate=lambda x: F.relu6(x + 3) / 6):
    return residual(
        unit(4, 12, 1, act=act), unit(12, 12, 5, groups=12, act=act), Excitation(12, gate),
        unit(12, 4, 1, act=nn.Identity),
    )  # fmt: skip


def vgg():
    return chain(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d((3, 3)), nn.Flatten(), nn.Linear(54, 8), nn.ReLU(), nn.Dropout(0.0),
        nn.Linear(8, 5),
    )  # fmt: skip


def atrous():
    """Convolutions of several dilations, and the mean of the image, side by side."""
    branches = nn.ModuleList(nn.Conv2d(3, 2, 3, padding=n, dilation=n) for n in (1, 2, 3))
    return Aside(branches)


class Aside(nn.Module):
    def __init__(self, branches):
        super().__init__()
        self.branches = branches

    def forward(self, x):
        mean = F.adaptive_avg_pool2d(x, 1)
        mean = F.interpolate(mean, x.shape[2:], mode="bilinear", align_corners=False)
        return torch.cat([branch(x) for branch in self.branches] + [mean], 1)


def r(*shape):
    return torch.randn(shape)


IMAGE, FEATURES = (2, 3, 9, 8), (2, 4, 6, 5)

VISION = {
    "VGG": lambda: (vgg(), r(2, 3, 12, 13)),
    "ConvNeXt": lambda: (ConvNextBlock(), r(*FEATURES)),
    "MobileNetV2": lambda: (inverted(nn.ReLU6, torch.sigmoid), r(*FEATURES)),
    "MobileNetV3": lambda: (inverted(), r(*FEATURES)),
    "EfficientNet": lambda: (inverted(nn.SiLU, torch.sigmoid), r(*FEATURES)),
    "DenseNet": lambda: (chain(Dense(), unit(10, 4, 1), nn.AvgPool2d(2)), r(*FEATURES)),
    "Inception": lambda: (Inception(), r(*FEATURES)),
    "ShuffleNet": lambda: (chain(Shuffle(), Shuffle()), r(*FEATURES)),
    "U-Net": lambda: (DownUp(), r(1, 1, 8, 12)),
    "variational autoencoder": lambda: (Variational(), r(2, 1, 8, 8), r(2, 4)),
    "a step of diffusion": lambda: (
        Denoised(),
        *(r(2, 1, 6, 6), torch.tensor([0, 7]), r(2, 1, 6, 6)),
    ),
    "NeRF": lambda: (Radiance(), r(5, 3), r(5, 3), torch.rand(5, 4).sort()[0]),
    "PointNet": lambda: (PointNet(), r(3, 3, 9)),
    "graph": lambda: (Graph(), r(6, 4), torch.randint(6, (2, 11))),
    "CLIP": lambda: (Clip(), r(3, 3, 8, 8), torch.randint(17, (3, 5))),
    "DETR": lambda: (Detector(), r(2, 3, 8, 6)),
    "SAM": lambda: (Segmenter(), r(2, 3, 10, 8), torch.rand(2, 3, 2)),
    "pyramid": lambda: (Pyramid(), r(*IMAGE)),
    "NetVLAD": lambda: (Clusters(), r(3, 7, 4)),
    "atrous": lambda: (atrous(), r(*IMAGE)),
}
