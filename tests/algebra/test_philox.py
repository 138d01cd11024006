"""Known answers of Philox 4x32-10, from the authors' Random123 distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapestry.algebra.philox import WORDS, philox, philox_word

ALL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ALL, ALL, ALL, ALL), (ALL, ALL), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(
    counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]
) -> None:
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) for word in counter)
    k0, k1 = (np.asarray(word, np.uint64) for word in key)
    assert tuple(int(word) for word in philox((k0, k1), (c0, c1, c2, c3))) == words


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_halves_are_the_key_and_the_counter(seed: int, counter: int) -> None:
    def halves(value: int) -> list[np.ndarray]:
        return [np.asarray((value >> shift) & ALL, np.uint64) for shift in (0, 32)]

    (k0, k1), (c0, c1), zero = halves(seed), halves(counter), np.zeros((), np.uint64)
    words = philox((k0, k1), (c0, c1, zero, zero))
    for word in range(WORDS):
        bits = philox_word(np.asarray(seed), np.asarray(counter), word)
        assert int(bits.view(np.uint32)) == int(words[word])


def test_words_look_uniform() -> None:
    bits = philox_word(np.asarray(7), np.arange(100_000), 2).view(np.uint32)
    counts, _ = np.histogram(bits >> 28, bins=16, range=(0, 16))
    # 16 cells of about 6,250: five standard deviations.
    assert np.abs(counts - 6250).max() < 5 * np.sqrt(6250)
