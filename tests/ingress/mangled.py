"""Streams as no provider documents them: events out of order, repeated, cut off."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any


def mangle(events: Sequence[Any], dice: Random) -> list[Any]:
    """Return the events with some of them repeated, moved or left out; often none is."""
    out = [*events]
    for _ in range(dice.choice((0, 1, 1, 2, 5))):
        out.insert(dice.randrange(len(out) + 1), dice.choice(out))
    for _ in range(dice.choice((0, 0, 1, 3))):
        out.insert(dice.randrange(len(out)), out.pop(dice.randrange(len(out))))
    if dice.random() < 0.2:
        dice.shuffle(out)
    return out if dice.random() < 0.7 else out[: dice.randrange(len(out) + 1)]
