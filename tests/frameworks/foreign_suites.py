"""A framework's own tests, from its published source package, with a class of ours in theirs.

The package is fetched into a temporary folder when the tests run; nothing of it is kept. A module
of ``stand_ins/`` puts our class in the place of the framework's before its tests are imported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urljoin

STAND_INS = Path(__file__).parent / "stand_ins"
INDEX = "https://pypi.org/simple/"
_INI = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
markers =
    requires: a package that a test needs
    asyncio: a test that is awaited
"""


def fetch_sources(package: str, folder: Path) -> Path:
    """Unpack the source package of the version that is installed, and return its folder."""
    wanted = version(package)
    file = f"{package.replace('-', '_')}-{wanted}.tar.gz"
    page = f"{INDEX}{package}/"
    with urllib.request.urlopen(page, timeout=60) as found:
        links = re.findall(r'href="([^"]*)"', found.read().decode())
    link = next(one for one in links if one.partition("#")[0].endswith(f"/{file}"))
    packed = folder / file
    with urllib.request.urlopen(urljoin(page, link), timeout=120) as found:
        packed.write_bytes(found.read())
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    packed.unlink()
    return folder / file.removesuffix(".tar.gz")


def run_suite(
    sources: Path,
    paths: Sequence[str],
    *,
    stand_in: str,
    left_out: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run tests of a framework with our class in the place of its own; return how many passed.

    ``left_out`` has the names of the tests that are not run, each with the reason.
    """
    ini, report = sources / "reasoning-store.ini", sources / "reasoning-store.xml"
    ini.write_text(_INI, "utf-8")
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-c", str(ini), "--rootdir", str(sources), "-p", stand_in),
            *(f"--junitxml={report}", "-o", "junit_family=xunit1"),
            *(f"--deselect={name}" for name in left_out),
            *paths,
        ],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": str(STAND_INS), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    counts = {name: int(suite.get(name, "0")) for name in ("tests", "skipped")}
    assert counts["skipped"] == 0, ran.stdout[-8000:]
    print(f"{counts['tests']} tests of {sources.name} passed, {len(left_out)} left out")
    return counts["tests"]
