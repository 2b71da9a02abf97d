"""What a row of figures says: how wide it is, its ratio to another, how it grows, a verdict.

A ratio is taken round by round, ours over theirs in the same round, and then the median:
what slows the machine for a while slows both, and leaves the ratio alone. A growth exponent
is the slope of the figure over the size, both as logarithms: 1 is linear, 0 is flat.

Pure arithmetic. It must not know a clock, a workload or a store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Literal, TypeAlias

NOISY = 0.30
"""From here on the quartiles of a ratio lie too far apart, as a share of its median."""
LINEAR = 1.10
"""The exponent that still counts as linear: caches and memory bend a straight line."""
FLAT = 0.10
"""The exponent that still counts as flat: ten times as long costs a quarter more at most."""
NARROWLY = 0.30
"""By how much noise alone can bend a growth: a step of ten that came out twice as slow."""
CLASS = 1.5
"""A class of time is met by what takes up to this much of its figure: machines differ."""

Verdict: TypeAlias = Literal["green", "floor", "red", "noisy", "unmeasured"]
"""``floor``: missed, and so it is by the bare driver, which does what has to be done alone."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some figures, the quartiles around it, and the least of them."""

    median: float
    low: float
    high: float
    least: float
    count: int

    @property
    def width(self) -> float:
        """How far the quartiles lie apart, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    @property
    def noisy(self) -> bool:
        """Whether they lie too far apart to tell of anything but the machine."""
        return self.width > NOISY


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the quartiles of one figure or more."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0], values[0], 1)
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high, min(values), len(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return ours over theirs: round by round where both took turns."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def best(rivals: Mapping[str, Sequence[float]]) -> str | None:
    """Return which of the rivals has the smallest median, if there is any."""
    return min(rivals, key=lambda name: median(rivals[name]), default=None)


def verdict(measured: Spread, at_most: float) -> Verdict:
    """Judge a ratio, unless it is too wide to tell of anything but the machine.

    Even then it is judged where the nearer quartile is twice the bound, or half of it.
    """
    clear = measured.low > 2 * at_most or measured.high < at_most / 2
    if measured.noisy and not clear:
        return "noisy"
    return "green" if measured.median <= at_most else "red"


def beside_the_floor(
    missed: Verdict, floor: Spread, at_most: float, within: Verdict | None
) -> Verdict:
    """Judge anew what is missed against a rival, where the floor stands in the same race.

    ``floor`` is the floor's own ratio to that rival, ``within`` whether ours is as near to
    the floor as is promised. What the floor misses, no one who does the work can meet; but a
    floor that is too wide to be judged excuses no one.
    """
    beyond = within == "green" and verdict(floor, at_most) == "red"
    return "floor" if missed != "green" and beyond else missed


def exponent(points: Mapping[int, float]) -> float | None:
    """Return the slope of the best line through the logarithms; None of less than two sizes."""
    if len(points) < 2:
        return None
    xs = [math.log(size) for size in points]
    ys = [math.log(value) for value in points.values()]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    up = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return up / sum((a - x) ** 2 for a in xs)


def last_exponent(points: Mapping[int, float]) -> float | None:
    """Return the slope between the two largest sizes, where fixed costs are drowned."""
    largest = sorted(points)[-2:]
    return exponent({size: points[size] for size in largest})


def growth(ours: Mapping[int, Spread], floor: Mapping[int, Spread], at_most: float) -> Verdict:
    """Judge a growth by its steeper exponent, of all sizes or of the last step.

    What grows is the quickest go at each size, which noise touches least. Where the floor
    itself grows faster on this machine (its caches are full), ours may grow as fast as that;
    but nothing that has to be flat may. Noisy is a growth that is narrowly missed by figures
    that are too wide to tell.
    """
    mine = quickest(ours)
    slopes = [slope for slope in (exponent(mine), last_exponent(mine)) if slope is not None]
    if not slopes:
        return "unmeasured"
    bent = last_exponent(quickest(floor)) if at_most >= 1 else None
    allowed = at_most if bent is None else max(at_most, bent + 0.05)
    if max(slopes) <= allowed:
        return "green"
    narrowly = max(slopes) <= allowed + NARROWLY
    return "noisy" if narrowly and any(one.noisy for one in ours.values()) else "red"


def quickest(by_size: Mapping[int, Spread]) -> dict[int, float]:
    """Return the quickest go at each size."""
    return {size: one.least for size, one in by_size.items()}
