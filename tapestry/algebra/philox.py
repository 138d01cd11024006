"""Counter-based random numbers: Philox 4x32 with ten rounds.

A random number is a pure function of a seed and a counter, so any way to split a program gives the
same numbers. Four words come from each counter:

>>> import numpy as np
>>> seed, counter = np.asarray(0), np.arange(2)
>>> [int(word) for word in philox_word(seed, counter, 0).view(np.uint32)]
[1713891541, 4175744164]

Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
"""32-bit words, kept in 64 bits so that products are whole."""

WORDS = 4
"""Words that one counter gives."""

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(key: tuple[Words, Words], counter: tuple[Words, Words, Words, Words]) -> list[Words]:
    """The four words of a counter of four words under a key of two; they broadcast."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    first, second = (np.uint64(multiplier) for multiplier in MULTIPLIERS)
    steps = tuple(np.uint64(step) for step in KEY_STEPS)
    for _ in range(ROUNDS):
        a, b = first * c0, second * c2
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ k0, b & _LOW, (a >> _HALF) ^ c3 ^ k1, a & _LOW
        k0, k1 = (k0 + steps[0]) & _LOW, (k1 + steps[1]) & _LOW
    return [c0, c1, c2, c3]


def philox_word(
    seed: npt.NDArray[Any], counter: npt.NDArray[Any], word: int
) -> npt.NDArray[np.int32]:
    """Word `word` (0 to 3) of 64-bit counters under 64-bit seeds, as the bits of an int32.

    The seed's halves are the key, the counter's halves the first two words of Philox's counter; the
    lower half comes first.
    """
    key, place = _halves(seed), _halves(counter)
    none = np.zeros((), np.uint64)
    words = philox(key, (*place, none, none))
    return np.asarray(words[word]).astype(np.uint32).view(np.int32)


def _halves(values: npt.NDArray[Any]) -> tuple[Words, Words]:
    bits = np.asarray(values).astype(np.int64).view(np.uint64)
    return bits & _LOW, bits >> _HALF
