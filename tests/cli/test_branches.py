"""Branches from the command line: a change makes one, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here


def texts(here: Here, words: str) -> list[str]:
    """Return the texts of the messages that ``show`` prints."""
    items = here(f"show {words} --json").data
    return [block["text"] for one in items for block in one["message"]["blocks"] if "text" in block]


def test_an_edit_makes_the_current_branch_and_keeps_the_old_one(here: Here) -> None:
    """The new branch ends with the new message."""
    before = texts(here, "chat-42")
    number = here("branches edit chat-42:1 'Is 97 prime?'").out.strip()

    assert texts(here, "chat-42") == ["Is 97 prime?"]
    assert texts(here, "chat-42 --branch 1") == before
    assert [one["id"] for one in here("branches chat-42 --json").data if one["current"]] == [
        int(number)
    ]


def test_an_edit_reads_a_text_from_standard_input(
    here: Here, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where TEXT is a dash."""
    (folder / "question.txt").write_text("Is 97 prime?", "utf-8")
    with open(folder / "question.txt", encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        here("branches edit chat-42:1 -")

    assert texts(here, "chat-42") == ["Is 97 prime?"]


def test_an_edit_takes_the_id_of_a_message(here: Here) -> None:
    """As ``show --ids`` prints it."""
    id = here("show chat-42 --json").data[0]["id"]

    assert here(f"branches edit chat-42:{id} Hello").code == Exit.DONE
    assert texts(here, "chat-42") == ["Hello"]


def test_a_tool_response_is_not_replaced_by_a_text(here: Here) -> None:
    """It would leave its call without a response; nothing is changed."""
    items = here("show chat-42 --json").data
    position = next(one["position"] for one in items if one["message"]["role"] == "tool")
    ran = here(f"branches edit chat-42:{position} Sunny")

    assert ran.code == Exit.USAGE
    assert "role tool" in ran.err
    assert len(here("branches chat-42 --json").data) == 1


def test_regenerate_leaves_the_current_branch_until_a_reply_arrives(here: Here) -> None:
    """The branch is there, and ends before the reply."""
    number = here("branches regenerate chat-42:2").out.strip()

    assert number == "2"
    assert len(here(f"show chat-42 --branch {number} --json").data) == 1
    assert len(here("show chat-42 --json").data) > 1


def test_activate_moves_the_current_branch(here: Here) -> None:
    """To a fork, and back."""
    here("branches fork chat-42:3 --activate")
    forked = len(here("show chat-42 --json").data)
    here("branches activate chat-42 1")

    assert forked == 2
    assert len(here("show chat-42 --json").data) > forked
