"""Train the 64-128-10 network of model.mlir on the digits, in NumPy alone, and write weights.npz.

    python train.py        # about five seconds

The network is `softmax(gelu(x @ w1 + b1) @ w2 + b2)` with the exact gelu, x * Phi(x). Training is
Adam on the cross entropy in mini-batches, and is seeded: the same NumPy gives the same weights.
weights.npz holds w1 (64, 128), b1 (128,), w2 (128, 10) and b2 (10,), all float32, named like the
arguments of model.mlir.
"""

import math
from argparse import ArgumentParser, RawTextHelpFormatter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = dict[str, Floats]

HERE = Path(__file__).parent
HIDDEN, CLASSES = 128, 10
EPOCHS, BATCH, RATE, DECAY = 100, 64, 2e-3, 1e-4

_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has no erf of its own


def normal_cdf(x: Floats) -> Floats:
    """Phi(x), the distribution function of the standard normal, elementwise."""
    return 0.5 * (1.0 + _erf(x / math.sqrt(2.0)).astype(np.float64))


def probabilities(x: Floats, weights: Weights) -> Floats:
    """What model.mlir computes for images `x` (n, 64): probabilities (n, 10)."""
    z = x @ weights["w1"] + weights["b1"]
    logits = (z * normal_cdf(z)) @ weights["w2"] + weights["b2"]
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def gradients(x: Floats, labels: NDArray[np.uint8], weights: Weights) -> Weights:
    """The gradients of the mean cross entropy over a batch, by the chain rule written out."""
    z = x @ weights["w1"] + weights["b1"]
    cdf = normal_cdf(z)
    h = z * cdf
    d_logits = probabilities(x, weights)
    d_logits[np.arange(len(x)), labels] -= 1.0
    d_logits /= len(x)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    d_z = (d_logits @ weights["w2"].T) * (cdf + z * density)
    return {
        "w1": x.T @ d_z,
        "b1": d_z.sum(axis=0),
        "w2": h.T @ d_logits,
        "b2": d_logits.sum(axis=0),
    }


def train(images: Floats, labels: NDArray[np.uint8], seed: int = 0) -> Weights:
    """Weights after `EPOCHS` passes of Adam (Kingma and Ba, 2015) with a falling step size."""
    rng = np.random.default_rng(seed)
    weights: Weights = {
        "w1": rng.normal(0.0, math.sqrt(2.0 / 64), (64, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0.0, math.sqrt(1.0 / HIDDEN), (HIDDEN, CLASSES)),
        "b2": np.zeros(CLASSES),
    }
    mean = {name: np.zeros_like(value) for name, value in weights.items()}
    square = {name: np.zeros_like(value) for name, value in weights.items()}
    step = 0
    steps = EPOCHS * math.ceil(len(images) / BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for batch in np.split(order, range(BATCH, len(order), BATCH)):
            step += 1
            rate = 0.5 * RATE * (1.0 + math.cos(math.pi * step / steps))
            for name, g in gradients(images[batch], labels[batch], weights).items():
                mean[name] += 0.1 * (g - mean[name])
                square[name] += 0.001 * (g * g - square[name])
                unbiased = mean[name] / (1.0 - 0.9**step)
                scale = np.sqrt(square[name] / (1.0 - 0.999**step)) + 1e-8
                weights[name] -= rate * (unbiased / scale + DECAY * weights[name])
    return weights


def accuracy(images: Floats, labels: NDArray[np.uint8], weights: Weights) -> float:
    """The part of `images` whose most probable class is its label, from 0 to 1."""
    return float(np.mean(probabilities(images, weights).argmax(axis=1) == labels))


def main() -> None:
    ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter).parse_args()
    with np.load(HERE / "digits.npz") as file:
        images, labels, held_out = file["images"] / 16.0, file["labels"], file["held_out"]
    weights = train(images[~held_out], labels[~held_out])
    np.savez_compressed(
        HERE / "weights.npz", **{name: value.astype(np.float32) for name, value in weights.items()}
    )
    print(f"training images: {accuracy(images[~held_out], labels[~held_out], weights):.2%}")
    print(f"held-out images: {accuracy(images[held_out], labels[held_out], weights):.2%}")


if __name__ == "__main__":
    main()
