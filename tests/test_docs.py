"""README and docs are true: their Python runs, their commands are ones that are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND_OF_CI = re.compile(r"^(make [a-z ]+)$", re.MULTILINE)


def blocks(*languages: str) -> list[object]:
    return [
        pytest.param(text, id=f"{page.relative_to(CHECKOUT)}:{number}")
        for page in PAGES
        for number, (language, text) in enumerate(FENCE.findall(page.read_text("utf-8")), 1)
        if language in languages
    ]


@pytest.mark.parametrize("code", blocks("python"))
def test_the_python_of_the_documentation_runs(code: str, tmp_path: Path) -> None:
    """Every example works as it stands, in an empty folder, with warnings as errors."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("code", blocks("python"))
def test_what_an_example_says_it_prints_is_what_it_prints(code: str, tmp_path: Path) -> None:
    """A comment behind a print that states a result states the true one."""
    stated = re.findall(r"^\s*print\(.*\)\s*# .*?: (\S+)$", code, re.MULTILINE)
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert [line for line in stated if line not in ran.stdout.splitlines()] == []


@pytest.mark.parametrize("code", blocks("sh", "console", "bash"))
def test_the_commands_of_the_documentation_run(code: str, tmp_path: Path) -> None:
    """Each command line is run, but for make's, which CI runs from a clean clone."""
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
    }
    run_by_ci = {
        f"make {target}"
        for line in COMMAND_OF_CI.findall((CHECKOUT / ".ci" / "run").read_text("utf-8"))
        for target in line.split()[1:]
    }
    for command in filter(None, map(str.strip, code.splitlines())):
        if command.startswith("make "):
            assert command in run_by_ci
        else:
            ran = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert ran.returncode == 0, f"{command}: {ran.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_the_links_of_the_documentation_lead_somewhere(page: Path) -> None:
    """No page points at a file that is not there."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text("utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []
