"""Write digits.npz: the UCI handwritten digits, taken from scikit-learn's package.

    pip install scikit-learn && python fetch.py

digits.npz holds `images` (1797, 64) uint8 with ink from 0 to 16 per pixel, row by row; `labels`
(1797,) uint8; and `held_out` (1797,) bool, the 450 images that training never sees. The images come
ordered by writer, so the held-out ones are drawn at random (seeded: the file is always the same).
"""

from argparse import ArgumentParser, RawTextHelpFormatter
from pathlib import Path

import numpy as np

HELD_OUT = 450


def main() -> None:
    ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter).parse_args()
    from sklearn.datasets import load_digits

    digits = load_digits()
    held_out = np.zeros(len(digits.target), dtype=np.bool_)
    held_out[np.random.default_rng(1998).permutation(len(held_out))[:HELD_OUT]] = True
    np.savez_compressed(
        Path(__file__).parent / "digits.npz",
        images=digits.data.astype(np.uint8),
        labels=digits.target.astype(np.uint8),
        held_out=held_out,
    )


if __name__ == "__main__":
    main()
