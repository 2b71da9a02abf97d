"""Pages that work on one conversation from several processes, by the ids of its messages."""

from __future__ import annotations

import multiprocessing

import reasoning_store as rs
from tests.durability.processes import crowd, gate, running

from . import programs


def test_writers_that_annotate_one_message_lose_nothing(url: str) -> None:
    """Each keeps its facts, whatever the others keep meanwhile."""
    times, names = 20, ("a", "b")
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        id = session.append(rs.user("one")).id
        start = gate(len(names))
        with crowd(programs.annotate, [(start, url, id, name, times) for name in names]) as pages:
            for page in pages:
                page.finish()
        kept = session.get(id).annotations

    assert kept == {f"{name} {number}": number for name in names for number in range(times)}


def test_a_stale_page_in_another_process_edits_what_it_shows(url: str) -> None:
    """Though the conversation has moved to another branch since."""
    go, push = multiprocessing.Pipe(duplex=False)
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        first, second = session.append([rs.user("one"), rs.user("two")])
        with running(programs.edit_shown, go, url, second.id) as page:
            page.hear_until("shown")
            session.edit(first.id, rs.user("another page"))
            session.append(rs.user("goes on"))
            push.send(None)
            _, branch = page.hear_until("edited")

        shown = [item.message.text for item in store.session("s").history()]
        assert [item.message.text for item in session.history()] == ["another page", "goes on"]
        assert store.session("s").branch_id == branch
    push.close()
    go.close()

    assert shown == ["one", "from a stale page"]
