"""The adapters of frameworks are extras: the package works without any of them."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import reasoning_store as rs

CHECKOUT = Path(__file__).parent.parent.parent
ADAPTERS = [
    "agent_framework",
    "google_adk",
    "langchain",
    "llama_index",
    "openai_agents",
    "pydantic_ai",
]


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_without_its_framework_names_the_extra(name: str) -> None:
    """The frameworks are not among the packages of these tests."""
    with pytest.raises(rs.MissingExtra) as raised:
        import_module(f"reasoning_store.integrations.{name}")

    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    assert raised.value.hint == f"run: pip install 'reasoning-store[{raised.value.extra}]'"
    assert raised.value.extra in extras["optional-dependencies"]


@pytest.mark.parametrize(
    ("name", "package"), [("agent_framework", "agent_framework"), ("langchain", "langchain_core")]
)
def test_an_adapter_names_a_framework_that_does_not_fit(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a version of it that has other names in its modules."""
    for folder in (package, f"{package}/messages", f"{package}/chat_history"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(rs.MissingExtra, match=f"{package} is installed in a version that does not"):
        import_module(f"reasoning_store.integrations.{name}")
    for loaded in [one for one in sys.modules if one.partition(".")[0] == package]:
        del sys.modules[loaded]
