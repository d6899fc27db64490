"""Random numbers as an argument: a seed gives a stream of its own, the same on every machine.

The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd


class Draws:
    """A stream of whole numbers, each of 64 bits, that depends on nothing but its seed."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def word(self) -> int:
        """The next number, evenly from 0 to 2^64 - 1."""
        self._state = (self._state + _STEP) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1; uneven by less than `bound` / 2^64."""
        return self.word() * bound >> 64

    def split(self) -> Draws:
        """A further stream, independent of what this one gives later."""
        return Draws(self.word())
