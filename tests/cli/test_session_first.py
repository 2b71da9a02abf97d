"""SESSION is the first word after a command, of whatever command takes one."""

from __future__ import annotations

import click
import pytest

import reasoning_store as rs
from reasoning_store.cli.app import app
from reasoning_store.cli.command import walk_commands
from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here, Run
from tests.properties import each


def taken(command: click.Command) -> list[str]:
    """Return the words that a command's help says it takes."""
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    return " ".join(one.make_metavar(click.Context(command)) for one in arguments).split()


WITH_SESSION = {
    " ".join(path): words
    for path, command in walk_commands(app)
    if {"SESSION", "[SESSION]"} & {*(words := taken(command))}
}


def test_a_session_is_the_first_word_wherever_there_is_one() -> None:
    """Who knows it of one command knows it of all."""
    assert {"get", "profile use", "set", "show", "unset", "usage"} <= {*WITH_SESSION}
    assert [name for name, words in WITH_SESSION.items() if "SESSION" not in words[0]] == []


@each(
    "first, option",
    [
        ("set chat-42 effort high", "set effort high --session chat-42"),
        ("set chat-42 effort high", "set --session chat-42 effort high"),
        ("get chat-42 effort", "get effort --session chat-42"),
        ("get chat-42", "get --session chat-42"),
        ("unset chat-42 effort", "unset effort --session chat-42"),
        ("profile use chat-42 terse", "profile use terse --session chat-42"),
        ("profile use chat-42 --none", "profile use --session chat-42 --none"),
    ],
)
def test_the_session_may_be_named_by_an_option_as_well(here: Here, first: str, option: str) -> None:
    """Both spellings do the same."""
    words, named = here(f"{first} --json"), here(f"{option} --json")

    assert words.code == named.code == Exit.DONE, words.err + named.err
    assert words.data == named.data


@each(
    "line, says",
    [
        ("set effort high", "SESSION KEY VALUE is wanted, not effort high"),
        ("set chat-42 effort", "SESSION KEY VALUE is wanted, not chat-42 effort"),
        ("set chat-42 effort very high", "SESSION KEY VALUE is wanted"),
        ("set chat-42 effort high --session chat-42", "with --session, KEY VALUE is wanted"),
        ("set chat-42 effort high --profile terse", "with --profile, KEY VALUE is wanted"),
        ("set effort high --session chat-42 --profile terse", "--session and --profile exclude"),
        ("set effort high --default --profile terse", "--profile and --default exclude"),
        ("set effort high chat-42", "SESSION comes first, and effort is a setting"),
        ("unset chat-42", "SESSION KEY is wanted, not chat-42"),
        ("unset reasoning.effort chat-42", "SESSION comes first, and reasoning.effort is"),
        ("get", "SESSION [KEY] is wanted, not nothing"),
        ("get effort", "SESSION comes first, and effort is a setting"),
        ("get effort chat-42", "SESSION comes first, and effort is a setting"),
        ("profile use terse", "pass SESSION NAME, or SESSION --none"),
        ("profile use chat-42 terse --none", "pass SESSION NAME, or SESSION --none"),
    ],
)
def test_words_that_do_not_fit_are_refused_with_those_that_do(
    here: Here, line: str, says: str
) -> None:
    """In one line, and nothing is changed."""
    before = here("get chat-42").out
    ran = here(line)

    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert here("get chat-42").out == before


def test_a_session_may_be_named_like_a_setting(here: Here) -> None:
    """It is only what is not found that is taken for a mistake."""
    with rs.Store("sqlite:///chat.db") as store:
        store.session("effort", create=True)

    assert here("set effort effort high").code == Exit.DONE
    assert here("get effort effort").out == "high\n"
    assert here("get effort").out.startswith("setting ")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("set ch", ["chat-42"]),
        ("profile use ch", ["chat-42"]),
        ("set chat-42 ch", []),
        ("get --session ch", ["chat-42"]),
        ("get --session short ch", []),
        ("sessions ", ["archive", "delete", "list", "rename", "show", "tag"]),
        ("branches ", ["activate", "chat-42", "edit", "fork", "list", "regenerate", "short"]),
        ("compact ", ["list", "run", "undo", "chat-42", "short"]),
        ("compact --l", ["--limit"]),
        ("profile show ", ["terse"]),
        ("profile use chat-42 ", ["terse"]),
        ("set --profile ", ["terse"]),
        ("set chat-42 inc", ["includeInContext", "includeInResponse"]),
        ("set chat-42 reasoning.ef", ["reasoning.effort"]),
        ("set chat-42 floor ", ["provider", "off"]),
        ("usage chat-42 --with fl", ["floor="]),
        ("usage chat-42 --with floor=o", ["floor=off"]),
        ("usage chat-42 --provider deeps", ["deepseek"]),
    ],
)
def test_a_shell_is_offered_what_may_stand_there(
    run: Run, furnished: object, typed: str, offered: list[str]
) -> None:
    """Commands of a group with what its default takes, sessions, settings, profiles, providers."""
    words = f"reasoning-store {typed}"
    ran = run(
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - (not typed.endswith(" "))),
        _REASONING_STORE_COMPLETE="bash_complete",
        REASONING_STORE_URL=f"sqlite:///{furnished}/chat.db",
    )

    assert sorted(ran.stdout.split()) == sorted(f"plain,{word}" for word in offered)
