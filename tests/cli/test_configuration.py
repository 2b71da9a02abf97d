"""Defaults of options from a file: which hold, and which are refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here

FILE = "reasoning-store/config.toml"


def configure(folder: Path, text: str) -> None:
    """Write the user's own configuration file."""
    (folder / FILE).parent.mkdir(exist_ok=True)
    (folder / FILE).write_text(text, "utf-8")


def test_a_key_is_the_default_of_its_option(here: Here, folder: Path) -> None:
    """Words and variables are stronger."""
    configure(folder, "[request]\nlimit = 7000\nwith = ['includeInContext=true']\n")

    assert "/7000" in here("request chat-42 --tokens").out
    assert "/100" in here("request chat-42 --tokens --limit 100").out


def test_a_command_without_a_name_has_its_table(here: Here, folder: Path) -> None:
    """The list of sessions has the options of ``sessions list``."""
    configure(folder, "[sessions.list]\nlimit = 1\n")

    assert len(here("sessions --json").data["sessions"]) == 1


def test_the_top_names_the_database_and_the_form(
    here: Here, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every command."""
    monkeypatch.delenv("REASONING_STORE_URL")
    configure(folder, "db = 'chat.db'\njson = true\n")
    ran = here("show chat-42")

    assert ran.data[0]["position"] == 1


def test_a_variable_names_the_owner(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the owner of SESSION, and no filter of commands that work on all owners."""
    monkeypatch.setenv("REASONING_STORE_OWNER", "ada")

    assert here("show chat-42").code == Exit.NOT_FOUND
    assert "chat-42" in here("export").out


def test_a_variable_names_another_file(
    here: Here, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one means no file, and a missing file is named."""
    configure(folder, "[request]\nlimit = 7000\n")
    (folder / "mine.toml").write_text("[request]\nlimit = 8000\n", "utf-8")
    monkeypatch.setenv("REASONING_STORE_CONFIG", "mine.toml")
    named = here("request chat-42 --tokens").out
    monkeypatch.setenv("REASONING_STORE_CONFIG", "")
    none = here("request chat-42 --tokens").out
    monkeypatch.setenv("REASONING_STORE_CONFIG", "gone.toml")
    missing = here("request chat-42 --tokens")

    assert "/8000" in named
    assert "/" not in none
    assert missing.code == Exit.NOT_FOUND
    assert "no file gone.toml" in missing.err


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("lmit = 3", "config.toml: lmit is no key here (options: "),
        ("[requst]\n", "config.toml: requst is no key here (options: "),
        ("request = 3", "config.toml: request is no table here"),
        ("[db]\n[db.backup]\npath = 3", "config.toml: db.backup.path is no key here"),
        ("[request]\nlimt = 3", "config.toml: request.limt is no key here (options: "),
        ("[request]\nlimit = 'many'", "config.toml: limit: 'many' is not a number"),
        ("[request]\nlimit = [1, 2]", "config.toml: limit: [1, 2] is not a number"),
        ("[request]\nlimit =", "config.toml is not TOML: "),
    ],
)
def test_a_wrong_key_or_value_is_named_with_its_place(
    here: Here, folder: Path, text: str, place: str
) -> None:
    """The file, the table and the key; nothing is printed."""
    configure(folder, text)
    ran = here("db backup copy.db" if "backup" in text else "request chat-42")

    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert place in ran.err


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("erase --everything", "[erase]\nyes = true"),
        ("erase", "[erase]\neverything = true"),
        ("export -o copy.jsonl", "[export]\noverwrite = true"),
    ],
)
def test_what_deletes_is_asked_for_in_words_alone(
    here: Here, folder: Path, command: str, text: str
) -> None:
    """No file answers a question or replaces a file."""
    configure(folder, text)
    ran = here(command)

    assert ran.code == Exit.USAGE
    assert "is no key here" in ran.err
