"""What a run was made on, as far as it matters to a figure: never a name or a path."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from reasoning_store import __version__
from reasoning_store.ledger.database.sqlite_connections import library

_RIVALS = (
    "openai-agents",
    "langchain-community",
    "llama-index-core",
    "pydantic-ai-slim",
    "litellm",
)


def described(*, memory_backed: bool, postgres: str | None) -> dict[str, Any]:
    """Return the machine and the versions."""
    return {
        "reasoning-store": __version__,
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "system": platform.system(),
        "memory": _memory(),
        "python": platform.python_version(),
        "sqlite": library().sqlite_version,
        "postgresql": postgres,
        "memory-backed storage": memory_backed,
        "rivals": {name: found for name in _RIVALS if (found := _version(name)) is not None},
    }


def _memory() -> str | None:
    """Return the memory in GB, where the system tells."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return f"{size / 1e9:.0f} GB"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def memory_folder() -> Path | None:
    """Return a folder on storage that costs no waiting, where the system has one."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else None
