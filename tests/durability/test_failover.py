"""A primary is killed and its standby promoted: what was acknowledged is there, once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

import reasoning_store as rs
from reasoning_store.diagnosis import standby_state
from reasoning_store.ledger.database import opening, topology
from tests.docs.pages import CHECKOUT, read

from . import programs
from .pooler import pooler
from .processes import Told, crowd, running
from .server import Server, server
from .whole import check_whole

pytestmark = pytest.mark.long
PAGE = CHECKOUT / "docs" / "howto" / "postgresql.md"
WRITERS, TURNS, BEFORE, AFTER = 4, 60, 15, 20
_PATIENCE = 120.0


@contextmanager
def primary_and_standby(*, synchronous: bool) -> Iterator[tuple[Server, Server]]:
    with server() as primary, server(copy_of=primary) as standby:
        _wait_for(primary, "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")
        if synchronous:
            # On the primary alone: a promoted standby must not wait for a standby of its own.
            primary.ask(f"ALTER SYSTEM SET synchronous_standby_names = '\"{standby.folder.name}\"'")
            primary.ask("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
            primary.ask("SELECT pg_reload_conf()")
            _wait_for(primary, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        with rs.Store(url_of(primary, standby)) as store:
            store.session("s", create=True)
        yield primary, standby


def url_of(*servers: Server) -> str:
    hosts = "&".join(f"host={one.folder}" for one in servers)
    return f"postgresql+psycopg://postgres@/postgres?{hosts}&target_session_attrs=read-write"


def _wait_for(asked: Server, statement: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not asked.ask(statement):
        assert time.monotonic() < end, statement
        time.sleep(0.05)


def check_each_once(url: str, told: list[list[Told]]) -> None:
    """Each acknowledged turn is at the positions that its writer was told, and only there."""
    with rs.Store(url) as store:
        there = store.session("s").history()
    assert [item.position for item in there] == list(range(1, 2 * WRITERS * TURNS + 1))
    for writer, lines in enumerate(told):
        stored = [line[1:] for line in lines if line[0] == "stored"]
        assert [number for number, _ in stored] == list(range(TURNS))
        for number, (first, second) in stored:
            assert there[first - 1].message == rs.user(f"w{writer} {number}")
            assert there[second - 1].message == programs.turn(number)[1]
    check_whole(url)


def test_a_fail_over_to_a_synchronous_standby_loses_and_repeats_nothing() -> None:
    """Four writers go on at the standby by the one URL that names both."""
    with primary_and_standby(synchronous=True) as (primary, standby):
        url = url_of(primary, standby)
        each = [(url, f"w{n}", TURNS) for n in range(WRITERS)]
        with crowd(programs.append_in_spite_of_all, each) as children:
            for child in children:
                child.hear_until("stored", BEFORE)
            primary.kill()
            standby.promote()
            told = [child.finish() for child in children]

        check_each_once(url, told)


def test_a_rebuilt_standby_takes_writes_once_it_is_promoted() -> None:
    """By the lines of the page, made after the primary was told to wait; without them doctor warns
    of what the copy would do."""
    (steps,) = [block.text for block in read(PAGE) if block.text.startswith("pg_basebackup ")]
    of_copy = steps.partition("\n")[2]
    with (
        primary_and_standby(synchronous=True) as (primary, _),
        server(copy_of=primary) as copied,
        server(copy_of=primary, prepare=of_copy) as rebuilt,
    ):
        warnings = [_standby_warning(one) for one in (copied, rebuilt)]
        primary.kill()
        rebuilt.promote()
        with rs.Store(url_of(rebuilt)) as store:
            assert store.session("s").append(rs.user("after the fail-over")).position == 1

    assert ["every write would wait" in warning for warning in warnings] == [True, False]


def _standby_warning(standby: Server) -> str:
    with closing(opening.open_any_version(standby.url)) as database:
        _, warning = standby_state(database.read(topology.read_settings))
    return warning


def test_a_fail_over_behind_pgbouncer_loses_and_repeats_nothing() -> None:
    """Four writers share three connections in transaction mode, which move to the standby."""
    with (
        primary_and_standby(synchronous=True) as (primary, standby),
        pooler(primary) as between,
    ):
        each = [(between.url, f"w{n}", TURNS) for n in range(WRITERS)]
        with crowd(programs.append_in_spite_of_all, each) as children:
            for child in children:
                child.hear_until("stored", BEFORE)
            primary.kill()
            standby.promote()
            between.move_to(standby)
            told = [child.finish() for child in children]

        check_each_once(between.url, told)


def test_a_fail_over_to_an_asynchronous_standby_loses_what_was_acknowledged() -> None:
    """The same check sees the loss, so it would see one in the tests above."""
    with primary_and_standby(synchronous=False) as (primary, standby):
        url = url_of(primary, standby)
        with running(programs.append_in_spite_of_all, url, "w0", TURNS) as writer:
            writer.hear_until("stored", BEFORE)
            primary.hold_back_replication()
            writer.hear_until("stored", AFTER)
            writer.kill()
            primary.kill()
            standby.promote()
            acknowledged = [line[1] for line in writer.heard if line[0] == "stored"]

        with rs.Store(url) as store:
            kept = {item.message.text for item in store.session("s").history()}
        assert [number for number in acknowledged if f"w0 {number}" not in kept]
