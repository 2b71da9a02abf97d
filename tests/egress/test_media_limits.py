"""Images that a provider refuses: foretold by a warning, and left out after a refusal."""

from __future__ import annotations

from base64 import b64encode
from struct import pack
from typing import Any

import reasoning_store as rs
from reasoning_store.testing import refusal
from reasoning_store.wire.media import image_size
from tests.egress.histories import CLAUDE
from tests.properties import each

TO: dict[str, Any] = {"provider": "anthropic", "model": "claude-opus-5"}


def png(width: int, height: int, more: int = 0) -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + pack(">II", width, height) + bytes(more)


SIZES = {
    "a PNG": (png(640, 480), (640, 480)),
    "a GIF": (b"GIF89a" + pack("<HH", 640, 480), (640, 480)),
    "a JPEG": (
        b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x11\x08" + pack(">HH", 480, 640) + b"\x03",
        (640, 480),
    ),
    "a WebP": (b"RIFF....WEBPVP8 " + bytes(10) + pack("<HH", 640, 480), (640, 480)),
    "a WebP without loss": (
        b"RIFF....WEBPVP8L....\x2f" + (639 | 479 << 14).to_bytes(4, "little") + bytes(6),
        (640, 480),
    ),
    "an extended WebP": (
        b"RIFF....WEBPVP8X" + bytes(8) + (639 | 479 << 24).to_bytes(6, "little"),
        (640, 480),
    ),
    "something else": (b"BM......", None),
    "a JPEG that breaks off": (b"\xff\xd8\xff\xe0\x00\x04ab", None),
    "nothing": (b"", None),
}


@each("name", SIZES)
def test_the_size_of_an_image_is_read_from_its_first_bytes(name: str) -> None:
    data, size = SIZES[name]

    assert image_size(data) == size


def image(data: bytes) -> rs.MediaBlock:
    return rs.MediaBlock(kind="image", mime_type="image/png", data=data)


def seen(number: int, data: bytes) -> list[rs.Message]:
    """Return a loop whose tool answers with pictures."""
    out = [rs.user("Look.", image(data))]
    for n in range(number - 1):
        made = rs.ToolCallBlock(id=f"call_{n}", name="look", parameters={})
        part = {
            "type": "media",
            "kind": "image",
            "mimeType": "image/png",
            "data": b64encode(data).decode(),
        }
        result = rs.ToolResponseBlock(call_id=made.id, tool_name="look", result=[part])
        out += [rs.assistant(made, origin=CLAUDE), rs.tool(result)]
    return out


LIMITS = {
    "few": (20, png(8000, 10), False),
    "a side too long": (1, png(10, 8001), True),
    "many": (21, png(2000, 2000), False),
    "many, a side too long": (21, png(2001, 10), True),
    "all that are taken": (600, png(1, 1), False),
    "one too many": (601, png(1, 1), True),
    "large": (1, png(9, 9, 3_932_100), False),
    "too large": (1, png(9, 9, 3_932_140), True),
}


@each("name", LIMITS)
def test_an_image_that_is_refused_is_foretold(name: str) -> None:
    """The warning and the strict provider agree."""
    number, data, is_refused = LIMITS[name]
    request = rs.build_request(seen(number, data), **TO)
    codes = [warning.code for warning in request.warnings]

    assert (refusal(request.body, **TO) is not None) == is_refused
    assert ("image_refused" in codes) == is_refused


def test_one_image_is_left_out_and_the_others_stay() -> None:
    """22 screenshots of a retina display: two go, and then a longer side is allowed."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        session.append(seen(22, png(3000, 2000)))
        request = session.build_request(**TO)
        left_out: list[rs.results.Withheld] = []
        while (said := refusal(request.body, **TO)) is not None:
            found = session.recover(said, request)
            assert found.request is not None
            assert (found.act, found.is_certain) == ("media", True)
            request = found.request
            left_out += found.withheld

        assert [(one.position, one.part) for one in left_out] == [(1, "block"), (3, "0")]
        assert "image_refused" not in {warning.code for warning in request.warnings}
