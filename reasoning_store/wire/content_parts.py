"""The parts of a message of a user, a tool or a system prompt, and of a tool's result.

Theory. No delimiter is searched for here: a user or a tool may write one. A text is a text block, a
medium with its bytes or its address is a media block, and everything else is kept raw as it came,
so that its own protocol takes it back. The other fields of a part are stored with its block, except
cache marks: they are about one request.

A tool's result is stored as it came. If its parts have media among them, ``result_parts`` reads
them in whatever form they are: the block's own JSON, MCP's, the AI SDK's or a protocol's.

Knows the parts of Chat Completions, Responses and Messages. It must not know roles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, get_args

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    MediaKind,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.wire.event_fields import other_fields
from reasoning_store.wire.media import from_base64, from_data_url, is_data_url

Part: TypeAlias = Mapping[str, Any]
_MARKS: Final = ("cache_control",)
_SOUNDS: Final[Mapping[str, str]] = {"mp3": "audio/mpeg"}
TEXTS: Final = ("text", "input_text", "output_text")
"""The types of parts that are text."""


def read_blocks(content: Any) -> list[Block]:
    """Return the blocks of a content: none for nothing, one for a text, one for each part."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [TextBlock(text=content)]
    return [made for item in content if (made := read_block(item)) is not None]


def read_block(item: Any) -> Block | None:
    """Return the block of one part; None for an empty text."""
    if isinstance(item, str):
        item = {"type": "text", "text": item}
    if not isinstance(item, dict):
        return RawBlock(data=item)
    part = without_cache_marks(item)
    read = _PARTS.get(str(part.get("type")))
    made = read(part) if read is not None else None
    if made is None:
        return RawBlock(data=part)
    return None if made == _EMPTY else made


def without_cache_marks(value: Any) -> Any:
    """Return a part, or a list of parts, without the marks that are about one request."""
    if isinstance(value, list):
        return [without_cache_marks(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: item for name, item in value.items() if name not in _MARKS}


def visible_texts(content: Any) -> list[str]:
    """Return the texts of a content, and the words in which a model refused, unchanged."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [text for item in content if isinstance(text := _text_of(item), str)]


def block_texts(blocks: Iterable[Block]) -> list[str]:
    """Return the texts of blocks."""
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def _text_of(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    return item.get("text" if item.get("type") in TEXTS else "refusal")


def read_result(content: Any) -> Any:
    """Return the result of a tool: its text if it is only text, else the value as it came."""
    if content is None:
        return ""
    if isinstance(content, list):
        plain = [item for item in content if isinstance(item, str) or _is_plain(item)]
        if len(plain) == len(content):
            return "".join(visible_texts(content))
        return without_cache_marks(content)
    return content


def result_parts(block: ToolResponseBlock) -> list[TextBlock | MediaBlock] | None:
    """Return the parts of a result that has media; ``None`` for any other, which is one text.

    A part that is neither is a text of its JSON.
    """
    listed = [block.result] if isinstance(block.result, Mapping) else block.result
    if not isinstance(listed, list):
        return None
    read = [_read_medium_part(item) for item in listed]
    if not any(read):
        return None
    return [made or _text_part(item) for made, item in zip(read, listed, strict=True)]


def describe_result(block: ToolResponseBlock) -> str:
    """Return a result as text for a reader: a medium by its kind, with its name or type."""
    parts = result_parts(block)
    if parts is None:
        return codec.result_text(block)
    return "\n".join(
        part.text
        if isinstance(part, TextBlock)
        else f"({part.kind}: {part.name or part.mime_type})"
        for part in parts
    )


def _read_medium_part(item: Any) -> MediaBlock | None:
    read = _IN_RESULTS.get(str(item.get("type"))) if isinstance(item, Mapping) else None
    made = read(item) if read is not None else None
    return replace(made, provider_metadata=None) if isinstance(made, MediaBlock) else None


def _text_part(item: Any) -> TextBlock:
    text = item.get("text") if isinstance(item, Mapping) and item.get("type") in TEXTS else item
    return TextBlock(text=text if isinstance(text, str) else codec.dumps(item))


def _is_plain(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("type") in TEXTS
        and isinstance(item.get("text"), str)
        and without_cache_marks(item).keys() == {"type", "text"}
    )


_EMPTY: Final = TextBlock(text="")


def _read_text(part: Part) -> Block | None:
    text = part.get("text")
    if not isinstance(text, str):
        return None
    return TextBlock(text=text, provider_metadata=_other_fields(part, "text"))


def _read_address(name: str, kind: MediaKind, part: Part) -> Block | None:
    """Return the medium of a field that is an address, or an object with one."""
    value = part.get(name)
    about = other_fields(value, ("url",)) if isinstance(value, dict) else {}
    url = value.get("url") if isinstance(value, dict) else value
    made = _medium_at(url, kind) if isinstance(url, str) and url else None
    metadata = {**(_other_fields(part, name) or {}), **about}
    return None if made is None else replace(made, provider_metadata=metadata or None)


def _read_audio(part: Part) -> Block | None:
    sound = part.get("input_audio")
    data = from_base64(sound.get("data")) if isinstance(sound, dict) else None
    if not isinstance(sound, dict) or data is None:
        return None
    form = sound.get("format")
    if not isinstance(form, str):
        return None
    return MediaBlock(
        kind="audio",
        mime_type=_SOUNDS.get(form, f"audio/{form}"),
        data=data,
        provider_metadata=_other_fields(part, "input_audio"),
    )


def _read_file(part: Part) -> Block | None:
    about = part.get("file", part)
    if not isinstance(about, dict):
        return None
    url, name = about.get("file_data") or about.get("file_url"), about.get("filename")
    if about.get("file_id") or not (isinstance(url, str) and isinstance(name, str | None)):
        return None
    made = _medium_at(url, "file")
    return None if made is None else replace(made, name=name)


def _read_source(kind: MediaKind, part: Part) -> Block | None:
    """Return a medium of the Messages protocol; a file of the provider's stays raw."""
    source, title = part.get("source"), part.get("title")
    if not (isinstance(source, dict) and isinstance(title, str | None)):
        return None
    mime, metadata = source.get("media_type"), _other_fields(part, "source", "title")
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        mime = "application/pdf" if kind == "file" else "image/*"
        return MediaBlock(
            kind=kind, mime_type=mime, name=title, url=source["url"], provider_metadata=metadata
        )
    text = source.get("data")
    if not (isinstance(mime, str) and isinstance(text, str)):
        return None
    data = text.encode() if source.get("type") == "text" else from_base64(text)
    if data is None or source.get("type") not in ("base64", "text"):
        return None
    return MediaBlock(kind=kind, mime_type=mime, name=title, data=data, provider_metadata=metadata)


def _read_image(part: Part) -> Block | None:
    return _read_source("image", part) or _read_inline(part)


def _read_inline(part: Part) -> Block | None:
    """Return a medium that is named by its type, with its bytes in base64."""
    mime, name = part.get("mimeType", part.get("mediaType")), part.get("name")
    data, url = part.get("data"), part.get("url") if part.get("type") == "media" else None
    if not isinstance(mime, str) or not all(isinstance(v, str | None) for v in (name, data, url)):
        return None
    return read_medium(mime, data=data, url=url, name=name)


def _medium_at(url: str, kind: MediaKind) -> MediaBlock | None:
    """Return a medium at an address, or in one; ``None`` where its data cannot be read."""
    if not is_data_url(url):
        return MediaBlock(kind=kind, mime_type=any_type(kind), url=url)
    held = from_data_url(url)
    return None if held is None else MediaBlock(kind=kind, mime_type=held[0], data=held[1])


def read_medium(
    mime: str,
    *,
    data: str | bytes | None = None,
    url: str | None = None,
    ref: str | None = None,
    name: str | None = None,
) -> MediaBlock | None:
    """Return a medium of a type: its bytes, also in base64, its address, or where it is kept."""
    kind = media_kind(mime)
    if found := data if isinstance(data, bytes) else from_base64(data):
        return MediaBlock(kind=kind, mime_type=mime, name=name, data=found)
    if url and not data:
        made = _medium_at(url, kind)
        return None if made is None else replace(made, mime_type=mime, name=name)
    return MediaBlock(kind=kind, mime_type=mime, name=name, ref=ref) if ref and not data else None


def media_kind(mime: str) -> MediaKind:
    """Return the kind of a medium of a type."""
    head: Any = mime.partition("/")[0]
    return head if head in get_args(MediaKind) else "file"


def any_type(kind: str) -> str:
    """Return the type of a medium of which only the kind is known."""
    return "application/octet-stream" if kind == "file" else f"{kind}/*"


def _other_fields(part: Part, *names: str) -> dict[str, Any] | None:
    return other_fields(part, ("type", *names)) or None


_PARTS: Final[Mapping[str, Callable[[Part], Block | None]]] = {
    **dict.fromkeys(TEXTS, _read_text),
    **dict.fromkeys(("image_url", "input_image"), partial(_read_address, "image_url", "image")),
    "video_url": partial(_read_address, "video_url", "video"),
    "input_audio": _read_audio,
    **dict.fromkeys(("file", "input_file"), _read_file),
    "image": partial(_read_source, "image"),
    "document": partial(_read_source, "file"),
}
_IN_RESULTS: Final[Mapping[str, Callable[[Part], Block | None]]] = {
    **_PARTS,
    "image": _read_image,
    **dict.fromkeys(("audio", "media", "image-data", "file-data"), _read_inline),
    "image-url": partial(_read_address, "url", "image"),
    "computer_screenshot": partial(_read_address, "image_url", "image"),
}
