"""The visible content of Chat Completions: text, its parts, pictures, sound.

Content is a string, or a list of parts; some hosts change from one to the other in mid-stream.
Mistral, and gateways in front of Anthropic, put thoughts among the parts. Such a thought ends
when its signature came, when a part of another kind comes, or, in a whole message, at once. A
part of an unknown type, or one that lacks a field of its type, is stored as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Metadata,
    RawBlock,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    Phase,
    ReasoningChunk,
    TextChunk,
)
from reasoning_store.wire.event_fields import other_fields, plain_value
from reasoning_store.wire.media import (
    from_base64,
    from_data_url,
    is_data_url,
)

THINKING: Final = "content.thinking"
"""``sourceField`` of a thought that is a part of the content."""

_SOURCE: Final = {"sourceField": THINKING}
_REFUSAL, _TRANSCRIPT = range(2)
"""Numbers of the texts that are not in the content."""
_MOST_ANNOTATIONS: Final = 256


class Content:
    """The content of one choice. ``whole``: it does not come in pieces."""

    def __init__(self, provider: str, choice: int, *, whole: bool) -> None:
        self._provider = provider
        self._choice = choice
        self._whole = whole
        self._annotations: list[Any] = []
        self._references: list[Any] = []
        self._audio: dict[str, Any] = {}
        self._sound: list[bytes] = []

    def read(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """``content``: a string, or a list of parts."""
        if isinstance(value, str):
            self._references = []
            out.append(TextChunk(text=value, choice=self._choice))
            return
        for raw in value if isinstance(value, list) else [value]:
            part = plain_value(raw)
            if isinstance(part, str):
                self._text({"text": part}, out)
            elif isinstance(part, dict):
                self._read_part(part, out)
            else:
                wrong.append({name: raw})

    def read_refusal(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        if not self._read_refusal_part({name: value}, out):
            wrong.append({name: value})

    def read_images(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        for raw in value if isinstance(value, list) else [value]:
            part = plain_value(raw)
            if isinstance(part, dict):
                self._read_part({"type": "image_url", **part}, out)
            else:
                wrong.append({name: raw})

    def read_audio(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """Sound comes in pieces of base64 and becomes one block; its transcript is text."""
        item = plain_value(value)
        data = item.get("data") if isinstance(item, dict) else False
        sound = b"" if data is None else from_base64(data)
        if sound is None or not isinstance(transcript := item.get("transcript"), str | None):
            wrong.append({name: value})
            return
        self._audio |= other_fields(item, ("data", "transcript"))
        if sound:
            self._sound.append(sound)
        if transcript:
            about = {name: {"id": item["id"]}} if item.get("id") else None
            self._add_text(transcript, out, about, place=_TRANSCRIPT)

    def read_annotations(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """Citations and the like, with the text that they are about."""
        if not isinstance(value, list):
            wrong.append({name: value})
        elif len(self._annotations) < _MOST_ANNOTATIONS:
            self._annotations = [*self._annotations, *map(plain_value, value)][:_MOST_ANNOTATIONS]
            self._add_text("", out, {name: self._annotations})

    def read_extra_content(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """Google's signature on the text of a message; the rest of the field only marks."""
        extra = plain_value(value)
        google = extra.get("google") if isinstance(extra, dict) else None
        if isinstance(google, dict) and google.get("thought_signature"):
            self._add_text("", out, {name: extra})

    def read_nested_fields(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """A field that belongs to the text as a whole and is kept with it."""
        self._add_text("", out, {name: value})

    def add_rest(self, out: list[Chunk]) -> None:
        """Add a block that arrived in pieces: the sound."""
        if self._sound:
            block = MediaBlock(
                kind="audio",
                mime_type="audio/*",
                data=b"".join(self._sound),
                provider_metadata=self._audio or None,
            )
            self._sound = []
            out.append(BlockChunk(block=block, choice=self._choice))

    # --- parts --------------------------------------------------------------------------

    def _read_part(self, part: Metadata, out: list[Chunk]) -> None:
        kind = str(part.get("type"))
        if kind != "thinking":
            self._references = []
        read = _PARTS.get(kind)
        if read is None or not read(self, part, out):
            out.append(BlockChunk(block=RawBlock(data=part), choice=self._choice))

    def _text(self, part: Metadata, out: list[Chunk]) -> bool:
        text = part.get("text")
        if not isinstance(text, str):
            return False
        about = {
            name: value for name, value in other_fields(part, ("type", "text")).items() if value
        }
        if text or about:
            self._add_text(text, out, about or None)
        return True

    def _read_refusal_part(self, part: Metadata, out: list[Chunk]) -> bool:
        text = part.get("refusal")
        if not isinstance(text, str):
            return False
        self._add_text(text, out, {"refusal": True}, place=_REFUSAL)
        return True

    def _read_image_part(self, part: Metadata, out: list[Chunk]) -> bool:
        address = part.get("image_url")
        url = address.get("url") if isinstance(address, dict) else address
        block = _image_of_url(url) if isinstance(url, str) else None
        if block is not None:
            out.append(BlockChunk(block=block, choice=self._choice))
        return block is not None

    def _read_thinking_part(self, part: Metadata, out: list[Chunk]) -> bool:
        """Mistral's thinking is a list, with references between the texts."""
        value, signature = part.get("thinking"), part.get("signature")
        pieces = value if isinstance(value, list) else [value or ""]
        texts = [readable(piece) for piece in pieces]
        if not isinstance(signature, str | None) or (pieces is not value and None in texts):
            return False
        text = "".join(piece for piece in texts if piece)
        about: dict[str, Any] = {**_SOURCE}
        if others := [piece for piece, read in zip(pieces, texts, strict=True) if read is None]:
            # The list itself is handed out, and grows with the thought.
            self._references += others
            about["providerMetadata"] = {"references": self._references}
        if signature:
            about["signature"] = signature
        if text or len(about) > 1:
            out.append(self._thought(about, text, "end" if self._whole else "delta"))
        if signature and not self._whole:
            out.append(self._thought(_SOURCE, "", "end"))
        if signature or self._whole:
            self._references = []
        return True

    def _read_redacted_part(self, part: Metadata, out: list[Chunk]) -> bool:
        data = part.get("data")
        if not isinstance(data, str):
            return False
        # An unsigned thought before it is over now: this is another block.
        out.append(self._thought(_SOURCE, "", "end"))
        out.append(self._thought({**_SOURCE, "encrypted": data, "redacted": True}, "", "end"))
        return True

    def _thought(self, about: Metadata, text: str, phase: Phase) -> ReasoningChunk:
        return ReasoningChunk(
            provider=self._provider,
            phase=phase,
            text=text,
            is_complete=phase == "end",
            metadata=about,
            choice=self._choice,
        )

    def _add_text(
        self, text: str, out: list[Chunk], about: Metadata | None, *, place: int | None = None
    ) -> None:
        out.append(TextChunk(text=text, content_index=place, metadata=about, choice=self._choice))


_PARTS: Final[Mapping[str, Callable[[Content, Metadata, list[Chunk]], bool]]] = {
    "text": Content._text,
    "output_text": Content._text,
    "thinking": Content._read_thinking_part,
    "redacted_thinking": Content._read_redacted_part,
    "image_url": Content._read_image_part,
    "refusal": Content._read_refusal_part,
}


def readable(piece: Any) -> str | None:
    """Return the text of a string, or of a part that is nothing but text."""
    if isinstance(piece, dict) and piece.get("type", "text") == "text":
        piece = piece.get("text")
    return piece if isinstance(piece, str) else None


def _image_of_url(url: str) -> MediaBlock | None:
    """Return a picture at an address, or in one; ``None`` where its data cannot be read."""
    if not is_data_url(url):
        return MediaBlock(kind="image", mime_type="image/*", url=url)
    found = from_data_url(url)
    return MediaBlock(kind="image", mime_type=found[0], data=found[1]) if found else None
