"""The images of a request for Claude: how many there are, their pixels and their bytes."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from struct import unpack_from
from typing import Any

from reasoning_store.testing.strict_provider.rules import Sent, numbered_objects, value_at

MOST = 600
MANY = 20
SIDE, SIDE_AMONG_MANY = 8000, 2000
MOST_BYTES = 5 * 1024 * 1024


def images_are_taken(sent: Sent) -> str | None:
    """Refuse too many images, and one that is too large, by its place."""
    images = [*_images(sent.body)]
    if len(images) > MOST:
        return f"Too much media: 0 document pages + {len(images)} images > {MOST}"
    for where, data in images:
        if len(data) > MOST_BYTES:
            what = f"image exceeds 5 MB maximum: {len(data)} bytes > {MOST_BYTES} bytes"
            return f"{where}.image.source.base64: {what}"
        side = max(_size(data))
        among = " for many-image requests" if len(images) > MANY else ""
        most = SIDE_AMONG_MANY if among else SIDE
        if side > most:
            what = f"At least one of the image dimensions exceed max allowed size{among}"
            return f"{where}.image.source.base64.data: {what}: {most} pixels"
    return None


def _images(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for n, message in numbered_objects(body.get("messages")):
        yield from _in_content(f"messages.{n}", message.get("content"))


def _in_content(where: str, content: Any) -> Iterator[tuple[str, str]]:
    for b, block in numbered_objects(content):
        place = f"{where}.content.{b}"
        data = value_at(block, "source", "data")
        if block.get("type") == "image" and isinstance(data, str):
            yield place, data
        elif block.get("type") == "tool_result":
            yield from _in_content(f"{place}.tool_result", block.get("content"))


def _size(data: str) -> tuple[int, int]:
    """Return the size of a PNG; of any other image nothing is known here."""
    begin = b64decode(data[:32] + "=" * (-len(data[:32]) % 4))
    if begin[:4] != b"\x89PNG" or len(begin) < 24:
        return 0, 0
    width, height = unpack_from(">II", begin, 16)
    return width, height
