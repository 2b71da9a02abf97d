"""While much is read the garbage collector waits, and afterwards it is as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from reasoning_store.ledger.collecting import uncollected


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


@uncollected
def is_collecting(*, fails: bool = False) -> bool:
    if fails:
        raise ZeroDivisionError
    return gc.isenabled()


def test_the_collector_waits_and_goes_on() -> None:
    """Also where the verb fails."""
    assert not is_collecting()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        is_collecting(fails=True)
    assert gc.isenabled()


def test_a_collector_that_was_turned_off_stays_off() -> None:
    """That is the application's choice."""
    gc.disable()

    assert not is_collecting()
    assert not gc.isenabled()


def test_reading_within_reading_waits_once() -> None:
    """The outermost turns it on again."""

    @uncollected
    def outer() -> bool:
        is_collecting()
        return gc.isenabled()

    assert not outer()
    assert gc.isenabled()
