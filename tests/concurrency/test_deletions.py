"""Sessions that several processes change and delete at once."""

from __future__ import annotations

import reasoning_store as rs
from tests.durability.processes import crowd, gate

from . import programs


def test_processes_that_change_metadata_at_once_lose_no_key(url: str) -> None:
    """Each writes keys of its own, which are all there at the end."""
    with rs.Store(url) as store:
        store.session("s", create=True, metadata={"kept": True})
    start = gate(4)
    with crowd(programs.change_metadata, [(start, url, f"w{n}", 15) for n in range(4)]) as children:
        for child in children:
            child.finish()

    with rs.Store(url) as store:
        found = store.session("s").metadata
    assert found == {"kept": True, **{f"w{n}.{i}": i for n in range(4) for i in range(15)}}


def test_a_session_that_is_deleted_while_processes_append_is_gone(url: str) -> None:
    """Each learns so by a named error; no row of it comes back."""
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        store.session("other", create=True).append(rs.user("Hello."))
        start = gate(4)
        arguments = [(start, url, f"w{n}") for n in range(4)]
        with crowd(programs.append_until_deleted, arguments) as children:
            for child in children:
                child.hear_until("stored")
            deleted = session.delete()
            ends = [child.finish()[-1] for child in children]

        assert deleted.sessions == 1
        assert deleted.messages == sum(2 * count for _, count in ends)
        assert [one.id for one in store.sessions().items] == ["other"]
        assert store.verify().ok
