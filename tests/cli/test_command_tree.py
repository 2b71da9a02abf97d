"""Every command of the tree: what it does, what it refuses, what it does when no one reads."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import click
import pytest

from reasoning_store import cli
from reasoning_store.cli import exit_codes
from reasoning_store.cli.app import COMMANDS, SECTIONS, app
from reasoning_store.cli.command import Command, walk_commands
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.conversation.errors import ReasoningStoreError
from reasoning_store.egress import budget
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.erasure import Only
from reasoning_store.ledger.reports import By
from reasoning_store.ledger.transfer.transfer import OnConflict
from tests.cli.cases import CASES, Case
from tests.cli.conftest import Here, clean, command

each = pytest.mark.parametrize(
    ("name", "case"), [pytest.param(name, case, id=name or "bare") for name, case in CASES.items()]
)


@pytest.mark.parametrize(
    ("name", "option", "words"),
    [
        ("import", "on_conflict", get_args(OnConflict)),
        ("erase", "only", get_args(get_args(Only)[0])),
        ("report", "by", get_args(By)),
    ],
)
def test_an_option_offers_what_its_verb_takes(
    name: str, option: str, words: tuple[str, ...]
) -> None:
    """The words are not read from the verb, which would load the ledger for a page of help."""
    command = dict(walk_commands(app))[name,]
    (found,) = (one for one in command.params if one.name == option)

    assert isinstance(found.type, click.Choice)
    assert tuple(found.type.choices) == words


def test_every_command_has_its_row() -> None:
    """A new command comes with its success, its refusal and its closed pipe."""
    runs = [
        " ".join(path)
        for path, command in walk_commands(app)
        if not isinstance(command, click.Group) or command.invoke_without_command
    ]

    assert sorted(CASES) == sorted(runs)


def test_every_command_has_an_example_that_works(here: Here, folder: Path, furnished: Path) -> None:
    """As its help shows it, on the database that the tests find."""
    for path, one in walk_commands(app):
        if isinstance(one, Command):
            assert one.examples, path
            for example in one.examples:
                shutil.copytree(furnished, folder, dirs_exist_ok=True)
                ran = here(example)
                assert ran.code in (Exit.DONE, Exit.OVER), (example, ran.err)


def test_the_help_lists_every_command_once() -> None:
    """Each in its section."""
    listed = [name for words in SECTIONS.values() for name in words.split()]

    assert len(set(listed)) == len(listed)
    assert set(COMMANDS) <= set(listed)


@each
def test_a_command_does_its_work(here: Here, name: str, case: Case) -> None:
    """With the exit code that the row says, and nothing that looks like an error."""
    ran = here(case.good)

    assert ran.code == case.code, ran.err
    assert "error:" not in ran.err


@each
def test_a_command_answers_a_program_in_json(here: Here, name: str, case: Case) -> None:
    """One object of the documented form, whatever the command."""
    ran = here(f"{case.good} --json")
    answer = json.loads(ran.out)

    assert ran.code == case.code, ran.err
    assert list(answer) == ["schema", "command", "data"]
    assert answer["schema"] == "reasoning-store/1"
    assert answer["command"] == (name or "status")


@each
def test_an_answer_has_the_keys_that_its_command_promises(
    here: Here, name: str, case: Case
) -> None:
    """What the documentation says of each is what a program gets."""
    node: click.Command | None = app
    for word in name.split():
        assert isinstance(node, click.Group)
        node = node.get_command(click.Context(node), word)
    if not isinstance(node, Command):
        return
    keys = node.answers.removeprefix("*").split()
    data = here(f"{case.good} --json").data

    assert isinstance(data, list) == node.answers.startswith("*")
    for item in data if isinstance(data, list) else [data]:
        assert not keys or list(item) == keys  # the lines of an export are of several kinds


@each
def test_a_command_refuses_in_one_line(here: Here, name: str, case: Case) -> None:
    """What was wrong and what helps, on standard error alone."""
    ran = here(case.bad)

    assert ran.code == case.refused, ran.err
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert case.says in ran.err


@each
def test_a_command_says_so_where_there_is_no_database(here: Here, name: str, case: Case) -> None:
    """Looking never makes one, and the line names the command that does."""
    if not case.needs:
        ran = here(f"{case.good} --db sqlite:///made.db")
        assert ran.code == Exit.DONE, ran.err
        return

    ran = here(f"{case.good} --db sqlite:///nowhere.db")

    assert (ran.code, ran.out) == (Exit.NOT_FOUND, "")
    assert ran.err.count("\n") == 1
    assert "reasoning-store db create" in ran.err
    assert not Path("nowhere.db").exists()


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, id=name or "bare", marks=() if n % 7 == 0 else pytest.mark.long)
        for n, (name, case) in enumerate(CASES.items())
    ],
)
def test_a_command_whose_reader_has_left_says_nothing_of_it(
    folder: Path, name: str, case: Case
) -> None:
    """What it was asked for is done and its code is the same; no traceback, no error."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            command(*shlex.split(case.good)),
            cwd=folder,
            env={**clean(os.environ, folder), "REASONING_STORE_URL": "sqlite:///chat.db"},
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)

    assert ran.returncode == case.code
    assert "error" not in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr


DECIDED_ELSEWHERE = {budget.THRESHOLD, opening.BUSY_TIMEOUT}


@pytest.mark.parametrize(
    "path", sorted(Path(cli.__file__).parent.glob("*.py")), ids=lambda p: p.stem
)
def test_a_number_that_the_library_decides_by_is_not_written_down_again(path: Path) -> None:
    """Changed there, it is changed here."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]

    assert not DECIDED_ELSEWHERE & {value for value in constants if isinstance(value, float)}


def test_every_error_has_an_exit_code() -> None:
    """Each branch of the error tree is in the table."""
    assert set(exit_codes.OF_ERROR) == set(ReasoningStoreError.__subclasses__())


def test_every_exit_code_is_explained() -> None:
    """And none is explained that there is not."""
    assert set(exit_codes.MEANING) == set(Exit)


@pytest.mark.parametrize(
    "line",
    ["request chat-42 --limit", "request --json=3 chat-42", "request --frob", "request a b c"],
)
def test_a_wrong_word_names_the_help_of_its_command(here: Here, line: str) -> None:
    """Whatever is wrong with it: also an option without its value."""
    ran = here(line)

    assert ran.code is Exit.USAGE
    assert ran.err.endswith("(reasoning-store request --help)\n")
