"""The refusals that `explain_refusal` knows, in the words of the providers' errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

_SECTION = re.compile(r"^# --- (.*?) -+$", re.MULTILINE)
_OPTIONAL = re.compile(r"\([^()]*\)\?")
_CHOICE = re.compile(r"\(([^()|]*)(?:\|[^()]*)?\)")
_PLURAL = re.compile(r"\.\{0,\d\}")
_ANYTHING = re.compile(r"\.(?:\*|\{[^}]*\})")
_NUMBER = re.compile(r"\\d(?:\+|\{[^}]*\})")
_BAR = re.compile(r"\|(?![^(]*\))")


def refusals() -> str:
    """Return a section for each part of the table, with an entry for each refusal."""
    text = files("reasoning_store.egress").joinpath("refusals.toml").read_text("utf-8")
    _, *parts = _SECTION.split(text)
    return "\n\n".join(
        "\n\n".join([f"## {title[0].upper()}{title[1:]}", *map(_entry, _rows(body))])
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    )


def _rows(text: str) -> list[Mapping[str, Any]]:
    return list(tomllib.loads(text)["refusal"])


def _entry(row: Mapping[str, Any]) -> str:
    first, *others = wordings(row["patterns"])
    cause, fix = row["cause"], row["fix"]
    providers = ", ".join(f"`{name}`" for name in row["providers"])
    lines = [f"### {first}", f"{cause[0].upper()}{cause[1:]}.", f"**Do:** {fix}."]
    if settings := row.get("settings"):
        lines.append("Setting: " + ", ".join(f"`{setting}`" for setting in settings))
    if others:
        lines.append("Also worded: " + "; ".join(f"*{text}*" for text in others) + ".")
    return "\n\n".join([*lines, f"Sent by {providers}."])


def wordings(patterns: list[str]) -> list[str]:
    """Return a text for each alternative of patterns, which they find."""
    return [words for pattern in patterns for words in _alternatives(pattern)]


def _alternatives(pattern: str) -> Iterator[str]:
    while (plain := _CHOICE.sub(r"\1", _OPTIONAL.sub("", pattern))) != pattern:
        pattern = plain
    for one in _BAR.split(pattern):
        text = _NUMBER.sub("100000", _ANYTHING.sub(" ... ", _PLURAL.sub("", one)))
        text = re.sub(r"\\(.)", r"\1", re.sub(r"(\w)\?", r"\1", text))
        yield " ".join(text.replace(" ?", " ").split())
