"""Run the SDKs' own tests against a server of ours, and print how many passed.

The tests come from the source packages that PyPI has, into ``build/suites``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.frameworks.foreign_suites import fetch_sources
from tests.suites.seeded import serving_seeded

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / "build" / "suites"
_INI = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = session
xfail_strict = true
pythonpath = .
"""


class Suite(NamedTuple):
    """The tests of an SDK that ask a server."""

    sdk: str
    base: str
    """Below the server's address."""
    paths: tuple[str, ...]
    options: tuple[str, ...] = ()


SUITES = (
    Suite(
        "openai",
        "/v1",
        (
            "test_conversations.py",
            "conversations",
            "test_responses.py",
            "responses",
            "chat",
            "test_models.py",
        ),
    ),
    Suite("anthropic", "", ("test_messages.py", "test_models.py"), ("-p", "tests._alias_httpx")),
)


def run(suite: Suite, address: str) -> bool:
    """Run a suite, print its numbers, and return whether all passed."""
    named = f"{suite.sdk}-{version(suite.sdk)}"
    sources = FOLDER / named
    if not sources.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        fetch_sources(suite.sdk, FOLDER)
    ini, report = sources / "reasoning-store.ini", sources / "reasoning-store.xml"
    ini.write_text(_INI, "utf-8")
    report.unlink(missing_ok=True)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:logging"),
            *("-c", str(ini), "--rootdir", str(sources), "--tb=short"),
            *("-p", "left_out", f"--sdk={suite.sdk}", *suite.options, f"--junitxml={report}"),
            *(f"tests/api_resources/{path}" for path in suite.paths),
        ],
        cwd=sources,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent),
            "TEST_API_BASE_URL": f"{address}{suite.base}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        print(ran.stdout[-8000:], ran.stderr[-4000:])
        return False
    found = ElementTree.parse(report).getroot().find("testsuite")
    assert found is not None
    counts = {name: int(found.get(name, "0")) for name in ("tests", "failures", "errors")}
    failed = counts["failures"] + counts["errors"]
    skipped = int(found.get("skipped", "0"))
    out = re.search(r"(\d+) deselected", ran.stdout)
    if ran.returncode != 0:
        print(ran.stdout[-8000:])
    print(
        f"{named}: {counts['tests'] - failed - skipped} passed, {out[1] if out else 0} left out"
        f" (tests/suites/left_out.py), {skipped} skipped by the suite, {failed} failed"
    )
    return ran.returncode == 0


if __name__ == "__main__":
    with serving_seeded() as address:
        passed = [run(suite, address) for suite in SUITES]
    sys.exit(0 if all(passed) else 1)
