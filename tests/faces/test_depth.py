"""How far a verb is from its SQL: a reader who looks for a statement goes through few functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs

MOST = 6
"""The functions between a verb and the statement that it runs."""
PACKAGE = str(Path(rs.__file__).parent)

VERBS: dict[str, Callable[[rs.Store, rs.Session], object]] = {
    "get": lambda store, session: session.get(2),
    "history": lambda store, session: session.history(),
    "usage": lambda store, session: session.context().usage(),
    "head": lambda store, session: session.head(),
    "branches": lambda store, session: session.branches(),
    "compactions": lambda store, session: session.compactions(),
    "settings": lambda store, session: session.settings.resolved(),
    "budget": lambda store, session: session.budget(limit=1000),
    "sessions": lambda store, session: store.sessions(),
    "session": lambda store, session: store.session("chat"),
    "thoughts": lambda store, session: store.thoughts(),
    "report": lambda store, session: store.report(),
}


def statement_paths(verb: Callable[[], object]) -> list[list[str]]:
    """Return the functions under way at each statement of a verb, the outermost first."""
    stack: list[str] = []
    found: list[list[str]] = []

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            stack.append(frame.f_code.co_filename + " " + frame.f_code.co_qualname)
        elif event == "return" and stack:
            stack.pop()
        elif event == "c_call" and argument.__name__ == "execute":
            found.append([name for name in stack if name.startswith(PACKAGE)])

    sys.setprofile(watch)
    try:
        verb()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_few_functions_are_between_a_verb_and_its_statement(tmp_path: Path, verb: str) -> None:
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        session = store.session("chat", create=True)
        session.append([rs.user("Is 91 prime?"), rs.assistant("No.")])
        paths = statement_paths(lambda: VERBS[verb](store, session))

    assert paths
    # Without the verb itself, and the method of the statement.
    assert max(len(path) - 2 for path in paths) <= MOST, max(paths, key=len)
