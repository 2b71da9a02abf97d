"""How many characters the tag filter looks at, for texts that are made to cost much."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from reasoning_store.ingress.markers import Scan
from reasoning_store.ingress.tags import TagFilter


class CountingPattern:
    """A pattern that adds up the characters between where a scan began and where it ended."""

    def __init__(self, pattern: re.Pattern[str], counted: Counter[str]) -> None:
        self._pattern = pattern
        self._counted = counted

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        found = self._pattern.search(text, start)
        self._counted["characters"] += (found.end() if found else len(text)) - start + 1
        return found

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        self._counted["characters"] += 1
        return self._pattern.match(text, start)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        self._counted["characters"] += len(text)
        return self._pattern.fullmatch(text)


def examined(text: str, length: int, code_is_text: bool = False) -> int:
    counted: Counter[str] = Counter()

    def counting(scan: Scan) -> Scan:
        return Scan(*(cast(Any, CountingPattern(pattern, counted)) for pattern in scan))

    tag_filter = TagFilter(code_is_text=code_is_text)
    plan = tag_filter._grammar
    tag_filter._grammar = plan._replace(
        outside=counting(plan.outside),
        inside=counting(plan.inside),
        opening=counting(plan.opening),
    )
    for start in range(0, len(text), length):
        tag_filter.feed(text[start : start + length])
    tag_filter.finish()
    return counted["characters"]


HOSTILE: dict[str, Callable[[int], str]] = {
    "less-than": lambda n: "<" * n,
    "opens": lambda n: "<think>" * (n // 7),
    "closes": lambda n: "</think>" * (n // 8),
    "halves": lambda n: "<thin" * (n // 5),
    "empty-blocks": lambda n: "<think></think>" * (n // 15),
    "allowed-blanks": lambda n: ("<" + " " * 16) * (n // 17),
    "endless-blanks": lambda n: "<" + " " * n,
    "nested-halves": lambda n: "<thi" * (n // 8) + "nk>" * (n // 8),
    "halves-around-blocks": lambda n: "<thi<think></think>nk>" * (n // 22),
    "halves-around-strays": lambda n: "<thi</think>" * (n // 12),
    "prose": lambda n: "a < b, and so on. " * (n // 18),
}
