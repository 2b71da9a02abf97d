"""An error goes where its worker's answer goes: into another process, and out of it again."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation import json_values
from reasoning_store.ledger.database import opening
from tests.properties import each

KINDS: list[type[rs.ReasoningStoreError]] = [
    kind
    for name in rs.__all__
    if isinstance(kind := getattr(rs, name), type) and issubclass(kind, rs.ReasoningStoreError)
]
OWN: dict[type, dict[str, Any]] = {
    rs.SettingError: {"key": "reasoning.effort"},
    rs.Conflict: {"stored": ("m1", 4)},
    rs.MissingExtra: {"extra": "postgresql"},
}
"""What a kind of error is made with next to its message and its hint."""


def made(kind: type[rs.ReasoningStoreError]) -> rs.ReasoningStoreError:
    own = OWN.get(kind, {})
    hint = {} if kind is rs.MissingExtra else {"hint": "try this"}
    return kind("what was wrong", **own, **hint)


def told(error: BaseException) -> tuple[Any, ...]:
    """Return all that an error says."""
    hint = getattr(error, "hint", None)
    return type(error), str(error), error.args, hint, vars(error)


@each("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@each("kind", KINDS)
def test_an_error_survives_pickle(kind: type[rs.ReasoningStoreError], protocol: int) -> None:
    """Its kind, its words, its hint, and what it has of its own."""
    error = made(kind)

    assert told(pickle.loads(pickle.dumps(error, protocol))) == told(error)


@each("kind", [kind for kind in KINDS if kind is not rs.MissingExtra])
def test_an_error_that_says_nothing_of_its_own_survives_pickle(
    kind: type[rs.ReasoningStoreError],
) -> None:
    """What its kind says stays said."""
    error = kind()

    assert told(pickle.loads(pickle.dumps(error))) == told(error)


def test_where_a_text_is_malformed_survives_pickle() -> None:
    """A kind that puts its message together does not do so twice."""
    error = json_values.Malformed("not JSON", 4)

    assert told(pickle.loads(pickle.dumps(error))) == told(error)


def test_what_was_stored_first_comes_with_its_conflict() -> None:
    """As the row that it is."""
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(rs.user("Is it?"), idempotency_key="k1")
        with pytest.raises(rs.Conflict) as caught:
            session.append(rs.user("Is it not?"), idempotency_key="k1")

    error: rs.Conflict = pickle.loads(pickle.dumps(caught.value))
    assert error.stored == caught.value.stored
    assert error.stored.message == rs.user("Is it?")


def _missing() -> None:
    raise rs.MissingExtra("postgresql needs a driver", extra="postgresql")


def test_an_error_of_a_worker_process_reaches_who_waits_for_it() -> None:
    """One that cannot be read again there breaks the whole pool."""
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as workers,
        pytest.raises(rs.MissingExtra) as caught,
    ):
        workers.submit(_missing).result(timeout=120)

    assert caught.value.extra == "postgresql"


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("error", [rs.InvalidCall("no", hint="do this"), rs.StoreBusy()])
def test_a_traceback_shows_the_hint(error: rs.ReasoningStoreError, carried: bool) -> None:
    """Once, also of an error that comes from another process."""
    if carried:
        error = pickle.loads(pickle.dumps(error))

    assert "".join(traceback.format_exception(error)).count(f"hint: {error.hint}") == 1


ABSENT: dict[str, Callable[[rs.Store], object]] = {
    "'chat-42'": lambda store: store.session("chat-42"),
    "branch 7": lambda store: store.session("s").branch(7),
    "position 9": lambda store: store.session("s").get(9),
    "compaction 3": lambda store: store.session("s").undo(3),
    "'terse'": lambda store: store.settings.profiles.get("terse"),
    "'prose'": lambda store: store.session("s").settings.use("prose"),
}


@each("named", ABSENT)
def test_what_is_not_found_is_named(named: str) -> None:
    """A log of many such errors says which things were asked for."""
    with rs.Store("sqlite://") as store:
        store.session("s", create=True).append(rs.user("Is it?"))

        with pytest.raises(rs.NotFound, match=named):
            ABSENT[named](store)


def test_a_handle_shows_what_it_is_of_and_no_password() -> None:
    """In a log or a debugger, before and after a reply is recorded."""
    with rs.Store("sqlite://") as store:
        session = store.for_owner("user-7").session("chat-42", create=True)
        body = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
        reply = session.record(body, provider="openai", api="openai.chat")
        shown = [repr(store), repr(store.for_owner("user-7")), repr(session), repr(reply)]
        list(reply)
        shown.append(repr(reply))

    assert shown == [
        "<Store sqlite://>",
        "<Owner 'user-7'>",
        "<Session 'chat-42' of 'user-7', branch 1>",
        "<Recording not begun in 'chat-42'>",
        "<Recording complete at 1 in 'chat-42'>",
    ]
    secret = "postgresql+psycopg://anna:secret@db.example/chat?password=secret"
    assert opening.without_secrets(secret) == "postgresql://db.example/chat"
