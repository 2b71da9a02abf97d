"""Deletes each row of contracts.toml that egress reads, and runs the tests that have to notice.

    python -m tests.egress.every_row

Prints a line a row, and fails where a row is gone and no test is red. The rows of Chat
Completions and its kin are held by a test of their own, in ``test_chat_requests``; this takes
some minutes, for every row is a run of pytest.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.wire import row_by_row

TABLES = row_by_row.read()
TESTS: Mapping[str, tuple[str, ...]] = {
    "anthropic.messages": (
        "tests/wire/test_anthropic_requests.py",
        "tests/wire/test_anthropic_reasoning_requests.py",
    ),
    "bedrock.converse": ("tests/wire/test_bedrock_requests.py",),
    "gemini.generate_content": ("tests/wire/test_gemini_requests.py",),
    "openai.responses": (
        "tests/wire/test_openai_responses_requests.py",
        "tests/wire/test_openai_responses_calls.py",
    ),
    "thinking_events": ("tests/wire/test_thinking_events_requests.py",),
}
_LATE = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
"""Run as a module, this package is imported before the tests ask for its assertions."""
_QUIETLY = ("-q", "-x", "-n0", "-p", "no:cacheprovider", *_LATE)
EVERYWHERE = (
    "tests/wire/test_contracts.py",
    "tests/egress/test_chat_requests.py",
    "tests/egress/test_chat_contents.py",
)


def main(arguments: Sequence[str]) -> int:
    if arguments:
        table, number, *tests = arguments
        return run_without((table, int(number)), tests)
    unnoticed = 0
    rows = [
        (table, place) for table in ("contract", "model") for place in range(len(TABLES[table]))
    ]
    for row in rows:
        noticed = is_noticed(row)
        unnoticed += not noticed
        print("red  " if noticed else "GREEN", row_by_row.label(TABLES, row), flush=True)
    return 1 if unnoticed else 0


def is_noticed(row: tuple[str, int]) -> bool:
    """Whether a test is red where the row is gone."""
    table, number = row
    item = TABLES[table][number]
    own = [test for api in item.get("apis", [item.get("api")]) for test in TESTS.get(api, ())]
    command = [sys.executable, "-m", "tests.egress.every_row", table, str(number)]
    ran = subprocess.run([*command, *own, *EVERYWHERE], stdout=subprocess.DEVNULL)
    return ran.returncode == pytest.ExitCode.TESTS_FAILED


def run_without(row: tuple[str, int], tests: Sequence[str]) -> int:
    with row_by_row.in_force(row_by_row.without(TABLES, row)):
        return int(pytest.main([*_QUIETLY, *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
