"""The pages of the documentation: their blocks of code, and how those are run."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import programs

CHECKOUT = Path(__file__).parent.parent.parent
NEEDS = re.compile(r"^<!-- needs (\w+) -->$", re.MULTILINE)
"""The framework that a page needs: ``make test-frameworks`` runs its examples."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of a page, and what the page says it prints."""

    language: str
    text: str
    output: str | None = None


def read(page: Path) -> list[Block]:
    found: list[Block] = []
    for language, text in FENCE.findall(page.read_text("utf-8")):
        if language == "output":
            assert found, f"{page}: an output of nothing"
            found[-1] = Block(found[-1].language, found[-1].text, text)
        else:
            found.append(Block(language, text))
    return found


def framework_of(page: Path) -> str | None:
    """Return the framework that a page needs."""
    found = NEEDS.search(page.read_text("utf-8"))
    return None if found is None else found[1]


def clean_environment(folder: Path) -> dict[str, str]:
    """Return the variables of a program that finds its home in a folder."""
    scripts = Path(sys.executable).parent
    return {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_DATA_HOME": str(folder),
        "PYTHONWARNINGS": "error",
        **{key: os.environ[key] for key in ("PYTHONPATH", "SYSTEMROOT") if key in os.environ},
    }


def run(block: Block, folder: Path, environment: dict[str, str]) -> None:
    """Run a block as a program, which prints what the page says."""
    if block.language == "python":
        ran = programs.run([sys.executable, "-c", block.text], cwd=folder, env=environment)
    else:
        ran = programs.run_shell(block.text, cwd=folder, env=environment)
    assert ran.returncode == 0, ran.stderr
    if block.output is not None:
        assert lines(ran.stdout) == lines(block.output)


def lines(text: str) -> list[str]:
    """Return a text's lines, without the spaces that no one sees."""
    return [line.rstrip() for line in text.rstrip().splitlines()]
