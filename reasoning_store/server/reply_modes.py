"""Replies for clients that want the thinking elsewhere than the provider put it.

``clean`` moves inline tags to the field of the protocol. ``render`` puts all thinking into the
text, between the separators of ``ReasoningRenderer``, for clients that can show nothing else.
Nothing is held back but what may be the beginning of a tag.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

import reasoning_store as rs
from reasoning_store.ingress.normalizer import make_text_channel
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.text_channel import TextChannel
from reasoning_store.integrations.client_bodies import write_json
from reasoning_store.results import Run
from reasoning_store.server.options import Mode
from reasoning_store.wire.contract_lookup import find_contract

Kind: TypeAlias = Literal["text", "thinking"]
_FIELDS: Final = ("reasoning_content", "reasoning")
_MORE_FIELDS: Final = ("reasoning_details", "reasoning_text", "thinking", "thinking_blocks")
_DONE: Final = b"data: [DONE]\n\n"


class Rewriter(Protocol):
    """One reply on its way to a client that wants its thinking elsewhere."""

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes to pass on of the next piece of a stream."""
        ...

    def finish(self) -> bytes:
        """Return the rest of a stream that has ended."""
        ...

    def rewrite_whole(self, content: bytes) -> bytes:
        """Return a whole response."""
        ...


def make_rewriter(
    mode: Mode,
    path: str,
    *,
    shows_thinking: bool = True,
    names: Mapping[str, Any] | None = None,
) -> Rewriter:
    """Return the rewriter of a reply of the provider and the model that ``names`` has.

    Without ``shows_thinking`` the client gets no thinking.
    """
    if mode == "mirror":
        return WholeEvents()

    contract = find_contract(**(names or {}))

    def make_placer(*, is_stream: bool) -> Placer:
        text = make_text_channel(contract, Counters(), is_stream=is_stream)
        return Placer(text, is_rendered=mode == "render", shows_thinking=shows_thinking)

    return _REWRITERS[path](make_placer)


def rewrites(mode: Mode, path: str) -> bool:
    """Whether a mode is supported for the replies of a path."""
    return mode == "mirror" or path in _REWRITERS


_BLANK_LINES: Final = (b"\n\n", b"\n\r", b"\r\r")
"""How a blank line begins, after the end of the line before it."""


class WholeEvents:
    """The bytes of a stream up to its last blank line: each event whole, or not at all."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._ends_in_cr = False

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes of the events that this piece completes."""
        held = self._held
        begin = max(len(held) - 1, 0)
        held += piece
        ends = [at + 2 for pair in _BLANK_LINES if (at := held.rfind(pair, begin)) >= 0]
        stop = max(ends, default=1 if self._ends_in_cr and held.startswith(b"\n") else 0)
        stop += ends != [] and held[stop - 1 : stop + 1] == b"\r\n"
        whole = bytes(held[:stop])
        del held[:stop]
        self._ends_in_cr = whole.endswith(b"\r") if whole else self._ends_in_cr
        return whole

    def finish(self) -> bytes:
        """Return the rest of a stream that has ended."""
        return bytes(self._held)

    def rewrite_whole(self, content: bytes) -> bytes:
        """Return a whole response as it is."""
        return content


class Placer:
    """The text and the thinking of one reply, as runs of where each is put.

    The text is that of the stored message: the same channel takes the tags out of it.
    """

    def __init__(self, text: TextChannel, *, is_rendered: bool, shows_thinking: bool) -> None:
        self._text = text
        self._native: list[str] = []
        self._renderer = rs.ReasoningRenderer() if is_rendered else None
        self._shows = shows_thinking

    def text(self, text: str) -> Iterator[tuple[Kind, str]]:
        """Yield the runs of a piece of text, in which there may be tags."""
        yield from self._place(self._text.feed(text))

    def thinking(self, text: str) -> Iterator[tuple[Kind, str]]:
        """Yield the runs of a piece of a thought that has a field of its own."""
        if text and not text.isspace():
            yield from self._place(self._text.note_native())
        yield from self._place(self._text.release())
        self._native.append(text)
        yield from self._think(text)

    def close(self) -> Iterator[tuple[Kind, str]]:
        """Yield what is held, and the end of a section, before anything that is no thinking."""
        yield from self._place(self._text.release())
        yield from self._close_section()

    def finish(self) -> Iterator[tuple[Kind, str]]:
        """Yield the rest of a text, at its end."""
        yield from self._place(self._text.finish([self._native]))
        yield from self._close_section()

    def _place(self, runs: Iterable[Run]) -> Iterator[tuple[Kind, str]]:
        for run in runs:
            if run.kind == "visible":
                shown = run.text if self._renderer is None else self._renderer.answer(run.text)
                if shown:
                    yield "text", shown
            elif run.phase == "delta":
                yield from self._think(run.text)
            elif run.phase == "end":
                yield from self._close_section()

    def _think(self, text: str) -> Iterator[tuple[Kind, str]]:
        if not self._shows:
            return
        if self._renderer is None:
            yield "thinking", text
        elif shown := self._renderer.thinking(text):
            yield "text", shown

    def _close_section(self) -> Iterator[tuple[Kind, str]]:
        if self._renderer is not None and (shown := self._renderer.close()):
            yield "text", shown


class MakePlacer(Protocol):
    """Makes the placer of one choice."""

    def __call__(self, *, is_stream: bool) -> Placer: ...


class _EventRewriter:
    """The events of a stream, decoded, rewritten and encoded."""

    def __init__(self, make_placer: MakePlacer) -> None:
        self._make_placer = make_placer
        self._is_stream = False
        self._decoder = rs.JSONEvents()

    def feed(self, piece: bytes) -> bytes:
        self._is_stream = True
        if self._decoder.done:
            return b""
        return self._rewrite(self._decoder.feed(piece))

    def finish(self) -> bytes:
        return b"" if self._decoder.done else self._rewrite(self._decoder.finish())

    def rewrite_whole(self, content: bytes) -> bytes:
        try:
            body = json.loads(content)
        except ValueError:
            return content
        return write_json(self._whole(body)) if isinstance(body, dict) else content

    def _rewrite(self, values: Iterable[Any]) -> bytes:
        pieces: list[bytes] = []
        for value in values:
            if isinstance(value, dict):
                pieces += map(self._encode, self._events(value))
            else:
                text = value.encode() if isinstance(value, str) else write_json(value)
                pieces.append(b"data: " + text + b"\n\n")
        return b"".join((*pieces, _DONE)) if self._decoder.done else b"".join(pieces)

    def _encode(self, value: dict[str, Any]) -> bytes:
        return b"data: " + write_json(value) + b"\n\n"

    def _events(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


class ChatRewriter(_EventRewriter):
    """Replies of Chat Completions."""

    def __init__(self, make_placer: MakePlacer) -> None:
        super().__init__(make_placer)
        self._placers: dict[Any, Placer] = {}

    def _placer(self, choice: dict[str, Any]) -> Placer:
        number = choice.get("index", 0)
        if number not in self._placers:
            self._placers[number] = self._make_placer(is_stream=self._is_stream)
        return self._placers[number]

    def _events(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices:
            yield value
            return
        for choice in choices:
            if not isinstance(choice, dict) or not isinstance(choice.get("delta"), dict):
                yield {**value, "choices": [choice]}
                continue
            delta, runs = _take_runs(choice["delta"], self._placer(choice))
            if delta.get("tool_calls"):
                runs += self._placer(choice).close()
            if choice.get("finish_reason"):
                runs += self._placer(choice).finish()
            bare = {name: one for name, one in choice.items() if name != "logprobs"}
            for kind, text in runs:
                moved = {"content" if kind == "text" else _FIELDS[0]: text}
                role = {"role": delta.pop("role")} if "role" in delta else {}
                one = {**bare, "delta": {**role, **moved}, "finish_reason": None}
                yield {**value, "choices": [one]}
            if delta or choice.get("finish_reason") or not runs:
                yield {**value, "choices": [{**choice, "delta": delta}]}

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        choices = []
        for choice in body.get("choices") or ():
            if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
                placer = self._placer(choice)
                message, runs = _take_runs(choice["message"], placer)
                runs += placer.finish()
                texts = {
                    kind: "".join(text for one, text in runs if one == kind)
                    for kind in ("text", "thinking")
                }
                message["content"] = texts["text"] or None
                if texts["thinking"]:
                    message[_FIELDS[0]] = texts["thinking"]
                choice = {**choice, "message": message}
            choices.append(choice)
        return {**body, "choices": choices}


def _take_runs(
    given: dict[str, Any], placer: Placer
) -> tuple[dict[str, Any], list[tuple[Kind, str]]]:
    """Return a delta or a message without its text and thinking, and these as runs."""
    rest = {
        name: value
        for name, value in given.items()
        if name not in (*_FIELDS, *_MORE_FIELDS, "content")
    }
    thinking = next((given[name] for name in _FIELDS if isinstance(given.get(name), str)), "")
    content = given.get("content")
    runs = [*placer.thinking(thinking)] if thinking else []
    if isinstance(content, str) and content:
        runs += placer.text(content)
    elif content and not isinstance(content, str):
        rest["content"] = content
    return rest, runs


class MessagesRewriter(_EventRewriter):
    """Replies of Messages: their blocks get new numbers."""

    def __init__(self, make_placer: MakePlacer) -> None:
        super().__init__(make_placer)
        self._placed: Placer | None = None
        self._index = -1
        self._open: Kind | None = None
        self._kinds: dict[Any, str] = {}
        """The types of the provider's blocks, by their index."""

    def _encode(self, value: dict[str, Any]) -> bytes:
        return f"event: {value.get('type')}\n".encode() + super()._encode(value)

    @property
    def _placer(self) -> Placer:
        if self._placed is None:
            self._placed = self._make_placer(is_stream=self._is_stream)
        return self._placed

    def _events(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        match value.get("type"):
            case "content_block_start":
                yield from self._begin(value)
            case "content_block_delta":
                yield from self._add(value)
            case "content_block_stop":
                if self._kinds.get(value.get("index")) == "thinking":
                    yield from self._put(self._placer.close())
                elif self._is_other(value):
                    yield {**value, "index": self._index}
            case "message_delta" | "message_stop":
                yield from self._put(self._placer.finish())
                yield from self._stop()
                yield value
            case _:
                yield value

    def _is_other(self, value: dict[str, Any]) -> bool:
        kind = self._kinds.get(value.get("index"))
        return kind not in ("text", "thinking", "redacted_thinking")

    def _begin(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        block = value.get("content_block") or {}
        self._kinds[value.get("index")] = str(block.get("type"))
        if self._is_other(value):
            yield from self._put(self._placer.finish())
            yield from self._stop()
            self._index += 1
            yield {**value, "index": self._index}
        elif block.get("type") == "text":
            yield from self._put(self._placer.finish())
            yield from self._put(self._placer.text(block.get("text") or ""))
        elif block.get("type") == "thinking":
            yield from self._put(self._placer.thinking(block.get("thinking") or ""))

    def _add(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        delta = value.get("delta") or {}
        if delta.get("type") == "text_delta":
            yield from self._put(self._placer.text(delta.get("text") or ""))
        elif delta.get("type") == "thinking_delta":
            yield from self._put(self._placer.thinking(delta.get("thinking") or ""))
        elif self._is_other(value) or self._open == "thinking":
            yield {**value, "index": self._index}  # a signature belongs to the open block

    def _put(self, runs: Iterator[tuple[Kind, str]]) -> Iterator[dict[str, Any]]:
        for kind, text in runs:
            if self._open != kind:
                yield from self._stop()
                self._index += 1
                self._open = kind
                begun = _block(kind, "")
                yield {"type": "content_block_start", "index": self._index, "content_block": begun}
            delta = {"type": f"{kind}_delta", kind: text}
            yield {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _stop(self) -> Iterator[dict[str, Any]]:
        if self._open is not None:
            self._open = None
            yield {"type": "content_block_stop", "index": self._index}

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        placer = self._placer
        blocks: list[Any] = []

        def put(runs: Iterator[tuple[Kind, str]]) -> None:
            for kind, text in runs:
                if blocks and blocks[-1].get("type") == kind:
                    blocks[-1][kind] += text
                else:
                    blocks.append(_block(kind, text))

        for block in body.get("content") or ():
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                put(placer.finish())
                put(placer.text(block.get("text") or ""))
            elif kind == "thinking":
                put(placer.thinking(block.get("thinking") or ""))
                if blocks and blocks[-1].get("type") == "thinking":
                    blocks[-1]["signature"] = block.get("signature", "")
                put(placer.close())
            elif kind != "redacted_thinking":
                put(placer.finish())
                blocks.append(block)
        put(placer.finish())
        return {**body, "content": blocks}


def _block(kind: Kind, text: str) -> dict[str, Any]:
    signature = {"signature": ""} if kind == "thinking" else {}
    return {"type": kind, kind: text, **signature}


_REWRITERS: Final[dict[str, type[ChatRewriter] | type[MessagesRewriter]]] = {
    "/v1/chat/completions": ChatRewriter,
    "/v1/messages": MessagesRewriter,
}
