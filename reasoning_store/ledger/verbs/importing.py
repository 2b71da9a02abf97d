"""The verb that takes lines in: streamed, checked, and resumable.

Lines are read one by one; a few hundred messages that stand behind one another are one
short transaction. What is there already is compared and not written again, so an import
that was killed is called again with the same lines. Until a session is whole it is in no
list; one whose lines are refused is taken back, so that the same lines, mended, can come.

What each line does is in ``intake``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Literal, TypeAlias

from reasoning_store.errors import Conflict, NotFound, ReasoningStoreError, UsageError
from reasoning_store.ledger.lines import Line
from reasoning_store.ledger.values import Imported
from reasoning_store.ledger.verbs.erasing import Count
from reasoning_store.ledger.verbs.intake import Intake, Mask, MaskParts
from reasoning_store.ledger.verbs.taking_in import TakingInVerbs

OnConflict: TypeAlias = Literal["refuse", "skip"]


class ImportingVerbs(TakingInVerbs):
    """All that somebody has, taken in."""

    def import_lines(
        self,
        given: Iterable[str | bytes],
        *,
        owner: str | None = None,
        count: Count | None = None,
        mask: Mask | None = None,
        mask_parts: MaskParts | None = None,
        check: Callable[[Line], None] | None = None,
        on_conflict: OnConflict = "refuse",
    ) -> Imported:
        """Take in the lines of an export, or others of their form.

        ``owner`` is who shall own it, whatever the lines say. Where a session that is there
        is counted in another encoding, where there are no counts and where ``mask`` changed
        a message, ``count`` counts anew; ``mask_parts`` masks the parts of a draft. ``check``
        may refuse what a line says of things that are the caller's to know. A malformed line
        is a UsageError that names it. A line that says something else than what is stored
        there is a Conflict, or with ``on_conflict="skip"`` the rest of its session is left out.
        """
        if on_conflict not in ("refuse", "skip"):
            raise UsageError("on_conflict: one of refuse, skip")
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise UsageError(
                "lines: an iterable of lines",
                hint="open(path, 'rb') is one, text.split('\\n') another",
            )
        owners = (lambda named: named) if owner is None else (lambda _: owner)
        intake = Intake(
            ledger=self,
            owner=owners,
            count=count,
            mask=mask,
            mask_parts=mask_parts,
            check=check,
            skips=on_conflict == "skip",
        )
        for number, text in enumerate(given, 1):
            intake.number = number
            try:
                intake.take(text)
            except (UsageError, Conflict, NotFound) as error:
                of = intake.current.line.id if intake.current is not None else None
                with suppress(ReasoningStoreError):  # the lines are wrong whatever else is
                    intake.take_back()
                raise _at_line(error, intake.number, of) from None
        if not intake.ended:
            raise UsageError(
                f"line {intake.number}: the lines stop before their end"
                if intake.number
                else "the lines stop before their end: there is none",
                hint="export again, then import again: what is there is not written twice",
            )
        return intake.done


def _at_line(error: ReasoningStoreError, number: int, session: str | None) -> ReasoningStoreError:
    """Say where it was; of a conflict also which session differs here, and what can be done."""
    if not isinstance(error, Conflict):
        return UsageError(f"line {number}: {error}", hint=error.hint)
    if session is None:
        return Conflict(f"line {number}: {error}", stored=error.stored, hint=error.hint)
    return Conflict(
        f"line {number}: session {session!r}: {error}",
        stored=error.stored,
        hint=error.hint or "on_conflict skip leaves such a session out and names it",
    )
