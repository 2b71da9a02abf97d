"""What a rule of a strict provider is, and the words in which rules are written.

A rule looks at a whole request and returns the error text that the provider would answer,
or nothing. It stands in its protocol's table with the hosts and models that it holds for,
and with its source; the first rule of a table that objects is the answer, so the rules
about structure stand first and those behind them may rely on it.

Nothing here comes from ``contracts.toml`` or from egress: this is what they are held
against.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from reasoning_store.testing.refusals.record import Record

Body: TypeAlias = Mapping[str, Any]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a provider receives it."""

    body: Body
    provider: str
    model: str
    """In lower case; empty where nobody said."""
    record: Record | None = None

    def is_model(self, *patterns: str) -> bool:
        """Whether the model's name, with or without its maker's, matches a pattern."""
        bare = self.model.rsplit("/", 1)[-1]
        return any(
            fnmatchcase(self.model, pattern) or fnmatchcase(bare, pattern) for pattern in patterns
        )


Check: TypeAlias = Callable[[Sent], "str | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that is refused, by whom, and who says so."""

    check: Check
    source: str
    providers: frozenset[str] | None = None
    """The hosts that check it; None: everybody who speaks the protocol."""
    models: tuple[str, ...] = ("*",)

    def objection(self, sent: Sent) -> str | None:
        if self.providers is not None and sent.provider not in self.providers:
            return None
        return self.check(sent) if sent.is_model(*self.models) else None


def hosts(names: str) -> frozenset[str]:
    return frozenset(names.split())


def first(objections: Iterable[str | None]) -> str | None:
    """Return the first objection there is."""
    return next((objection for objection in objections if objection is not None), None)


def is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def is_said(value: Any) -> bool:
    """Whether a value is text with something in it."""
    return isinstance(value, str) and bool(value)


def each(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the numbered objects of a list, and nothing for anything else."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            if isinstance(item, Mapping):
                yield n, item


def at(value: Any, *path: str) -> Any:
    """Return what stands at a path of keys, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def unknown(keys: Iterable[str], known: Sequence[str] | frozenset[str]) -> str | None:
    return next((key for key in keys if key not in known), None)


def is_form(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


BASE64 = r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?"
"""Either alphabet, padded or not."""
