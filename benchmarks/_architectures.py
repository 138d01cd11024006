"""Image models that people compile, small: their blocks as published, random weights.

    model, shape = ARCHITECTURES["swin"]()      # a module in eval mode, and its input's shape

Channels and depths are cut so that one runs in milliseconds; what is kept is what compilers see:
depthwise and grouped convolutions, squeeze-and-excitation, branches that are concatenated,
channels that are shuffled, windows that are shifted, partitioned and merged (`_swin`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from _swin import Made, swin
from torch import Tensor, nn
from torch.nn import functional


def unit(
    inside: int, out: int, size: int = 3, *, stride: int = 1, groups: int = 1, act: bool = True
) -> nn.Sequential:
    """A convolution, its batch norm, and a rectifier."""
    convolution = nn.Conv2d(inside, out, size, stride, padding=size // 2, groups=groups, bias=False)
    rest = [nn.ReLU()] if act else []
    return nn.Sequential(convolution, nn.BatchNorm2d(out), *rest)


def classifier(channels: int, classes: int = 10) -> nn.Sequential:
    """The mean of each channel, and a linear layer."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Residual(nn.Module):
    """What is inside, added to its input, which a convolution fits where shapes differ."""

    def __init__(self, inside: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.inside, self.shortcut = inside, shortcut or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.inside(x)


class Excitation(nn.Module):
    """Squeeze and excitation: each channel times a gate of all channels' means."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            nn.SiLU(),
            nn.Conv2d(inner, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x)


class ChannelNorm(nn.Module):
    """Layer norm over the channels of images."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """A depthwise 7x7 convolution and a perceptron of channels, scaled."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        h = self.scale * self.down(functional.gelu(self.up(h)))
        return x + h.permute(0, 3, 1, 2)


def convnext() -> Made:
    """ConvNeXt of two stages."""
    first = [nn.Conv2d(3, 32, 4, 4), ChannelNorm(32), ConvNextBlock(32), ConvNextBlock(32)]
    second = [ChannelNorm(32), nn.Conv2d(32, 64, 2, 2), ConvNextBlock(64), ConvNextBlock(64)]
    return nn.Sequential(*first, *second, classifier(64)), (2, 3, 112, 112)


def inverted(
    inside: int,
    out: int,
    *,
    stride: int = 1,
    size: int = 3,
    act: type[nn.Module] = nn.ReLU6,
    excite: bool = False,
) -> nn.Module:
    """MobileNetV2's block: wide, depthwise, narrow; EfficientNet's excites what is wide."""
    wide = 4 * inside
    block = nn.Sequential(
        unit(inside, wide, 1, act=False),
        act(),
        unit(wide, wide, size, stride=stride, groups=wide, act=False),
        act(),
        *([Excitation(wide, inside // 4)] if excite else []),
        unit(wide, out, 1, act=False),
    )
    return Residual(block) if stride == 1 and inside == out else block


def mobilenet() -> Made:
    """MobileNetV2 of three stages."""
    blocks = [inverted(16, 24, stride=2), inverted(24, 24), inverted(24, 32, stride=2)]
    blocks += [inverted(32, 32), inverted(32, 32)]
    return nn.Sequential(unit(3, 16, stride=2), *blocks, classifier(32)), (2, 3, 112, 112)


def efficientnet() -> Made:
    """EfficientNet of three stages."""
    excited = partial(inverted, act=nn.SiLU, excite=True)
    blocks = [excited(16, 24, stride=2), excited(24, 24), excited(24, 40, stride=2, size=5)]
    stem = nn.Sequential(unit(3, 16, stride=2, act=False), nn.SiLU())
    return nn.Sequential(stem, *blocks, excited(40, 40, size=5), classifier(40)), (2, 3, 112, 112)


class Inception(nn.Module):
    """GoogLeNet's block: four branches side by side."""

    def __init__(self, inside: int, *outs: int) -> None:
        super().__init__()
        one, three_in, three, five_in, five, pool = outs
        self.branches = nn.ModuleList(
            [
                unit(inside, one, 1),
                nn.Sequential(unit(inside, three_in, 1), unit(three_in, three)),
                nn.Sequential(unit(inside, five_in, 1), unit(five_in, five, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(inside, pool, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def googlenet() -> Made:
    """GoogLeNet: its stem and three of its blocks."""
    stem = [unit(3, 32, 7, stride=2), nn.MaxPool2d(3, 2, ceil_mode=True), unit(32, 64)]
    blocks = [Inception(64, 32, 32, 48, 8, 16, 16), Inception(112, 48, 32, 64, 8, 24, 16)]
    last = [nn.MaxPool2d(3, 2, ceil_mode=True), Inception(152, 64, 48, 96, 16, 32, 32)]
    return nn.Sequential(*stem, *blocks, *last, classifier(224)), (2, 3, 112, 112)


def bottleneck(inside: int, out: int, *, stride: int = 1) -> nn.Module:
    """RegNet's block: a bottleneck of grouped convolutions with an excitation."""
    block = nn.Sequential(
        unit(inside, out, 1),
        unit(out, out, stride=stride, groups=out // 16),
        Excitation(out, inside // 4),
        unit(out, out, 1, act=False),
    )
    shortcut = None if inside == out else unit(inside, out, 1, stride=stride, act=False)
    return nn.Sequential(Residual(block, shortcut), nn.ReLU())


def regnet() -> Made:
    """RegNetY of two stages."""
    blocks = [bottleneck(32, 48, stride=2), bottleneck(48, 48), bottleneck(48, 96, stride=2)]
    return nn.Sequential(unit(3, 32, stride=2), *blocks, bottleneck(96, 96), classifier(96)), (
        2,
        3,
        112,
        112,
    )


class Shuffle(nn.Module):
    """ShuffleNetV2's block: half of the channels pass, and halves are interleaved."""

    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.stride, half = stride, out // 2
        taken = inside if stride > 1 else inside // 2
        self.left = (
            nn.Sequential(
                unit(taken, taken, stride=stride, groups=taken, act=False), unit(taken, half, 1)
            )
            if stride > 1
            else nn.Identity()
        )
        self.right = nn.Sequential(
            unit(taken, half, 1),
            unit(half, half, stride=stride, groups=half, act=False),
            unit(half, half, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        left, right = (x, x) if self.stride > 1 else x.chunk(2, 1)
        both = torch.cat([self.left(left), self.right(right)], 1)
        b, c, h, w = both.shape
        return both.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)


def shufflenet() -> Made:
    """ShuffleNetV2 of two stages."""
    stem = [unit(3, 24, stride=2), nn.MaxPool2d(3, 2, 1)]
    blocks = [Shuffle(24, 48, 2), Shuffle(48, 48, 1), Shuffle(48, 96, 2), Shuffle(96, 96, 1)]
    return nn.Sequential(*stem, *blocks, classifier(96)), (2, 3, 112, 112)


class Dense(nn.Module):
    """DenseNet's layer: its output beside all that it read."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.layer = nn.Sequential(
            nn.BatchNorm2d(inside), nn.ReLU(), nn.Conv2d(inside, growth, 3, padding=1, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.layer(x)], 1)


def densenet() -> Made:
    """DenseNet: a block of six layers, a transition, and another."""
    block = [Dense(32 + 16 * n, 16) for n in range(6)]
    halved = [nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, 64, 1), nn.AvgPool2d(2)]
    again = [Dense(64 + 16 * n, 16) for n in range(4)]
    return nn.Sequential(unit(3, 32, stride=2), *block, *halved, *again, classifier(128)), (
        2,
        3,
        64,
        64,
    )


class Fire(nn.Module):
    """SqueezeNet's block: few channels, then two convolutions side by side."""

    def __init__(self, inside: int, few: int, out: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inside, few, 1)
        self.ones, self.threes = nn.Conv2d(few, out, 1), nn.Conv2d(few, out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.ones(x)), torch.relu(self.threes(x))], 1)


def squeezenet() -> Made:
    """SqueezeNet: four of its blocks."""
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    stem = [nn.Conv2d(3, 64, 3, stride=2), nn.ReLU(), pool]
    blocks = [Fire(64, 16, 64), Fire(128, 16, 64), pool, Fire(128, 32, 128), Fire(256, 32, 128)]
    return nn.Sequential(*stem, *blocks, classifier(256)), (2, 3, 112, 112)


class SuperResolution(nn.Module):
    """ESPCN: convolutions, then channels become finer cells."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Sequential(
            nn.Conv2d(1, 64, 5, padding=2),
            nn.Tanh(),
            nn.Conv2d(64, 32, 3, padding=1),
            nn.Tanh(),
            nn.Conv2d(32, 9, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.pixel_shuffle(self.inside(x), 3)


def espcn() -> Made:
    """ESPCN, three times as large."""
    return SuperResolution(), (2, 1, 56, 56)


class UNet(nn.Module):
    """A U-Net of two levels."""

    def __init__(self, c: int = 16) -> None:
        super().__init__()
        self.before = nn.Sequential(unit(3, c), unit(c, c))
        self.inner = nn.Sequential(nn.MaxPool2d(2), unit(c, 2 * c), unit(2 * c, 2 * c))
        self.low = nn.Sequential(nn.MaxPool2d(2), unit(2 * c, 4 * c), unit(4 * c, 4 * c))
        self.up1 = nn.ConvTranspose2d(4 * c, 2 * c, 2, stride=2)
        self.up2 = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.after1 = nn.Sequential(unit(4 * c, 2 * c), unit(2 * c, 2 * c))
        self.after2 = nn.Sequential(unit(2 * c, c), unit(c, c), nn.Conv2d(c, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        high = self.before(x)
        mid = self.inner(high)
        mid = self.after1(torch.cat([mid, self.up1(self.low(mid))], 1))
        return self.after2(torch.cat([high, self.up2(mid)], 1))


def unet() -> Made:
    """A U-Net of two levels."""
    return UNet(), (2, 3, 64, 64)


class Atrous(nn.Module):
    """DeepLab's head: convolutions at several dilations, and the result made larger."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 32, stride=2), unit(32, 48, stride=2))
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Conv2d(48, 32, 3, padding=d, dilation=d, bias=False), nn.ReLU())
            for d in (2, 3, 6)
        )
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(48, 32, 1))
        self.last = nn.Conv2d(128, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x)
        whole = functional.interpolate(self.mean(h), h.shape[2:], mode="bilinear")
        h = self.last(torch.cat([*(branch(h) for branch in self.branches), whole], 1))
        return functional.interpolate(h, x.shape[2:], mode="bilinear", align_corners=False)


def deeplab() -> Made:
    """DeepLab's head on a small stem, at an odd size."""
    return Atrous(), (1, 3, 97, 97)


class Sampler(nn.Module):
    """A spatial transformer: an affine grid of the image itself, and bicubic cells."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Sequential(unit(3, 8, stride=2), classifier(8, 6))

    def forward(self, x: Tensor) -> Tensor:
        theta = self.place(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return functional.grid_sample(
            x, grid, mode="bicubic", padding_mode="zeros", align_corners=False
        )


def sampler() -> Made:
    """A spatial transformer with bicubic cells."""
    return Sampler(), (2, 3, 32, 32)


def vgg() -> Made:
    """VGG of three stages."""
    pool = nn.MaxPool2d(2)
    layers = [unit(3, 32), unit(32, 32), pool, unit(32, 64), unit(64, 64), pool, unit(64, 128)]
    return nn.Sequential(*layers, pool, classifier(128)), (2, 3, 64, 64)


def resnet() -> Made:
    """ResNet of three stages of one block."""

    def block(inside: int, out: int, stride: int) -> nn.Module:
        inner = nn.Sequential(unit(inside, out, stride=stride), unit(out, out, act=False))
        fit = None if inside == out else unit(inside, out, 1, stride=stride, act=False)
        return nn.Sequential(Residual(inner, fit), nn.ReLU())

    stem = [unit(3, 32, 7, stride=2), nn.MaxPool2d(3, 2, 1)]
    blocks = [block(32, 32, 1), block(32, 64, 2), block(64, 128, 2)]
    return nn.Sequential(*stem, *blocks, classifier(128)), (2, 3, 112, 112)


ARCHITECTURES: dict[str, Callable[[], Made]] = {
    "swin": swin,
    "convnext": convnext,
    "mobilenet": mobilenet,
    "efficientnet": efficientnet,
    "googlenet": googlenet,
    "regnet": regnet,
    "shufflenet": shufflenet,
    "densenet": densenet,
    "squeezenet": squeezenet,
    "espcn": espcn,
    "unet": unet,
    "deeplab": deeplab,
    "sampler": sampler,
    "vgg": vgg,
    "resnet": resnet,
}
