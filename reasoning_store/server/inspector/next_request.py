"""The next request as its panel shows it: controls and their effects, tokens, matrix, text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from reasoning_store import Context, ReasoningStoreError, Request, Session
from reasoning_store.results import Alternative, ContextUsage, RequestWarning, Resolved, WhatIf
from reasoning_store.server.inspector.compaction import Shortening, show_shortening
from reasoning_store.server.inspector.curl_command import curl_command
from reasoning_store.server.inspector.questions import (
    CONTROLS,
    STRIP_LABELS,
    Control,
    Question,
    Show,
    word_of,
)
from reasoning_store.server.inspector.texts import positions, signed

_INCLUDE: Final = "reasoning.includeInContext"
_STRIP: Final = "reasoning.stripFromContext"
_FLOOR: Final = "reasoning.floor"
_MOST_TEXT: Final = 200_000
"""The most characters of a request that a page shows; the rest is one click away."""
VIEWS: Final[Mapping[Show, str]] = {
    "json": "JSON",
    "curl": "curl",
    "last": "Difference to the last one sent",
}
"""The views of a request on every page, with their labels."""
_LAYERS: Final = {
    "call": "not saved",
    "session": "of this session",
    "profile": "of its profile",
    "owner": "of its owner",
    "environment": "of the environment",
    "default": "by default",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The requests that a page compares, and the settings that are saved."""

    saved_settings: Mapping[str, Resolved]
    changes: Mapping[str, Any]
    now: Request
    """The request of the settings in the address."""
    saved: Request
    """The request of the settings that are saved."""
    last: Request | None
    """The request that was sent last."""
    usage: ContextUsage
    what_if: WhatIf
    flipped: Mapping[str, tuple[Request, bool]]
    """The request if a switch is turned, and whether the provider takes it; by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a control."""

    value: str
    label: str
    is_chosen: bool
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A control with its value."""

    control: Control
    value: str
    source: str
    """The layer that the value comes from."""
    is_of_session: bool
    choices: tuple[Choice, ...]
    effect: str = ""
    """The effect of turning the switch."""

    @property
    def is_on(self) -> bool:
        return self.control.kind == "switch" and self.value == self.control.choices[1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of the token bar."""

    name: str
    label: str
    tokens: int
    start: float
    """Its start and its width, in thousandths of the bar."""
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One choice of the matrix of policies."""

    row: Alternative
    difference: str
    address: str
    refused_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The panel of a page."""

    requests: Requests
    target: str
    fields: tuple[Field, ...]
    segments: tuple[Segment, ...]
    limit_at: float | None
    """The place of the limit on the bar, in thousandths."""
    matrix: tuple[tuple[str, tuple[Cell, ...]], ...]
    """The rows: the label of a strip policy, and its cell without and with include."""
    change: str
    """The changes by the settings in the address, in words; empty without any."""
    shortening: Shortening
    text: str
    is_cut: bool
    tabs: tuple[tuple[str, str, str, bool], ...]
    """Each view of the request: its name, its label, its address and whether it is shown."""

    @property
    def warnings(self) -> Sequence[RequestWarning]:
        return self.requests.now.warnings


def read_requests(session: Session, question: Question) -> Requests:
    """Build the requests of a question; nothing is changed."""
    saved_settings = session.settings.resolved()
    changes = question.changes(saved_settings)
    context = _context(session, question, changes)
    now = context.request()
    saved = now if not changes else _context(session, question, {}).request()
    flipped = {}
    for key in (_INCLUDE, _FLOOR):
        then = _context(session, question, {**changes, key: _other(now.settings[key].value)})
        flipped[key] = (then.request(), then.what_if().current.legal)
    return Requests(
        saved_settings=saved_settings,
        changes=changes,
        now=now,
        saved=saved,
        last=context.last_request(),
        usage=context.usage(),
        what_if=context.what_if(),
        flipped=flipped,
    )


def try_requests(
    session: Session, question: Question
) -> tuple[Requests | None, ReasoningStoreError | None]:
    """Return the requests, or the error of a question that has none: a model that is unknown."""
    try:
        return read_requests(session, question), None
    except ReasoningStoreError as error:
        return None, error


def _context(session: Session, question: Question, settings: Mapping[str, Any]) -> Context:
    return session.context(
        **question.target,  # type: ignore[arg-type]  # names of strings alone
        settings=settings,
        limit=question.limit,
    )


def _other(value: Any) -> Any:
    """Return the other value of a switch."""
    if isinstance(value, bool):
        return not value
    return "off" if value == "provider" else "provider"


def show_panel(session: Session, requests: Requests, question: Question) -> Panel:
    """Return the panel of the requests of a question."""
    now, usage = requests.now, requests.usage
    segments, limit_at = _bar(usage)
    text, is_cut = request_text(requests, question.show)
    return Panel(
        requests=requests,
        target=_target(now),
        fields=tuple(_field(control, requests) for control in CONTROLS),
        segments=segments,
        limit_at=limit_at,
        matrix=_matrix(requests, question),
        change=_change(requests),
        shortening=show_shortening(session, question),
        text=text,
        is_cut=is_cut,
        tabs=_tabs(requests, question),
    )


def _target(request: Request) -> str:
    to = request.target
    host = to.provider or "an unknown host"
    return f"{to.model} of {host}" if to.model else host


def _field(control: Control, requests: Requests) -> Field:
    current = requests.now.settings[control.key]
    value = word_of(current.value)
    by_strip = {
        row.strip_from_context: row
        for row in requests.what_if.rows
        if row.include_in_context == requests.now.settings[_INCLUDE].value
    }
    choices = tuple(
        Choice(
            value=word,
            label=label,
            is_chosen=word == value,
            effect=_tokens(by_strip[word], requests) if control.key == _STRIP else "",  # type: ignore[index]
        )
        for word, label in control.choices
    )
    return Field(
        control=control,
        value=value,
        source=_LAYERS[current.layer],
        is_of_session=requests.saved_settings[control.key].layer == "session",
        choices=choices,
        effect=_flip_effect(control, requests),
    )


def _tokens(row: Alternative, requests: Requests) -> str:
    difference = row.tokens.effective - requests.now.tokens.effective
    refused = "" if row.legal else ", may be refused"
    return f"{row.tokens.mark}{row.tokens} tokens ({signed(difference)}){refused}"


def _flip_effect(control: Control, requests: Requests) -> str:
    """Return what a request would lose or gain if a switch were turned."""
    if control.key not in requests.flipped:
        return ""
    then, legal = requests.flipped[control.key]
    is_on = word_of(requests.now.settings[control.key].value) == control.choices[1][0]
    begin = f"Turned {'off' if is_on else 'on'}: "
    difference = _difference(requests.now, then)
    if not difference:
        return f"{begin}nothing would change."
    refused = "" if legal else " The provider may refuse that request."
    return f"{begin}{difference}.{refused}"


def _difference(before: Request, after: Request) -> str:
    """Return how the thinking of two requests differs, in words; empty where it does not."""
    pairs = list(zip(before.verdicts, after.verdicts, strict=True))
    more = sorted({one.message for one, other in pairs if other.kept and not one.kept})
    less = sorted({one.message for one, other in pairs if one.kept and not other.kept})
    parts = [
        f"the thinking of message{'s' if len(found) > 1 else ''} {positions(found)} is {verb}"
        for found, verb in ((more, "sent, too"), (less, "left out"))
        if found
    ]
    if not parts:
        return ""
    tokens = after.tokens
    more_tokens = signed(tokens.effective - before.tokens.effective)
    parts.append(f"{tokens.mark}{tokens} tokens ({more_tokens})")
    return "; ".join(parts)


def _change(requests: Requests) -> str:
    if not requests.changes:
        return ""
    found = _difference(requests.saved, requests.now)
    if found:
        return f"{found[0].upper()}{found[1:]}."
    if requests.now.body != requests.saved.body:
        return "The same thinking is sent; the request differs in its parameters."
    return "The request stays the same."


def _bar(usage: ContextUsage) -> tuple[tuple[Segment, ...], float | None]:
    kinds = usage.by_kind
    whole = max(usage.limit or 0, usage.raw, 1)
    parts = (
        ("system", "System prompt", kinds.system),
        ("tools", "Tools", kinds.tools),
        ("messages", "Messages without thinking", kinds.messages),
        ("thinking", "Thinking that is sent", kinds.thinking),
        ("withheld", "Thinking that is left out (not counted)", kinds.withheld),
    )
    segments = []
    start = 0.0
    for name, label, tokens in parts:
        width = 1000 * tokens / whole
        segments.append(Segment(name=name, label=label, tokens=tokens, start=start, width=width))
        start += width
    limit = usage.limit
    return tuple(segments), None if limit is None else 1000 * limit / whole


def _matrix(requests: Requests, question: Question) -> tuple[tuple[str, tuple[Cell, ...]], ...]:
    now = requests.now.tokens.effective
    rows = []
    for strip, label in STRIP_LABELS.items():
        found = [row for row in requests.what_if.rows if row.strip_from_context == strip]
        cells = tuple(
            Cell(
                row=row,
                difference=signed(row.tokens.effective - now),
                address=replace(
                    question,
                    values={
                        **question.values,
                        _INCLUDE: row.include_in_context,
                        _STRIP: row.strip_from_context,
                    },
                ).address(),
                refused_because="" if row.legal else "; ".join(one.text for one in row.warnings),
            )
            for row in found
        )
        rows.append((label, cells))
    return tuple(rows)


def _tabs(requests: Requests, question: Question) -> tuple[tuple[str, str, str, bool], ...]:
    views = dict(VIEWS)
    if requests.changes:
        views["saved"] = "Difference to the saved settings"
    return tuple(
        (
            name,
            label,
            question.address(show=None if name == "json" else name) + "#request",
            name == question.show,
        )
        for name, label in views.items()
    )


def request_text(requests: Requests, show: Show) -> tuple[str, bool]:
    """Return a view of the request as text, and whether it was cut."""
    now = requests.now
    match show:
        case "curl":
            text = curl_command(now) or "This protocol has no address: its requests stay inside."
        case "last":
            text = _last_text(requests)
        case "saved":
            text = "\n".join(now.diff(requests.saved, ("saved settings", "these settings")))
            text = text or "There is no difference."
        case _:
            text = json.dumps(now.body, ensure_ascii=False, indent=2)
    return text[:_MOST_TEXT], len(text) > _MOST_TEXT


def _last_text(requests: Requests) -> str:
    if requests.last is None:
        return (
            "The last request is not known: no reply was recorded with its request, or its\n"
            "messages have changed since. session.record(stream, request=request) stores how\n"
            "it was made."
        )
    lines = requests.now.diff(requests.last, ("last sent", "next"))
    return "\n".join(lines) or "There is no difference."
