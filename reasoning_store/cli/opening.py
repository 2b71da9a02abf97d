"""Which database a command works on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reasoning_store.errors import NotFound
from reasoning_store.store import Store


def url(context: click.Context) -> str:
    """Return the URL that was given, else that of the user's own database."""
    given: str | None = context.obj
    return given or f"sqlite:///{default_path()}"


def default_path() -> Path:
    """Return where a user's own database lies, by the custom of the system."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "reasoning-store" / "chat.db"


def existing(context: click.Context) -> Store:
    """Open a database that is there already: looking at one never makes it."""
    address = url(context)
    scheme, _, path = address.partition(":///")
    if scheme.startswith("sqlite") and path and not Path(path).exists():
        raise NotFound(
            f"there is no database at {path}",
            hint="reasoning-store --db sqlite:///chat.db upgrade makes one; "
            "reasoning-store demo needs none",
        )
    return Store(address)
