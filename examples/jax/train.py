"""Train a classifier of digits whose training step was written in JAX, with Tapestry.

    python train.py --on numpy --steps 60

`jax.grad` writes the backward pass and `jax.export` the program of one step, as StableHLO. From
there on JAX computes nothing: Tapestry imports the step, fuses it, and runs it again and again. The
first step is compared with JAX's.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tapestry
from tapestry.importers import stablehlo

DIGITS = Path(__file__).parents[1] / "digits" / "digits.npz"
BATCH = 256


def classify(layers: Any, images: Any) -> Any:
    hidden = jax.nn.gelu(images @ layers["w1"] + layers["b1"])
    return hidden @ layers["w2"] + layers["b2"]


def loss(layers: Any, images: Any, labels: Any) -> Any:
    scores = jax.nn.log_softmax(classify(layers, images))
    return -scores[jnp.arange(len(labels)), labels].mean()


def step(layers: Any, images: Any, labels: Any) -> Any:
    value, slopes = jax.value_and_grad(loss)(layers, images, labels)
    return jax.tree.map(lambda w, slope: w - 0.5 * slope, layers, slopes), value


def main() -> int:
    parser = argparse.ArgumentParser(description="Train with a step written in JAX.")
    parser.add_argument("--on", default="numpy", help="reference, numpy or triton")
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    with np.load(DIGITS) as digits:
        images, labels = digits["images"].astype(np.float32) / 16, digits["labels"].astype(np.int32)
        held_out = digits["held_out"]
    training = np.setdiff1d(np.arange(len(images)), held_out)
    random = np.random.default_rng(0)
    layers = {
        "b1": np.zeros(32, np.float32),
        "b2": np.zeros(10, np.float32),
        "w1": (random.normal(size=(64, 32)) / 8).astype(np.float32),
        "w2": (random.normal(size=(32, 10)) / 6).astype(np.float32),
    }

    batch = training[:BATCH]
    exported = jax.export.export(jax.jit(step))(layers, images[batch], labels[batch])
    module = stablehlo.load(exported.mlir_module())
    tapestry.run_pipeline(module, "weft-apply,loom-simplify,loom-fuse")
    names = [argument.name for argument in tapestry.arguments(module)]
    print("the step takes", ", ".join(names))

    wanted, _ = jax.jit(step)(layers, images[batch], labels[batch])
    for number in range(options.steps):
        chosen = batch if number == 0 else random.choice(training, BATCH, replace=False)
        arrays = [*jax.tree.leaves(layers), images[chosen], labels[chosen]]
        inputs = dict(zip(names, arrays, strict=True))
        *leaves, value = tapestry.run(module, inputs, on=options.on).outputs
        layers = jax.tree.unflatten(jax.tree.structure(layers), leaves)
        if number == 0:
            apart = jax.tree.map(lambda a, b: float(np.abs(a - b).max()), layers, wanted)
            print(f"largest difference from JAX's step: {max(jax.tree.leaves(apart)):.1e}")
        if number % 20 == 0:
            print(f"step {number:3}: loss {float(value):.3f}")

    guesses = np.asarray(classify(layers, images[held_out])).argmax(1)
    accuracy = float((guesses == labels[held_out]).mean())
    print(f"held-out images: {accuracy:.2%}")
    return 0 if options.steps < 60 or accuracy > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
