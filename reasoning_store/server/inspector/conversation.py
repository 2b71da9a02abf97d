"""A conversation as its page shows it: messages, thoughts with their verdicts, branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reasoning_store import (
    Block,
    MediaBlock,
    Request,
    Session,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.results import Branch, Compaction, Stored, Verdict, Version
from reasoning_store.server.inspector.next_request import Requests
from reasoning_store.server.inspector.texts import argument_text, plural, raw_text, result_text

_REMEDIES: Final = {
    "kept": "Your settings send it.",
    "required": "It is sent whatever your settings are; without it the provider may refuse.",
    "include": 'To send it, turn on "Send thinking back".',
    "strip": 'To send it, choose "Leave out nothing", and turn on "Send thinking back".',
    "withheld": "It was refused, and is left out until it is taken back.",
    "bound": "No setting sends it: the provider takes it only after what it was made after.",
    "no_place": "No setting sends it in this protocol.",
    "origin": "No setting sends it to this model. It is sent to the model that it came from.",
    "unsigned": "No setting sends it to this provider.",
}
"""The remedy for each rule: the setting that changes its verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The verdict on one thought, for a reader."""

    verdict: Verdict
    remedy: str
    changed: bool
    """The saved settings decide otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One block of a message."""

    kind: str
    """thought, text, call, result or other."""
    text: str
    name: str = ""
    mark: Mark | None = None
    source_field: str | None = None
    is_readable: bool = True
    is_hidden: bool = False
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One message."""

    stored: Stored
    parts: tuple[Part, ...]
    model: str
    """The model and the provider that it came from."""
    instead: str | None
    """The message that is sent instead of it."""
    summaries: tuple[Compaction, ...]
    """The summaries that are sent where it begins their range."""
    cache_ends: bool
    """The prompt cache ends before it."""
    other_versions: tuple[tuple[Version, int], ...]
    """Each version of this message, with its number; empty where this is the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The messages of a page."""

    messages: tuple[Shown, ...]
    earlier: int | None
    """The position before which messages are left; None without."""
    cache_ends_before: bool
    """The prompt cache ends before the first message that is shown."""
    cache_ends_after: bool
    """Each message was sent with the last request."""
    branches: tuple[Branch, ...]
    is_live: bool


def show_conversation(
    session: Session, history: Sequence[Stored], requests: Requests | None
) -> Conversation:
    """Return messages of a session with the verdicts of its next request, where there is one."""
    compactions = session.compactions()
    request = last = None
    now: Mapping[tuple[int, int], Verdict] = {}
    before = now
    if requests is not None:
        request, last = requests.now, requests.last
        now, before = _verdicts(request), _verdicts(requests.saved)
    first = history[0].position if history else 1
    ends = None if request is None or last is None else request.first_difference(last)
    messages = []
    for item in history:
        found = _in_force(item, compactions)
        messages.append(
            Shown(
                stored=item,
                parts=tuple(
                    _part(block, (item.position, place), now, before)
                    for place, block in enumerate(item.message.blocks)
                ),
                model=_model(item),
                instead=_instead(found),
                summaries=tuple(
                    one
                    for one in compactions
                    if one.kind == "summary" and one.first == item.position
                ),
                cache_ends=ends == item.position,
                other_versions=tuple(
                    zip(item.versions, range(1, 1 + len(item.versions)), strict=True)
                ),
            )
        )
    return Conversation(
        messages=tuple(messages),
        earlier=first if first > 1 else None,
        cache_ends_before=ends is not None and ends < first,
        cache_ends_after=last is not None and request is not None and ends is None,
        branches=tuple(session.branches()),
        is_live=bool(history) and history[-1].message.status == "streaming",
    )


def _verdicts(request: Request) -> dict[tuple[int, int], Verdict]:
    return {(one.message, one.block): one for one in request.verdicts}


def _in_force(item: Stored, compactions: Sequence[Compaction]) -> list[Compaction]:
    found = [one for one in compactions if one.first <= item.position <= one.last]
    summaries = [one for one in found if one.kind == "summary"]
    answers = any(isinstance(block, ToolResponseBlock) for block in item.message.blocks)
    return summaries or (found if answers else [])


def _instead(found: Sequence[Compaction]) -> str | None:
    if not found:
        return None
    one = found[0]
    if one.kind == "summary":
        return f"Summary {one.id} is sent instead of this message."
    return "A placeholder is sent instead of the tool's result."


def _part(
    block: Block,
    place: tuple[int, int],
    now: Mapping[tuple[int, int], Verdict],
    before: Mapping[tuple[int, int], Verdict],
) -> Part:
    if isinstance(block, ThinkingBlock):
        return Part(
            kind="thought",
            text=block.thought,
            mark=_mark(now.get(place), before.get(place)),
            source_field=block.source_field,
            is_readable=bool(block.thought),
            is_hidden=block.is_hidden,
        )
    if isinstance(block, TextBlock):
        return Part(kind="text", text=block.text)
    if isinstance(block, ToolCallBlock):
        return Part(kind="call", name=block.name, text=argument_text(block))
    if isinstance(block, ToolResponseBlock):
        return Part(
            kind="result", name=block.tool_name, text=result_text(block), is_error=block.is_error
        )
    if isinstance(block, MediaBlock):
        return Part(kind="other", name=block.kind, text=block.name or block.mime_type)
    return Part(kind="other", name="raw", text=raw_text(block))


def _mark(verdict: Verdict | None, before: Verdict | None) -> Mark | None:
    if verdict is None:
        return None
    return Mark(
        verdict=verdict,
        remedy=_REMEDIES.get(verdict.rule, ""),
        changed=before is not None and before.kept != verdict.kept,
    )


def _model(item: Stored) -> str:
    origin = item.message.origin
    if origin is None:
        return ""
    return " of ".join(filter(None, (origin.model, origin.provider)))


def count_thoughts(request: Request) -> str:
    """Return how many thoughts a request sends, as words."""
    kept = sum(verdict.kept for verdict in request.verdicts)
    total = len(request.verdicts)
    if not total:
        return "The conversation has no thinking."
    return f"{kept} of {plural(total, 'thought')} {'is' if kept == 1 else 'are'} sent"
