"""Facts about the client and the chat of a request, by the rows of ``wire/clients.toml``."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from importlib.resources import files
from typing import Any, Final, NamedTuple

import reasoning_store as rs

_MOST_NAMED: Final = 200
"""The most characters of a value: longer ones name nothing."""
_MOST_TITLE: Final = 60
_MOST_WAITING: Final = 1000
"""The most titles that wait for their chats."""


class Client(NamedTuple):
    """The facts that a request's headers and body show about its client."""

    name: str | None = None
    group: str | None = None
    """The client's name for the conversation, its side calls and its sub-agents."""
    parent: str | None = None
    """The group of the conversation that started this one."""
    project: str | None = None

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of a session that is made."""
        named = zip(("client", "group", "parent", "project"), self, strict=True)
        return {name: value for name, value in named if value is not None}


@cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    text = files("reasoning_store.wire").joinpath("clients.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_client(headers: Mapping[str, str], body: Mapping[str, Any]) -> Client:
    """Return what a request shows about its client."""
    given = {name.lower(): value for name, value in headers.items()}
    agent = given.get("user-agent", "")
    found: dict[str, list[str]] = {}
    for row in _tables()["field"]:
        if not agent.startswith(row.get("agent", "")):
            continue
        for value in _values(row, given, body):
            found.setdefault(row["names"], []).append(value)
            found.setdefault("client", []).extend([row["client"]] if "client" in row else [])
    groups = list(dict.fromkeys(found.get("group", ())))
    names = [*found.get("client", ()), *agent.split(" ")[:1]]
    return Client(
        names[0][:_MOST_NAMED] or None,
        next(iter(groups), None),
        next(iter([*found.get("parent", ()), *groups[1:]]), None),
        next(iter(found.get("project", ())), None),
    )


def _values(
    row: Mapping[str, Any], headers: Mapping[str, str], body: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the values of a row's field that have its form."""
    if "field" in row:
        value: Any = reduce(_member, row["field"].split("."), body)
        texts = [value if isinstance(value, str) else json.dumps(value)] if value else []
    else:
        texts = [text for name, text in headers.items() if re.fullmatch(row["header"], name)]
    for text in texts:
        match = re.search(row.get("form", r"\A[\x21-\x7e]+\Z"), text, re.ASCII)
        if match and len(found := match[match.re.groups]) <= _MOST_NAMED:
            yield found


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


class Titles:
    """The titles that came before the sessions of their chats, by the clients' groups."""

    def __init__(self) -> None:
        self._waiting: dict[str | None, str] = {}

    def add(self, group: str, title: str) -> None:
        """Keep a title; where too many wait, the others are left out."""
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.clear()
        self._waiting[group] = title

    def take(self, group: str | None) -> str | None:
        """Return the title that waits for a chat, once."""
        return self._waiting.pop(group, None)


def find_title(messages: Iterable[rs.Message]) -> str | None:
    """Return the first words that a person wrote, without what the client puts around them."""
    for message in messages:
        if message.role == "user" and (title := _as_line(_own_words(message.text)[:1000])):
            if len(title) <= _MOST_TITLE:
                return title
            return title[:_MOST_TITLE].rsplit(" ", 1)[0] + "\u2026"
    return None


def _as_line(text: str) -> str:
    """Return a text as one line, without what no title can hold."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _own_words(text: str) -> str:
    rest = text.strip()
    while row := next((one for one in _tables()["wrapper"] if rest.startswith(one["begin"])), None):
        _, _, rest = rest.partition(row["end"]) if "end" in row else ("", "", "")
        rest = rest.strip()
    return rest


def asks_for_title(system: Sequence[str], messages: Sequence[rs.Message]) -> bool:
    """Whether a request is a client's own call for the title of a chat."""
    if any(message.role == "assistant" for message in messages):
        return False
    texts = [*system[:1], *(message.text for message in messages[:1])]
    begins = tuple(row["begin"] for row in _tables()["title"])
    return any(text.lstrip().startswith(begins) for text in texts)


def read_title(reply: str) -> str | None:
    """Return the title that a reply to such a call gives: a line, or a JSON object."""
    text = reply.strip().removeprefix("```json").strip("`\n ")
    try:
        text = str(json.loads(text)["title"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return _as_line(text)[:_MOST_NAMED] or None
