"""Train a classifier of handwritten digits in PyTorch, compiled by Tapestry, and test it.

    pip install tapestry[torch]
    python train.py                      # about ten seconds
    python train.py --on triton          # as Triton kernels: on a GPU, or in the interpreter (slow)

The data is that of ../digits: 1,347 images to train on, 450 to test. The training step (forward,
loss and gradients) is compiled; the optimizer is PyTorch's. The same training runs without
compiling it, and the weights that come out are compared.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tapestry.importers.torch import recording

DIGITS = Path(__file__).parent.parent / "digits" / "digits.npz"
EPOCHS, BATCH, RATE = 8, 64, 3e-3
EXPECTED_ACCURACY, TOLERANCE = 0.95, 1e-3

Model = Callable[[torch.Tensor], torch.Tensor]


def make_model() -> nn.Module:
    """Two layers, with weights that are the same each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))


def train(model: nn.Module, compiled: Model, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Train the weights of `model` by Adam, with `compiled` in its place."""
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    order = torch.Generator().manual_seed(1)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images), generator=order).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(compiled(images[batch]), labels[batch]).backward()
            optimizer.step()


def main() -> int:
    parser = argparse.ArgumentParser(description="Train on the handwritten digits in PyTorch.")
    parser.add_argument("--on", default="numpy", help="reference, numpy or triton")
    options = parser.parse_args()

    with np.load(DIGITS) as digits:
        held_out = torch.from_numpy(digits["held_out"])
        images = torch.from_numpy(digits["images"]).float() / 16  # ink from 0 to 1
        labels = torch.from_numpy(digits["labels"]).long()

    model, eager = make_model(), make_model()
    compiled = torch.compile(model, backend="tapestry", options={"on": options.on})
    with recording() as report:
        train(model, compiled, images[~held_out], labels[~held_out])
    print(report)
    train(eager, eager, images[~held_out], labels[~held_out])
    apart = max(
        (one - other).abs().max().item()
        for one, other in zip(model.parameters(), eager.parameters(), strict=True)
    )
    print(f"weights are at most {apart:.1g} from those of eager mode")

    with torch.no_grad():
        classes = compiled(images[held_out]).argmax(-1)
    right = int((classes == labels[held_out]).sum())
    accuracy = right / len(classes)
    print(f"{right} of {len(classes)} held-out images are right: accuracy {accuracy:.2%}")
    return 0 if accuracy > EXPECTED_ACCURACY and apart < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
