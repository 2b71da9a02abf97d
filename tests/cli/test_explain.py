"""Refusals and contracts: answered without a database."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here

REFUSAL = "400: Missing `reasoning_content` field in the assistant message"


@pytest.fixture(autouse=True)
def _no_database(monkeypatch: pytest.MonkeyPatch, here: Here) -> None:
    monkeypatch.setenv("REASONING_STORE_URL", "sqlite:///nowhere/chat.db")


def test_a_refusal_is_explained_from_a_word_a_file_and_standard_input(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cause, the remedy, and the setting for it as a command."""
    Path("refusal.txt").write_text(REFUSAL, "utf-8")
    ran = here(f"explain '{REFUSAL}' --provider deepseek")
    with Path("refusal.txt").open() as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        assert here("explain -").out == ran.out

    assert ran.code == Exit.DONE
    assert "lacks the reasoning that led to it" in ran.out
    assert "reasoning-store settings set reasoning.floor=provider" in ran.out
    assert here("explain refusal.txt").out == ran.out


def test_the_rows_that_hold_for_a_host_are_printed_with_source_and_date(here: Here) -> None:
    """With the rules that are not the usual ones."""
    rows = here("contracts deepseek --json").data
    chat = [row for row in rows if row["api"] == "openai.chat" and row["models"] == ["*"]]

    assert {row["provider"] for row in rows} == {"deepseek"}
    assert chat[0]["rules"]["floor"] == "all_calls"
    assert "tags" not in chat[0]["rules"]
    assert all(row["source"] and row["checked"] for row in rows)
    assert f"({chat[0]['checked']})" in here("contracts deepseek").out


def test_of_the_rows_for_a_model_the_first_of_each_protocol_is_printed(here: Here) -> None:
    """The rows that are laid over it follow."""
    rows = here("contracts deepseek-r1 --json").data
    claude = here("contracts claude-sonnet-4-5 --json").data

    assert rows[0]["models"] == ["deepseek-r1", "deepseek-r1-*"]
    assert [row for row in rows if row["api"] == "openai.chat" and row["models"] == ["*"]] == []
    assert [row["rules"].get("on_by_default") for row in claude] == [True, False]


def test_without_a_name_the_hosts_are_printed(here: Here) -> None:
    """Each once, whatever its other names."""
    hosts = [row["provider"] for row in here("contracts --json").data]

    assert {"anthropic", "deepseek", "moonshot"} <= {*hosts}
    assert len(hosts) == len({*hosts})
