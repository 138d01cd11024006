"""Models in the forms of real ones: what they give, and what a step of training does to them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402
from xdsl.ir import SSAValue  # noqa: E402

import tapestry  # noqa: E402
from tapestry.dialects import loom  # noqa: E402
from tapestry.dialects.loom import tensor_type  # noqa: E402
from tapestry.runtime.program import main_function  # noqa: E402
from tests.importers.torch import models  # noqa: E402
from tests.importers.torch.compare import check_forward, check_training  # noqa: E402

LENGTH = 7
"""Words of a sentence: no other size of a model is this."""


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def words() -> torch.Tensor:
    return torch.randint(17, (2, LENGTH))


def kept() -> torch.Tensor:
    return torch.arange(LENGTH) < torch.tensor([[LENGTH], [4]])


def square(model, *args) -> torch.Tensor:
    return model(*args).square().mean()


def next_word(model, x) -> torch.Tensor:
    return functional.cross_entropy(model(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten())


def both(model, *args) -> torch.Tensor:
    return sum(out.square().mean() for out in model(*args))


IMAGES = {
    "LeNet": (models.LeNet, (3, 1, 12, 12)),
    "residual block": (lambda: models.ResidualBlock(3, 4, 2), (2, 3, 8, 8)),
    "U-Net": (models.UNet, (2, 1, 8, 8)),
    "MLP-Mixer": (models.MixerBlock, (2, 4, 8)),
    "mixture of experts": (models.Mixture, (5, 6)),
}


@pytest.mark.parametrize("name", IMAGES)
def test_training(name: str) -> None:
    make, shape = IMAGES[name]
    report = check_training(make(), square, (torch.randn(shape),))
    assert report.native_share >= 0.95


def test_lstm() -> None:
    report = check_training(models.Lstm(), square, (torch.randn(3, 2, 4),))
    assert report.native_share == 1


def test_a_diffusion_step() -> None:
    x, noise, time = torch.randn(2, 1, 8, 8), torch.randn(2, 1, 8, 8), torch.tensor([3, 7])
    adam = lambda parameters: torch.optim.Adam(parameters, 1e-3)  # noqa: E731
    # Adam's first step is the sign of the gradient: parameters are compared after it.
    report = check_training(models.Diffusion(), square, (x, noise, time), optimizer=adam)
    assert report.native_share == 1


def test_resnet18() -> None:
    report = check_forward(models.ResNet18().eval(), torch.randn(2, 3, 32, 32))
    assert report.native_share == 1


TRANSFORMERS: dict[str, tuple[Callable[..., torch.nn.Module], Callable[[], tuple], Callable]] = {
    "ViT": (lambda: models.ViT(patches=LENGTH - 1), lambda: (torch.randn(2, 3, 8, 12),), square),
    "GPT-2": (lambda: models.GPT2(length=LENGTH), lambda: (words(),), next_word),
    "LLaMA": (models.Llama, lambda: (words(),), next_word),
    "BERT": (
        lambda: models.Bert(length=LENGTH),
        lambda: (words(), torch.randint(2, (2, LENGTH)), kept()),
        both,
    ),
    "T5": (models.T5Block, lambda: (torch.randn(2, LENGTH, 8),), square),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_attention_stores_no_scores(name: str, tmp_path: Path) -> None:
    make, args, _ = TRANSFORMERS[name]
    report = check_forward(make().eval(), *args(), dump=str(tmp_path))
    assert report.native_share == 1
    (last,) = (max(folder.glob("*.mlir")) for folder in tmp_path.iterdir())
    steps = list(main_function(tapestry.load_module(str(last))).body.block.ops)
    assert not [op.name for op in steps if _scores(op.results)]
    groups = [op for op in steps if isinstance(op, loom.FusedOp)]
    assert [op for op in groups for member in op.members if _scores(member.outs)]


def test_attention_of_pixels_stores_no_scores(tmp_path: Path) -> None:
    check_forward(models.PixelAttention().eval(), torch.randn(2, 8, 4, 5), dump=str(tmp_path))
    (last,) = (max(folder.glob("*.mlir")) for folder in tmp_path.iterdir())
    steps = main_function(tapestry.load_module(str(last))).body.block.ops
    assert all(tensor_type(v).box.shape != (2, 20, 20) for op in steps for v in op.results)


def _scores(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Tensors of a cell per two words."""
    return [v for v in values if tensor_type(v).box.shape.count(LENGTH) > 1]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_training_a_transformer(name: str) -> None:
    make, args, loss = TRANSFORMERS[name]
    report = check_training(make(), loss, args())
    assert report.native_share == 1
