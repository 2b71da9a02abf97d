"""The adapters of frameworks are extras: the package works without any of them."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import reasoning_store as rs

CHECKOUT = Path(__file__).parent.parent.parent
ADAPTERS = ["agent_framework", "google_adk", "langchain", "llama_index"]


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_without_its_framework_names_the_extra(name: str) -> None:
    """The frameworks are not among the packages of these tests."""
    with pytest.raises(rs.MissingExtra) as raised:
        import_module(f"reasoning_store.integrations.{name}")

    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    assert raised.value.hint == f"run: pip install 'reasoning-store[{raised.value.extra}]'"
    assert raised.value.extra in extras["optional-dependencies"]
