"""kill -9 while a reply streams: whatever anyone had seen of it is there, as interrupted."""

from __future__ import annotations

import random
import time
from itertools import count

import pytest

import reasoning_store as rs

from . import programs
from .processes import running
from .whole import check_whole


def seen_growing(session: rs.Session) -> rs.results.Stored:
    """Wait until some of the reply that is arriving can be read, and return it."""
    while True:
        last = session.history()[-1]
        if last.message.status == "streaming" and last.message.text:
            return last
        time.sleep(0.002)


def kill_recorders(url: str, kills: int) -> None:
    chance = random.Random(20_261_118)
    stored: dict[int, str] = {}
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        for round_ in range(kills):
            session.append(rs.user(f"round {round_}"))
            with running(programs.record_replies, url, "s", round_) as child:
                if whole := chance.randint(0, 2):
                    child.hear_until("stored", whole)
                child.hear_until("begun")
                seen = seen_growing(session)
                time.sleep(chance.uniform(0, 0.02))
                child.kill()
            stored |= {told[1]: told[2] for told in child.heard if told[0] == "stored"}

            while (last := session.history()[-1]).message.status == "streaming":
                time.sleep(0.02)
            session.append(rs.user("What was that?"))

            assert session.get(last.position).message == last.message
            kept = session.get(seen.position).message
            # It may have come to its end between the look at it and the kill.
            assert kept.status in ("interrupted", "complete")
            assert kept.text.startswith(seen.message.text)
            assert kept.thinking == seen.message.thinking
            assert all("think" not in item.message.text for item in session.history())
            assert stored == {place: session.get(place).message.text for place in stored}
            check_whole(url)


def kill_at_statements(url: str, awaited: bool, step: int) -> int:
    """Kill at the end of a reply of three choices, and look; return at how many statements."""
    for last in count(0, step):
        with running(programs.record_choices_and_die, url, f"s{last}", last, awaited) as child:
            while child.hear():
                pass
            dead = child.ended() != 0
        with rs.Store(url) as store:
            session = store.session(f"s{last}")
            branches = [session.branch(branch.id) for branch in session.branches()]
            texts = [branch.history()[2:] for branch in branches]
            counts = {branch.usage().raw for branch in branches}
        if not dead or len(branches) > 1:
            assert [item.message.text for (item,) in texts] == ["choice 0", "choice 1", "choice 2"]
            assert len(counts) == 1
        else:
            assert all(item.message.status != "complete" for item in texts[0])
        check_whole(url)
        if not dead:
            return last
    raise AssertionError


def test_a_killed_recorder_leaves_what_had_been_seen(url: str) -> None:
    """Behind whole replies, which stay as they were told."""
    kill_recorders(url, 2)


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("face", ["Store", "AsyncStore"])
def test_a_reply_and_its_further_choices_are_there_together_or_not_at_all(
    url: str, face: str, step: int
) -> None:
    """Killed at every statement of the step that ends it."""
    assert kill_at_statements(url, face == "AsyncStore", step) >= 12


@pytest.mark.long
def test_many_killed_recorders_leave_what_had_been_seen(url: str) -> None:
    """At random words of random replies."""
    kill_recorders(url, 30)
