"""How many cases a promise is tried with: all in `make test-long`, some of them in `make test`.

A property has a tenth of its examples in `make test`. A test of ``each`` case of a table is one
test, whose failure names the case.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

QUICK = "quick"
THOROUGH = "thorough"
_OF_A_HUNDRED = {QUICK: 10, THOROUGH: 100}
"""The examples of a property that names no number."""

Test = Callable[..., None]


def load_profile(name: str, *, is_repeatable: bool) -> None:
    """Choose how thoroughly promises are tried; a repeatable run has the same examples.

    Time never decides a test, and examples may share a folder or a database.
    """
    settings.register_profile(
        name,
        max_examples=_OF_A_HUNDRED[name],
        derandomize=is_repeatable,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile(name)


def is_thorough() -> bool:
    """Whether the run tries everything."""
    return settings().max_examples == _OF_A_HUNDRED[THOROUGH]


def examples(thorough: int) -> settings:
    """Try a property with so many examples where the run is thorough."""
    share = settings().max_examples / _OF_A_HUNDRED[THOROUGH]
    return settings(max_examples=max(3, round(thorough * share)))


def each(names: str, cases: Iterable[Any], *, thinned: int = 1) -> Callable[[Test], Test]:
    """Try a test with each case, as one test: `names` as ``pytest.mark.parametrize`` has them.

    In `make test`, one of ``thinned`` cases is tried, and the next one when the same test asks
    again, as a test of two tables does.
    """
    parameters = [name.strip() for name in names.split(",")]
    table = list(cases)
    assert table, f"no cases of {names}"
    tries = Counter[str]()

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @wraps(test)
        def try_each(**arguments: Any) -> None:
            step = 1 if is_thorough() else thinned
            test_id = os.environ["PYTEST_CURRENT_TEST"]
            first = (crc32(test_id.encode()) + tries[test_id]) % step
            tries[test_id] += 1
            for case in table[first % len(table) :: step]:
                values = [case] if len(parameters) == 1 else case
                try:
                    test(**arguments, **dict(zip(parameters, values, strict=True)))
                except BaseException as error:
                    error.add_note(f"the case: {names} = {case}")
                    raise

        left = [p for p in signature.parameters.values() if p.name not in parameters]
        try_each.__dict__["__signature__"] = signature.replace(parameters=left)
        return pytest.mark.thinned(try_each) if thinned > 1 else try_each

    return decorate
