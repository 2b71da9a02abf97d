"""Which format a file is in, told by its first bytes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers import formats, llm
from tests.properties import each

from . import dirty, llm_logs


@each(
    "value, format",
    [
        (dirty.CHAT, "openai"),
        (dirty.ITEMS, "openai"),
        (dirty.MESSAGES, "anthropic"),
        ([{"role": "user", "content": "Hello"}], "openai"),
        ([{"role": "assistant", "thinking_blocks": [{"type": "thinking"}]}], "openai"),
        ({"system": "Be brief.", "messages": [{"role": "user", "content": "Hello"}]}, "anthropic"),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}], "anthropic"),
        (
            [{"role": "assistant", "content": [{"type": "thinking", "thinking": [{"text": ""}]}]}],
            "openai",
        ),
    ],
)
@each("indent", [None, 2])
def test_a_history_says_whose_it_is(value: object, format: str, indent: int | None) -> None:
    """By the names that one protocol has and the other has not."""
    assert formats.detect(json.dumps(value, indent=indent).encode()) == format


FOREIGN = {
    "a Gemini history": {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
}


@each("name", FOREIGN)
def test_a_format_that_is_not_read_yet_is_named(name: str) -> None:
    """In the place of a complaint about the role of each of its messages."""
    with pytest.raises(InvalidCall, match=f"^this looks like {name}, which cannot be imported yet"):
        formats.detect(json.dumps(FOREIGN[name], indent=1).encode())


def test_what_a_message_says_is_no_mark() -> None:
    """JSON quoted in a text does not decide."""
    quoted = json.dumps({"type": "tool_use", "tool_use_id": 1})
    history = [{"role": "user", "content": quoted}, {"role": "tool", "content": ""}]

    assert formats.detect(json.dumps(history).encode()) == "openai"


def test_a_file_is_known_by_its_path(tmp_path: Path) -> None:
    """JSON lines, a logs database, and lines of our own."""
    lines = tmp_path / "chat.jsonl"
    lines.write_text("\n".join(dirty.lines(dirty.CHAT)))
    own = tmp_path / "own.jsonl"
    with rs.Store("sqlite://") as store:
        own.write_text("".join(f"{line}\n" for line in store.export_lines()))

    assert formats.detect(lines) == "openai"
    assert formats.detect(own) == "lines"
    assert formats.detect(llm_logs.thread(tmp_path / "logs.db")) == "llm"


def own_lines() -> list[str]:
    with rs.Store("sqlite://") as store:
        store.session("chat-42", create=True).append(rs.user("Is 91 prime?"))
        return list(store.export_lines())


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_export_that_an_editor_saved_is_still_one(mark: str, ends: str) -> None:
    """With a mark of its encoding in front and the line ends of another system."""
    text = mark + "".join(line.rstrip("\n") + ends for line in own_lines())

    assert formats.detect(text.encode()) == "lines"
    with rs.Store("sqlite://") as store:
        assert store.import_lines(text.encode().splitlines(keepends=True)).messages == 1


@pytest.mark.parametrize("lost", [1, 2])
def test_an_export_without_its_head_is_read_as_nothing_else(lost: int) -> None:
    """Its own reader says what is missing; another's would make messages of its lines."""
    lines = own_lines()[lost:]

    assert formats.detect("".join(lines).encode()) == "lines"
    with rs.Store("sqlite://") as store, pytest.raises(InvalidCall, match="line 1: the first line"):
        store.import_lines(lines)


def test_another_database_is_no_history(tmp_path: Path) -> None:
    """An SQLite file is llm's only where it has llm's tables."""
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE conversations (id TEXT)")
    file.close()

    with pytest.raises(InvalidCall, match="not a logs database of llm"):
        formats.detect(path)


_OPEN_AND_CLOSE = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
other.execute("SELECT count(*) FROM messages").fetchone()
other.close()
"""


@pytest.mark.parametrize(
    "read",
    [formats.detect, lambda path: list(formats.conversations(path, format="openai")), llm.check],
)
def test_a_file_of_an_open_store_is_not_opened_by_another_library(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    """By its name, a link, a hard link or its log: closing it would drop the store's locks, and
    the next process to close the file would delete the log that the store writes to."""
    path = tmp_path / "chat.db"
    names = [path, Path(f"{path}-wal"), Path(f"{path}-shm"), tmp_path / "link", tmp_path / "hard"]
    with rs.Store(f"sqlite:///{path}") as store:
        session = store.session("chat-42", create=True)
        session.append(rs.user("Is 91 prime?"))
        (tmp_path / "link").symlink_to(path)
        (tmp_path / "hard").hardlink_to(path)
        for name in names:
            with pytest.raises(InvalidCall, match="a store of this process has it open"):
                read(name)
        (tmp_path / "hard").unlink()
        subprocess.run([sys.executable, "-c", _OPEN_AND_CLOSE, str(path)], check=True)
        assert Path(f"{path}-wal").exists()
    with pytest.raises(InvalidCall, match="not a logs database of llm"):
        formats.detect(path)


@each("head", [b"", b"hello", b"{}", b"[1, 2]", b"\xff{", b"%PDF-1.7"])
def test_what_is_no_history_is_refused(head: bytes) -> None:
    """The error lists what can be imported."""
    with pytest.raises(InvalidCall, match="not a history") as refused:
        formats.detect(head)

    assert "openai" in (refused.value.hint or "")


def test_an_unknown_format_is_refused() -> None:
    """Those that there are stand in the hint."""
    with pytest.raises(InvalidCall, match="no importer for 'slack'") as refused:
        formats.conversations([], format="slack")

    assert refused.value.hint == f"one of: {', '.join(formats.READERS)}"


def test_lines_need_a_format_that_is_named() -> None:
    """Only of a file do the first bytes say what it is."""
    with pytest.raises(InvalidCall, match="do not say what format"):
        formats.conversations([])


def test_our_own_lines_have_their_own_way_in() -> None:
    """The hint names it."""
    with pytest.raises(InvalidCall) as refused:
        formats.conversations([], format="lines")

    assert "import_lines" in (refused.value.hint or "")
