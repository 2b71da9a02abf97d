"""The alternatives to a request: every include and strip, side by side.

Each alternative is a selection of the same view, so it counts as its request would. It is legal if
it has all thinking that the provider demands by its contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from reasoning_store.conversation.settings import Policy, Strip
from reasoning_store.conversation.turns import turn_positions
from reasoning_store.egress.policy import STRIP_POLICIES
from reasoning_store.egress.request import count_view
from reasoning_store.egress.request_inputs import RequestInputs
from reasoning_store.egress.request_warnings import has_stand_in
from reasoning_store.egress.selection import select
from reasoning_store.egress.selection_values import RequestWarning, ViewedMessage
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import TokenCount
from reasoning_store.wire.contract import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The request that one choice of include and strip would send, in numbers."""

    include_in_context: bool
    strip_from_context: Strip
    tokens: TokenCount
    legal: bool
    """The provider would accept it: all enforced reasoning is sent, or a stand-in for it."""
    warnings: tuple[RequestWarning, ...]
    first_change: int | None
    """The first message that the current settings send with other thinking; None without one."""
    current: bool
    """These are the current settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """An alternative for each choice. ``str()`` is a small table of them."""

    rows: tuple[Alternative, ...]

    @property
    def current(self) -> Alternative:
        return next(row for row in self.rows if row.current)

    def table(self) -> list[tuple[str, ...]]:
        """Return the alternatives as lines of a table, after its headings."""
        return [
            ("", "include", "strip", "tokens", "legal", "first change"),
            *(
                (
                    "*" if row.current else "",
                    "yes" if row.include_in_context else "no",
                    row.strip_from_context,
                    f"{row.tokens.mark}{row.tokens}",
                    "yes" if row.legal else "no",
                    "-" if row.first_change is None else str(row.first_change),
                )
                for row in self.rows
            ),
        ]

    def __str__(self) -> str:
        lines = self.table()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def what_if(
    view: Sequence[ViewedMessage], policy: Policy, to: Target, inputs: RequestInputs
) -> WhatIf:
    """Return the alternatives of every include and strip for a view."""
    positions = turn_positions(view)
    current = policy.settings
    choices = [
        replace(current, include_in_context=include, strip_from_context=strip)
        for include, strip in product((False, True), STRIP_POLICIES)
    ]
    selections = [select(view, positions, choice, to, inputs.digest) for choice in choices]
    in_force = selections[choices.index(current)]
    rows = []
    for choice, selection in zip(choices, selections, strict=True):
        pairs = zip(in_force.verdicts, selection.verdicts, strict=True)
        changes = (one.message for one, other in pairs if one.kept != other.kept)
        rows.append(
            Alternative(
                include_in_context=choice.include_in_context,
                strip_from_context=choice.strip_from_context,
                tokens=count_view(view, selection, inputs, to),
                legal=not _would_be_refused(selection.warnings, to.contract),
                warnings=selection.warnings,
                first_change=next(changes, None),
                current=selection is in_force,
            )
        )
    return WhatIf(rows=tuple(rows))


def _would_be_refused(warnings: Sequence[RequestWarning], contract: Contract) -> bool:
    codes = {warning.code for warning in warnings}
    return contract.returning.refusal is not None and (
        ("floor_off" in codes and not contract.reasoning.off_when_unmet)
        or ("floor_unmet" in codes and not has_stand_in(contract))
    )
