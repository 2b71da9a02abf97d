"""The page of refusals lists texts that are explained so."""

from __future__ import annotations

import re
from pathlib import Path

import reasoning_store as rs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "troubleshooting.md"


def test_every_listed_text_is_explained_by_its_entry() -> None:
    """Each heading and each other wording, sent by each provider of the entry."""
    entries = PAGE.read_text("utf-8").split("\n### ")[1:]
    assert len(entries) > 30
    for entry in entries:
        heading, cause = entry.split("\n\n")[:2]
        *_, providers = re.findall(r"^Sent by (.*)\.$", entry, re.MULTILINE)
        also = re.findall(r"^Also worded: (.*)\.$", entry, re.MULTILINE)
        for text in [heading, *re.findall(r"\*([^*]+)\*", "".join(also))]:
            for provider in re.findall("`(.*?)`", providers):
                found = rs.explain_refusal(provider, text)

                assert found is not None, text
                assert f"{found.cause}.".lower() == cause.lower(), text
