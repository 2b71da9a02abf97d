"""The limits of a server: how much, how long and how many, and its answer beyond each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server, each of them for one process."""

    header_bytes: int = 64 * 1024
    """A request's path and headers. Beyond: 431, or 400 if their end has not come."""
    header_seconds: float = 30.0
    """Until a request's headers have come. Beyond: the connection ends."""
    idle_seconds: float = 75.0
    """A connection without a request. Beyond: the connection ends."""
    body_bytes: int = 64 * _MB
    """A request's body (`--largest-body`). Beyond: 413."""
    body_seconds: float = 300.0
    """Until a request's body has come. Beyond: 408."""
    form_bytes: int = 64 * 1024
    """A form of the inspector. Beyond: 413."""
    nesting: int = 200
    """Levels of lists and objects in a body. Beyond: 400."""
    messages: int = 10_000
    """Messages or items in a body. Beyond: 400."""
    parallel_work: int = 4
    """Requests of one owner under work at once. Beyond: they wait."""
    work_seconds: float = 60.0
    """Work on one request, without the provider's time. Beyond: 503."""
    provider_seconds: float = 600.0
    """Without data from the provider (`--timeout`). Beyond: 504, or an error event in a stream."""
    reply_bytes: int = 256 * _MB
    """A provider's reply, unpacked. Beyond: 502, or an error event in a stream."""
