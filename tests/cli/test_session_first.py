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
    assert {"request", "settings get", "settings set", "settings use", "show"} <= {*WITH_SESSION}
    assert [name for name, words in WITH_SESSION.items() if "SESSION" not in words[0]] == []


@each(
    "line",
    [
        "branches",
        "compact list",
        "compact --limit 60",
        "request",
        "request --tokens",
        "sessions show",
        "sessions tag project=north",
        "settings",
        "settings effort",
        "settings set effort=high",
        "settings unset effort",
        "settings use terse",
        "settings use --none",
        "show",
        "stop",
    ],
)
def test_the_latest_session_needs_no_name(here: Here, line: str) -> None:
    """The answer is that for its name."""
    with rs.Store("sqlite:///chat.db") as store:
        store.session("short").append(rs.user("And now?"))
    words = line.split()
    at = 1 if words[0] in ("request", "show", "stop") or len(words) == 1 or "--" in line else 2
    at = {"settings effort": 1, "settings use --none": 2, "request --tokens": 1}.get(line, at)
    named = " ".join([*words[:at], "short", *words[at:]])

    assert here(f"{line} --json").data == here(f"{named} --json").data


def test_a_change_names_the_session_that_it_was_made_for(here: Here) -> None:
    """The name may have been left out."""
    assert here("settings set ch effort=high").out == 'chat-42: reasoning.effort = "high"\n'
    assert here("settings unset ch effort").out == "chat-42: reasoning.effort is unset\n"
    assert here("settings set effort=high --default").out == 'default: reasoning.effort = "high"\n'


@each(
    "line, says",
    [
        ("settings set", "no KEY is named (reasoning-store settings set --help)"),
        ("settings set chat-42 effort high", "'effort' is not KEY=VALUE"),
        ("settings set effort=high chat-42", "'chat-42' is not KEY=VALUE"),
        ("settings set chat-42 effort=high --profile terse", "'chat-42' is not KEY=VALUE"),
        ("settings set effort=high --default --profile terse", "--profile and --default exclude"),
        ("settings unset chat-42", "no KEY is named"),
        ("settings unset reasoning.effort chat-42", "chat-42"),
        ("settings use", "pass [SESSION] NAME, or [SESSION] --none"),
        ("settings use chat-42 terse --none", "pass [SESSION] NAME, or [SESSION] --none"),
        ("request --fail-over 85%", "--fail-over is a share of a limit"),
        ("request --tokens --limit 12x", "'12x' is not a number of tokens, e.g. 128000 or 128k"),
    ],
)
def test_words_that_do_not_fit_are_refused_with_those_that_do(
    here: Here, line: str, says: str
) -> None:
    """In one line, and nothing is changed."""
    before = here("settings chat-42").out
    ran = here(line)

    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert here("settings chat-42").out == before


@each("number, tokens", [("128k", 128_000), ("2M", 2_000_000), ("1000", 1000)])
def test_numbers_are_written_as_people_write_them(here: Here, number: str, tokens: int) -> None:
    """A thousand is k, a million m, and a share may be in percent."""
    ran = here(f"request --tokens --limit {number} --fail-over 85% --json")

    assert (ran.code, ran.data["limit"]) == (Exit.DONE, tokens)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("settings set ch", ["chat-42"]),
        ("settings use ch", ["chat-42"]),
        ("settings set chat-42 ch", []),
        ("sessions ", ["archive", "delete", "list", "rename", "show", "tag"]),
        ("branches ", ["activate", "chat-42", "edit", "fork", "list", "regenerate", "short"]),
        ("compact ", ["list", "run", "undo", "chat-42", "short"]),
        ("compact --l", ["--limit"]),
        ("db ba", ["backup"]),
        ("settings drop ", ["terse"]),
        ("settings use chat-42 ", ["terse"]),
        ("settings set --profile ", ["terse"]),
        ("settings set chat-42 inc", ["includeInContext=", "includeInResponse="]),
        ("settings set chat-42 reasoning.ef", ["reasoning.effort="]),
        ("settings unset chat-42 ef", ["effort"]),
        ("settings set chat-42 floor=", ["floor=provider", "floor=off"]),
        ("request chat-42 --with fl", ["floor="]),
        ("request chat-42 --with floor=o", ["floor=off"]),
        ("request chat-42 --provider deeps", ["deepseek"]),
        ("contracts deeps", ["deepseek"]),
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
