"""A store that refuses a call, and what is not changed by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reasoning_store as rs

Verb = Callable[[rs.Store, rs.Session], Any]


def refused(store: rs.Store, verb: Verb) -> rs.InvalidCall:
    """Return the error of a verb that must change nothing."""
    before = list(store.export_lines())
    with pytest.raises(rs.InvalidCall) as caught:
        verb(store, store.session("chat"))
    assert list(store.export_lines()) == before
    return caught.value
