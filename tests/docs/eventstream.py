"""The binary frames in which Amazon answers a stream.

From the public description of the event stream encoding: lengths, a checksum of them, typed
headers, a payload of JSON, a checksum of it all. Bytes stand in the JSON as base64.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from binascii import crc32
from collections.abc import Mapping
from typing import Any

_STRING = 7


def frame(event: Mapping[str, Any]) -> bytes:
    """Return one event of one member as the bytes of the connection."""
    ((name, payload),) = event.items()
    headers = b"".join(
        _header(key, value)
        for key, value in (
            (":message-type", "event"),
            (":event-type", name),
            (":content-type", "application/json"),
        )
    )
    body = json.dumps(payload, default=lambda data: b64encode(data).decode("ascii")).encode()
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    checked = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return checked + struct.pack("!I", crc32(checked))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_STRING]) + struct.pack("!H", len(text)) + text
