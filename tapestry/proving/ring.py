"""The ring Z / P^5, in which identities of exp, log and roots hold exactly, on Python's integers.

    >>> ring = Ring.of(0)
    >>> a, b = ring.fraction(Fraction(3, 8)), ring.fraction(Fraction(-2, 7))
    >>> ring.exp(a + b) == ring.exp(a) * ring.exp(b) % ring.modulus
    True
    >>> log, turn = ring.log(ring.exp(a))
    >>> (log - a) % ring.prime**4, turn         # the logarithm loses one digit of five
    (0, 1)
    >>> ring.root(ring.fraction(Fraction(9, 4))) == ring.fraction(Fraction(3, 2))
    True

`exp(x) = sum over i < 5 of (P x)^i / i!` takes sums to products, and its values are units, so that
exponentials nest. The logarithm is Iwasawa's, of the unit without its Teichmueller part, over P.
Roots are a multiplicative power, which is a root of every square. P is about 2^61, 7 mod 8, and
every prime up to 31 is a square modulo P, so that roots of small numbers are what they should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b

DIGITS = 5
"""Digits to the base P that the ring holds."""

PRIMES = (
    2305843009213682039,
    2305843009213561919,
    2305843009213456319,
    2305843009213212719,
    2305843009213198439,
    2305843009213098911,
    2305843009213057079,
    2305843009212857351,
)


@dataclass(frozen=True)
class Ring:
    """Arithmetic modulo `prime ** 5`."""

    prime: int

    @classmethod
    def of(cls, seed: int) -> Ring:
        """One of a few rings."""
        return cls(PRIMES[seed % len(PRIMES)])

    @cached_property
    def modulus(self) -> int:
        """How many numbers there are."""
        return self.prime**DIGITS

    @cached_property
    def _root_power(self) -> int:
        # Squares form a group of odd order m; raising to (m + 1) / 2 halves in it.
        return (self.modulus // self.prime * ((self.prime - 1) // 2) + 1) // 2

    @cached_property
    def _inverse_factorials(self) -> tuple[int, ...]:
        factorials = (1, 1, 2, 6, 24)
        return tuple(pow(n, -1, self.modulus) for n in factorials)

    @cached_property
    def ln2(self) -> tuple[int, int]:
        """The logarithm of 2 and its Teichmueller part."""
        return self.log(2)

    def fraction(self, value: Fraction) -> int:
        """A rational number; its denominator must not be a multiple of P."""
        return value.numerator * pow(value.denominator, -1, self.modulus) % self.modulus

    def inverse(self, x: int) -> int:
        """1 / x; 0 where x is no unit."""
        return pow(x, -1, self.modulus) if x % self.prime else 0

    def exp(self, x: int) -> int:
        """The exponential of P x; known to one digit more than x."""
        y = self.prime * x
        total, power = 1, y
        for factor in self._inverse_factorials[1:]:
            total += power * factor
            power = power * y % self.modulus
        return total % self.modulus

    def log(self, u: int) -> tuple[int, int]:
        """The logarithm of a unit over P, known to one digit less, and its Teichmueller part.

        (0, 0) where u is no unit.
        """
        if u % self.prime == 0:
            return 0, 0
        turn = pow(u, self.modulus // self.prime, self.modulus)
        y = (u * pow(turn, -1, self.modulus) - 1) % self.modulus
        total, power = 0, y
        for n in range(1, DIGITS):
            total += (power if n % 2 else -power) * pow(n, -1, self.modulus)
            power = power * y % self.modulus
        return total % self.modulus // self.prime, turn

    def root(self, u: int) -> int:
        """A number that is a root of u where u is a square, and depends on u multiplicatively."""
        return pow(u, self._root_power, self.modulus)

    def scramble(self, name: str, *values: int) -> int:
        """A number that looks random, and is settled by a function's name and its arguments."""
        text = f"{self.prime} {name} {values}".encode()
        return int.from_bytes(blake2b(text, digest_size=40).digest()) % self.modulus
