"""Many processes write at once: no error, no gap, no duplicate, each writer's order kept."""

from __future__ import annotations

import pytest

import reasoning_store as rs
from tests.durability.processes import crowd, gate
from tests.durability.whole import check_whole

from . import programs

PROCESSES = 8
TURNS = [pytest.param(40, id="short"), pytest.param(400, id="full", marks=pytest.mark.long)]


def written(url: str, sessions: list[str], turns: int) -> None:
    """Let the processes write, and compare what is there with what they were told."""
    start = gate(PROCESSES)
    each = [(start, url, sessions, f"w{n}", turns) for n in range(PROCESSES)]
    with crowd(programs.write_turns, each) as children:
        told = {f"w{n}": child.finish() for n, child in enumerate(children)}

    with rs.Store(url) as store:
        there = {id: store.session(id).history() for id in sessions}
    for items in there.values():
        assert [item.position for item in items] == list(range(1, len(items) + 1))
    assert sum(len(items) for items in there.values()) == 2 * turns * PROCESSES
    for writer, lines in told.items():
        stored = [line[1:] for line in lines if line[0] == "stored"]
        assert len(stored) == turns
        for number, (id, first, second) in enumerate(stored):
            assert second == first + 1
            assert there[id][first - 1].message == programs.question(writer, number)
            assert there[id][second - 1].message == programs.answer(writer, number)
        for id in sessions:
            mine = [first for name, first, _ in stored if name == id]
            assert mine == sorted(mine)
    check_whole(url)


@pytest.mark.parametrize("turns", TURNS)
def test_eight_processes_write_into_one_session(url: str, turns: int) -> None:
    """Each turn stands whole where its writer was told."""
    written(url, ["s"], turns)


@pytest.mark.parametrize("turns", TURNS)
def test_eight_processes_write_into_many_sessions(url: str, turns: int) -> None:
    """All of them into all of the sessions."""
    written(url, [f"s{n}" for n in range(5)], turns)


ROUNDS = [pytest.param(2, id="short"), pytest.param(20, id="full", marks=pytest.mark.long)]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_same_key_fifty_times_at_once_is_one_row(url: str, rounds: int) -> None:
    """Five processes with ten threads each: fifty equal answers, one of them the new one."""
    with rs.Store(url) as store:
        store.session("s", create=True)
    with crowd(programs.append_under_one_key, [(gate(5), url, 10, rounds)] * 5) as children:
        told = [line for child in children for line in child.finish() if line[0] == "stored"]

    with rs.Store(url) as store:
        there = store.session("s").history()
    assert sorted(item.message.text for item in there) == sorted(f"once {n}" for n in range(rounds))
    for round_ in range(rounds):
        answers = [line[2:] for line in told if line[1] == round_]
        assert len(answers) == 50
        ((id, position),) = {(id, position) for id, position, _ in answers}
        assert there[position - 1].id == id
        assert [is_new for *_, is_new in answers].count(True) == 1


def test_after_lets_one_of_many_submit(url: str) -> None:
    """Two tabs, or eight: the others learn that someone was first, and nothing is stored."""
    with rs.Store(url) as store:
        store.session("s", create=True).append(rs.user("Hi"))
    start = gate(8)
    with crowd(programs.submit_after, [(start, url, 1, f"t{n}") for n in range(8)]) as children:
        ends = [child.finish()[-1] for child in children]

    assert sorted(ends) == [("refused",)] * 7 + [("stored", 2)]
    with rs.Store(url) as store:
        assert len(store.session("s").history()) == 2
