"""The options of a server, checked once, before it listens."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from reasoning_store import InvalidCall
from reasoning_store.server.limits import Limits

Mode: TypeAlias = Literal["mirror", "clean", "render"]
MODES: Final[tuple[Mode, ...]] = ("mirror", "clean", "render")
OPERATOR: Final = "*"
"""The owner of a token that reads the numbers of all owners, and no session."""
TOKEN_VARIABLE: Final = "REASONING_STORE_TOKEN"
PORT: Final = 8765
_LEAST_TOKEN: Final = 16
"""The shortest token: one that cannot be guessed is longer."""
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options of a server."""

    host: str = "127.0.0.1"
    port: int = PORT
    upstream: str | None = None
    """The provider's base URL, as its SDK takes it; without one there is no gateway."""
    provider: str | None = None
    """The provider, where its address does not name it."""
    upstream_key: str | None = field(default=None, repr=False)
    """The key that is sent to the provider in place of the client's."""
    tokens: Mapping[bytes, str] = field(default_factory=dict, repr=False)
    """The owner of each token's digest. Without tokens every request is ``owner``'s."""
    owner: str = ""
    hosts: frozenset[str] = frozenset()
    """Names by which clients call this server, other than ``localhost`` and addresses."""
    origins: frozenset[str] = frozenset()
    """Pages of other origins whose scripts may call this server."""
    mode: Mode = "mirror"
    on_store_error: Literal["pass", "fail"] = "pass"
    limits: Limits = field(default_factory=Limits)
    cookie_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Signs the cookies of browsers; all workers of a server have it."""
    drain: float = 0.0
    """Seconds that replies under way get to end when the server stops."""

    def __post_init__(self) -> None:
        if not self.tokens and not is_loopback(self.host):
            raise InvalidCall(
                f"host {self.host}: other machines reach this address, so a token is needed",
                hint=f"set {TOKEN_VARIABLE} or pass --token-file; 127.0.0.1 needs no token",
            )
        if self.upstream is not None:
            check_url("upstream", self.upstream)
        for origin in self.origins:
            check_url("origin", origin)

    @property
    def shares_key(self) -> bool:
        """Whether one key asks the provider for several owners, whom it cannot tell apart."""
        return self.upstream_key is not None and len(self.owners) > 1

    @property
    def owners(self) -> frozenset[str]:
        """The owners of the tokens."""
        return frozenset(self.tokens.values()) - {OPERATOR}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_url(name: str, url: str) -> None:
    """Refuse what is not the address of a server."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
    except ValueError:
        good = False
    if not good:
        raise InvalidCall(
            f"{name}: an http or https URL is needed", hint="e.g. https://api.deepseek.com/v1"
        )


def token_digest(token: str) -> bytes:
    """Return the digest of a token: all that is kept of it."""
    return hashlib.sha256(token.encode()).digest()


def read_tokens(lines: Iterable[str], place: str) -> dict[bytes, str]:
    """Return the owners of the tokens of a file: each line is a token, a space and an owner.

    A token may be written as ``sha256:`` and its digest. Lines that begin with # are comments.
    """
    tokens: dict[bytes, str] = {}
    for number, line in enumerate(lines, 1):
        token, _, owner = line.strip().partition(" ")
        if not token or token.startswith("#"):
            continue
        digest = _DIGEST.fullmatch(token)
        if digest is None and len(token) < _LEAST_TOKEN:
            raise InvalidCall(
                f"{place}, line {number}: a token has at least {_LEAST_TOKEN} characters",
                hint=f"for example {secrets.token_urlsafe(24)}",
            )
        found = bytes.fromhex(digest[1]) if digest else token_digest(token)
        if found in tokens:
            raise InvalidCall(
                f"{place}, line {number}: this token has an owner already",
                hint="give each owner a token of its own",
            )
        tokens[found] = owner.strip()
    return tokens
