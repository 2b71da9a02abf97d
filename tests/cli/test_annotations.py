"""Facts kept with messages, and messages named by their ids, from the command line."""

from __future__ import annotations

import re

from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here


def test_facts_are_kept_and_printed(here: Here) -> None:
    """A value is JSON, or else text; null removes a key."""
    assert here("annotate chat-42:2 rating=1 why='too short' at=2026-01-02").code == Exit.DONE

    ran = here("annotate chat-42:2 rating=null --json")

    assert ran.data["annotations"] == {"why": "too short", "at": "2026-01-02"}
    assert here("show chat-42 --json").data[1]["annotations"] == ran.data["annotations"]
    assert re.search(r'why +"too short"', here("annotate chat-42:2").out)


def test_a_message_is_named_by_its_id(here: Here) -> None:
    """Show prints the ids when it is asked to."""
    id = here("show chat-42 --json").data[1]["id"]

    assert id not in here("show chat-42").out
    assert f"[2] assistant {id}" in here("show chat-42 --ids").out
    assert here(f"annotate chat-42:{id} rating=1 --json").data["position"] == 2
    assert here(f"show chat-42:{id}").out == here("show chat-42:2").out
    assert here(f"branches fork chat-42:{id}").code == Exit.DONE
    assert here(f"erase chat-42 --position {id} --yes").code == Exit.DONE
    assert here("show chat-42 --json").data[1]["message"]["status"] == "erased"


def test_what_names_no_message_or_no_fact_is_refused(here: Here) -> None:
    """Each with the form that is wanted; nothing is changed."""
    for line, says in {
        "annotate chat-42 rating=1": "is not SESSION:POSITION",
        "annotate chat-42:2 rating": "is not KEY=VALUE",
    }.items():
        ran = here(line)
        assert (ran.code, says in ran.err) == (Exit.USAGE, True), ran.err
    for place in ("0", "nowhere"):
        assert here(f"annotate chat-42:{place} rating=1").code == Exit.NOT_FOUND
    assert here("annotate chat-42:2 --json").data["annotations"] == {}
