"""The pages that need a framework: their examples, and how those are run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import CHECKOUT, Block, clean_environment, framework_of, lines, read
from tests.docs.provider import Provider

__all__ = ["Block", "blocks", "run"]


def blocks(framework: str) -> list[object]:
    """Return the Python examples of the pages that need a framework."""
    return [
        pytest.param(block, id=f"{page.relative_to(CHECKOUT)}:{number}")
        for page in sorted((CHECKOUT / "docs").rglob("*.md"))
        if framework_of(page) == framework
        for number, block in enumerate(read(page), 1)
        if block.language == "python"
    ]


def run(block: Block, folder: Path) -> None:
    """Run an example with a provider that answers the clients."""
    with Provider().listening() as provider:
        environment = clean_environment(folder) | provider.environment
        del environment["PYTHONWARNINGS"]  # frameworks warn of their own parts
        ran = subprocess.run(
            [sys.executable, "-c", block.text],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        assert provider.refused == []
    if block.output is not None:
        assert lines(ran.stdout) == lines(block.output), ran.stdout
