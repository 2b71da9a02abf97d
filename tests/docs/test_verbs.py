"""The examples of the reference run, each on a conversation of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import reasoning_store as rs
from tests.docs import verbs


def test_every_example_of_a_verb_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its assertions say what the verb returns."""
    monkeypatch.chdir(tmp_path)
    for example in verbs.examples():
        with rs.Store("sqlite://") as store:
            try:
                example(store, verbs.conversation(store))
            except BaseException as error:
                error.add_note(f"the example: {example.__name__}")
                raise


def test_every_example_is_in_the_reference() -> None:
    """A function that names no verb would be shown nowhere."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "python.md"

    assert page.read_text("utf-8").count("\n```py\n") == len(verbs.examples())
