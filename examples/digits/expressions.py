"""The same network as model.mlir, written in Python, and where it is split and why.

python expressions.py
"""

from argparse import ArgumentParser, RawTextHelpFormatter
from pathlib import Path

import numpy as np

import tapestry

HERE = Path(__file__).parent


def main() -> None:
    ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter).parse_args()
    with np.load(HERE / "digits.npz") as digits, np.load(HERE / "weights.npz") as weights:
        held_out = digits["held_out"]
        labels = digits["labels"][held_out]
        images = digits["images"][held_out].astype(np.float32) / 16  # ink from 0 to 1
        parameters = {name: weights[name] for name in weights.files}

    x = tapestry.input("x", (len(images), 64), "float32")
    w1, b1, w2, b2 = (
        tapestry.input(name, array.shape, array.dtype) for name, array in parameters.items()
    )
    hidden = tapestry.gelu(x @ w1 + b1)
    classes = (hidden @ w2 + b2).argmax(axis=1)
    print(classes)

    program = tapestry.shard(classes, shards=4)
    print(program)
    print(program.explain())
    right = np.count_nonzero(program(images, **parameters) == labels)
    print(f"{right} of {len(labels)} held-out images are right")


if __name__ == "__main__":
    main()
