"""A rule of a strict provider, and the functions that rules are written with.

A rule reads a whole request and returns the provider's error text, or nothing. Its row names the
hosts and models that it holds for, and its source. The first rule of a table that objects is the
answer; rules about structure come first, and later ones rely on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from reasoning_store.testing.strict_provider.record import Record

Body: TypeAlias = Mapping[str, Any]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a provider receives it."""

    body: Body
    provider: str
    model: str
    """In lower case; empty if it is not known."""
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
    """One reason for a refusal, the hosts and models that have it, and its source."""

    check: Check
    source: str
    providers: frozenset[str] | None = None
    """The hosts that check it; None: all hosts of the protocol."""
    models: tuple[str, ...] = ("*",)

    def objection(self, sent: Sent) -> str | None:
        if self.providers is not None and sent.provider not in self.providers:
            return None
        return self.check(sent) if sent.is_model(*self.models) else None


def host_names(names: str) -> frozenset[str]:
    return frozenset(names.split())


def first_objection(objections: Iterable[str | None]) -> str | None:
    """Return the first objection, if there is one."""
    return next((objection for objection in objections if objection is not None), None)


def is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def is_text(value: Any) -> bool:
    """Whether a value is a text that is not empty."""
    return isinstance(value, str) and bool(value)


def numbered_objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list with their numbers; nothing for any other value."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            if isinstance(item, Mapping):
                yield n, item


def value_at(value: Any, *path: str) -> Any:
    """Return the value at a path of keys, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def first_unknown(keys: Iterable[str], known: Sequence[str] | frozenset[str]) -> str | None:
    return next((key for key in keys if key not in known), None)


def matches_pattern(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


BASE64 = r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?"
"""Either alphabet, padded or not."""
