"""Classify the held-out digits with model.mlir and print the accuracy.

    python run.py --on triton --shards 4

Prepares the arrays that `@main` of model.mlir takes, runs it with the `tapestry run` command (which
also prints what ran), and compares the classes that come out with the labels.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
EXPECTED_ACCURACY = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(description="Classify the held-out handwritten digits.")
    parser.add_argument("--on", default="triton", help="reference, numpy or triton")
    parser.add_argument(
        "--shards", default="4", help="how many shards each operation is split into"
    )
    options = parser.parse_args()

    with np.load(HERE / "digits.npz") as digits, np.load(HERE / "weights.npz") as weights:
        held_out = digits["held_out"]
        labels = digits["labels"][held_out]
        images = digits["images"][held_out].astype(np.float32) / 16  # ink from 0 to 1
        inputs = {"x": images, **weights}

    with tempfile.TemporaryDirectory() as folder:
        given, results = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(given, **inputs)
        command = [sys.executable, "-m", "tapestry.tools.tapestry", "run", HERE / "model.mlir"]
        command += ["--inputs", given, "--output", results]
        command += ["--on", options.on, "--shards", options.shards]
        code = subprocess.run(command, check=False).returncode
        if code != 0:
            return code
        with np.load(results) as outputs:
            classes = outputs["out1"]

    right = int(np.count_nonzero(classes == labels))
    accuracy = right / len(labels)
    print(f"{right} of {len(labels)} held-out images are right: accuracy {accuracy:.2%}")
    return 0 if accuracy > EXPECTED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
