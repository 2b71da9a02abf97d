"""The folders of a user, by the convention of the system."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """Return the folder for data; RuntimeError where the user has no home."""
    return _user_folder("XDG_DATA_HOME", Path(".local", "share"))


def config_folder() -> Path:
    """Return the folder for configuration; RuntimeError where the user has no home."""
    return _user_folder("XDG_CONFIG_HOME", Path(".config"))


def _user_folder(variable: str, otherwise: Path) -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get(variable) or Path.home() / otherwise)
