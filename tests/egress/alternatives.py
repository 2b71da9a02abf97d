"""What-if by selections: each choice made by itself, the model that the rows are held against."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, get_args

from reasoning_store.egress.concerns import is_mended
from reasoning_store.egress.given import digest
from reasoning_store.egress.request import count
from reasoning_store.egress.select import select
from reasoning_store.egress.verdicts import Target, Viewed
from reasoning_store.egress.what_if import Alternative
from reasoning_store.settings import ReasoningSettings, Strip
from reasoning_store.tokenizers import DEFAULT_ENCODING, counter


def selected(
    view: Sequence[Viewed], settings: ReasoningSettings, to: Target, *, system: Any = None
) -> tuple[Alternative, ...]:
    """Return the rows of what-if, each from a selection of the whole view."""
    items = list(view)
    now = select(items, settings, to, asked_with=digest(system, None))
    rows = []
    for include, strip in product((False, True), get_args(Strip)):
        changed = settings.model_copy(
            update={"include_in_context": include, "strip_from_context": strip}
        )
        then = select(items, changed, to, asked_with=digest(system, None))
        codes = {warning.code for warning in then.warnings}
        unmet = "floor_unmet" in codes and not is_mended(to.contract)
        off = "floor_off" in codes and not to.contract.off_when_unmet
        pairs = zip(now.verdicts, then.verdicts, strict=True)
        rows.append(
            Alternative(
                include_in_context=include,
                strip_from_context=strip,
                tokens=count(items, then, counter(DEFAULT_ENCODING), system=system),
                legal=to.contract.refusal is None or not (off or unmet),
                warnings=then.warnings,
                first_change=next((a.message for a, b in pairs if a.kept != b.kept), None),
                current=changed == settings,
            )
        )
    return tuple(rows)
