"""What the other choices would send: every include with every strip, side by side.

A selection is made for each, by the same rules and with the same floor, so a row says what
the request would count and where it would first differ. A row is
legal where nothing is missing that the provider enforces by its contract.

It knows selections and counts. It must not know a protocol's shapes or SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from reasoning_store.egress.concerns import is_mended
from reasoning_store.egress.request import count, digest
from reasoning_store.egress.select import Target, Verdict, Viewed, Warning, select
from reasoning_store.egress.tokens import TokenCount
from reasoning_store.settings import Policy, Strip
from reasoning_store.tokenizers import Counter
from reasoning_store.wire.contracts import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What one choice of include and strip would send."""

    include_in_context: bool
    strip_from_context: Strip
    tokens: TokenCount
    legal: bool
    """Whether the provider would take it: all that it enforces is there, or stood in for."""
    warnings: tuple[Warning, ...]
    first_change: int | None
    """The first message that differs from what the current settings send; ``None``: none."""
    current: bool
    """Whether these are the current settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The alternatives, one for each choice. ``str()`` is a small table of them."""

    rows: tuple[Alternative, ...]

    @property
    def current(self) -> Alternative:
        return next(row for row in self.rows if row.current)

    def __str__(self) -> str:
        lines = [_HEAD, *(_cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def what_if(
    view: Sequence[Viewed],
    policy: Policy,
    to: Target,
    counter: Counter,
    *,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> WhatIf:
    """Return what every choice of include and strip would send of a view."""
    view = list(view)  # each choice looks at every message of it
    settings = policy.settings
    asked_with = digest(system, tools)
    now = select(view, settings, to, asked_with=asked_with)
    rows = []
    for include, strip in product((False, True), get_args(Strip)):
        changed = settings.model_copy(
            update={"include_in_context": include, "strip_from_context": strip}
        )
        selection = select(view, changed, to, asked_with=asked_with)
        rows.append(
            Alternative(
                include_in_context=include,
                strip_from_context=strip,
                tokens=count(view, selection, counter, system=system, tools=tools),
                legal=not _would_be_refused(selection.warnings, to.contract),
                warnings=selection.warnings,
                first_change=_first_change(now.verdicts, selection.verdicts),
                current=changed == settings,
            )
        )
    return WhatIf(rows=tuple(rows))


def _would_be_refused(warnings: Sequence[Warning], contract: Contract) -> bool:
    codes = {warning.code for warning in warnings}
    return contract.refusal is not None and (
        "floor_off" in codes or ("floor_unmet" in codes and not is_mended(contract))
    )


def _first_change(now: Sequence[Verdict], then: Sequence[Verdict]) -> int | None:
    for one, other in zip(now, then, strict=True):
        if one.kept != other.kept:
            return one.message
    return None


_HEAD = ("", "include", "strip", "tokens", "legal", "first change")


def _cells(row: Alternative) -> tuple[str, ...]:
    return (
        "*" if row.current else "",
        "yes" if row.include_in_context else "no",
        row.strip_from_context,
        str(row.tokens.effective),
        "yes" if row.legal else "no",
        "-" if row.first_change is None else str(row.first_change),
    )
