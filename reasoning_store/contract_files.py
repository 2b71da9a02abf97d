"""Reads a file of contracts of an application's own."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any, TypeAlias

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.wire.own_contracts import add_contracts

Contracts: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A TOML file, or a mapping of the same form."""


def load_contracts(source: Contracts) -> None:
    """Let the contracts of a file, or of a mapping of the same form, hold in this process."""
    if not isinstance(source, str | os.PathLike):
        add_contracts("contracts", source)
        return
    name = os.fspath(source)
    try:
        with open(source, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise InvalidCall(
            f"contracts: {name} cannot be read: {error.strerror}",
            hint="name a TOML file, or pass a mapping",
        ) from None
    except ValueError as error:
        raise InvalidCall(
            f"contracts: {name} is not TOML: {error}", hint="its tables are [[host]] and more"
        ) from None
    add_contracts(name, data)
