"""What the next request would be, made otherwise, made shorter: without a line of Python."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.wire.contract_lookup import apis
from tests.cli.conftest import Here


@pytest.mark.parametrize("api", apis())
def test_the_next_request_can_be_seen_as_any_protocol(here: Here, api: str) -> None:
    """The body is what the library would give to that protocol's client."""
    ran = here(f"request chat-42 --as {api} --model some-model")
    with rs.Store("sqlite:///chat.db") as store:
        request = store.session("chat-42").build_request(api=api, model="some-model")

    assert ran.code == Exit.DONE
    assert json.loads(ran.out) == request.body


def test_each_thinking_block_is_explained(here: Here) -> None:
    """Where it stands, what it counts, whether it goes and by which rule; and whence a setting."""
    required = here("request chat-42 --provider deepseek --why").out
    here("settings set chat-42 includeInContext=true")
    told = here("request chat-42 --provider deepseek --with effort=high --why").out

    assert re.search(r"^ +2 +0 +5  sent: deepseek demands it back$", required, re.M)
    assert re.search(r"^ +6 +0 +5  left out: ", required, re.M)
    assert re.search(r"^ +6 +0 +5  sent: includeInContext is on$", told, re.M)
    assert re.search(r"^reasoning.includeInContext +true +session$", told, re.M)
    assert re.search(r"^reasoning.effort +\"high\" +call$", told, re.M)
    assert re.search(r"^reasoning.floor +\"provider\" +default$", told, re.M)


@pytest.mark.parametrize(
    ("names", "whom"),
    [
        ("", "an unknown host (openai.chat)"),
        ("--as anthropic.messages", "an unknown host (anthropic.messages)"),
        ("--model some-model", "some-model of an unknown host (openai.chat)"),
        ("--provider kimi --model k3", "k3 of moonshot (openai.chat)"),
    ],
)
def test_an_explanation_says_for_whom_the_request_is(here: Here, names: str, whom: str) -> None:
    """What goes, and why, depends on it, and no one may have named it."""
    told = here(f"request chat-42 --why {names}").out

    assert re.search(rf"^~\d+ of ~\d+ tokens would be sent to {re.escape(whom)}$", told, re.M)


def test_another_policy_is_shown_as_what_would_differ(here: Here) -> None:
    """Added lines, removed lines, and the difference in tokens."""
    ran = here(
        "request chat-42 --diff --with includeInContext=true --with stripFromContext=allButLast"
    )

    assert '+      "reasoning_content": "Bergen is wetter."' in ran.out
    assert "The tool says 4 C." not in ran.out
    assert ran.out.splitlines()[-1] == "~54 -> ~59 tokens (+5)"


def test_a_matrix_shows_every_policy(here: Here) -> None:
    """What each would count, whether it is legal, and from where on it is another request."""
    rows = here("request chat-42 --every --provider deepseek --json").data
    (current,) = [row for row in rows if row["current"]]

    assert len(rows) == 8
    assert current["difference"] == 0
    assert {row["effective"] for row in rows} == {59, 64, 71}
    assert (
        here("request chat-42 --every --provider deepseek --with floor=off").out.count(" no ") > 8
    )


def test_the_matrix_looks_as_it_does_in_python(here: Here) -> None:
    """Who has read one has read the other."""
    with rs.Store("sqlite:///chat.db") as store:
        matrix = store.session("chat-42").what_if(provider="deepseek")

    assert here("request chat-42 --every --provider deepseek").out == f"{matrix}\n"


@pytest.mark.parametrize(
    "line",
    ["request", "request --tokens", "request --every", "compact --limit 60"],
    ids=lambda line: line,
)
def test_a_provider_that_is_not_known_is_warned_of_once(here: Here, line: str) -> None:
    """By every command that builds, weighs or reads something for it."""
    ran = here(f"{line} --provider deepsek")

    assert ran.code == Exit.DONE
    assert ran.err.count("did you mean deepseek?") == 1


def test_a_matrix_says_why_a_row_is_not_legal(here: Here) -> None:
    """Once for all rows."""
    ran = here("request chat-42 --every --provider deepseek --with floor=off")

    rows = ran.out.count(" no      ") if "legal" in ran.out else 0
    assert rows
    assert re.match(r"warning: deepseek wants back", ran.err)
    assert ran.err.count("\n") == 1


def test_a_request_over_the_limit_says_by_how_much(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a bar that a narrow terminal has room for, and that is full only then."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    over, under = (
        here("request chat-42 --tokens --limit 50").out,
        here("request chat-42 --tokens --limit 55").out,
    )
    bars = [re.search(r"\[([#.]+)\] \d+%", seen) for seen in (over, under)]

    assert re.search(r"\b4 +over the limit", over)
    assert [len(bar[0]) for bar in bars if bar] == [40, 40]
    assert [bar[1].endswith("#") for bar in bars if bar] == [True, False]


def test_a_history_marks_what_a_compaction_replaced(here: Here) -> None:
    """With the number by which it is undone."""
    lines = here("show short --thinking none").out.splitlines()
    marked = [line for line in lines if line.endswith("(summary 1 is sent instead)")]
    rows = here("show short --json").data

    assert [row["compaction"] for row in rows[:4]] == [1, 1, 1, 1]
    assert rows[-1]["compaction"] is None
    assert len(marked) == sum(row["compaction"] == 1 for row in rows)


def test_usage_is_made_of_its_parts(here: Here) -> None:
    """What is sent adds up to the number, and what is not sent to the rest."""
    told = here("request chat-42 --tokens --provider deepseek --limit 1000 --system Hi --json").data
    parts = told["breakdown"]

    sent = ("system", "tools", "messages", "thinking")
    assert sum(parts[name] for name in sent) == told["effective"]
    assert told["effective"] + parts["withheld"] == told["raw"]
    assert told["effective"] + parts["free"] == told["limit"]
    assert parts["thinking"] == 5


def test_tools_come_from_a_file(here: Here) -> None:
    """They are counted and rendered, and a file that holds none is refused."""
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
    Path("tools.json").write_text(json.dumps([tool]), "utf-8")
    plain = here("request chat-42 --tokens --json").data["effective"]

    assert here("request chat-42 --tokens --tools tools.json --json").data["effective"] > plain
    assert "get_weather" in here("request chat-42 --tools tools.json").out
    assert here("request chat-42 --tools broken.json").code == Exit.USAGE


def test_the_mark_of_an_editor_is_no_part_of_a_file(here: Here) -> None:
    """Neither of tools nor of a summary, which would go out with it."""
    Path("tools.json").write_text(json.dumps([{"name": "get_weather"}]), "utf-8-sig")
    Path("summary.txt").write_text("They spoke of the weather.\n", "utf-8-sig")
    planned = here("compact chat-42 --limit 60 --json").data["toSummarize"]
    place = f"{planned['first']}-{planned['last']}"
    here(f"compact chat-42 --limit 60 --range {place} --summary-file summary.txt")

    assert "get_weather" in here("request chat-42 --tools tools.json").out
    summaries = [one["summary"] for one in here("compact list chat-42 --json").data]
    assert summaries == ["They spoke of the weather.\n"]


def test_fail_over_is_for_scripts(here: Here) -> None:
    """4 above the share, 0 up to it; the number is printed either way."""
    over = here("request chat-42 --tokens --limit 60 --fail-over 0.85")
    under = here("request chat-42 --tokens --limit 60 --fail-over 0.9")

    assert (over.code, over.out) == (Exit.OVER, "~54/60\n")
    assert (under.code, under.out) == (Exit.DONE, "~54/60\n")
    assert "90% of the limit is used, more than 85%" in over.err


@pytest.mark.parametrize("share", ["nan", "inf", "-1", "half", "%"])
def test_a_share_that_nothing_is_more_than_is_refused(here: Here, share: str) -> None:
    """A script that asks so would never be told."""
    ran = here(f"request chat-42 --tokens --limit 60 --fail-over {share}")

    assert (ran.code, ran.out) == (Exit.USAGE, "")


def test_a_profile_holds_until_the_session_says_otherwise(here: Here) -> None:
    """Set once under a name, used by a session, overridden there, and let go."""
    here("settings set includeInContext=true --profile open")
    here("settings use chat-42 open")
    used = here("settings get chat-42 includeInContext --json").data[0]
    here("settings set chat-42 includeInContext=false")
    own = here("settings get chat-42 includeInContext --json").data[0]
    here("settings unset chat-42 includeInContext")
    here("settings use chat-42 --none")
    none = here("settings get chat-42 includeInContext --json").data[0]

    assert (used["value"], used["layer"]) == (True, "profile")
    assert (own["value"], own["layer"]) == (False, "session")
    assert (none["value"], none["layer"]) == (False, "default")
    assert here("settings profiles --json").data[0]["name"] == "open"


def test_a_profile_keeps_its_other_keys(here: Here) -> None:
    """Setting and unsetting one leaves the rest."""
    here("settings set budgetTokens=100 --profile terse")
    here("settings unset effort --profile terse")

    assert here("settings get --profile terse --json").data == [
        {"key": "reasoning.budgetTokens", "value": 100, "layer": "profile"}
    ]


def test_a_plan_is_shown_applied_and_undone(here: Here) -> None:
    """With the command to do it; nothing is deleted on the way."""
    planned = here("compact chat-42 --limit 60")
    plan = here("compact chat-42 --limit 60 --json").data
    more = re.search(r"to carry it out, add: (.+) FILE\n", planned.err)
    assert more is not None
    done = here(f"compact chat-42 --limit 60 {more[1]} summary.txt --json")
    after = here("request chat-42 --tokens").out
    undone = here(f"compact undo chat-42 {done.data['compaction']['id']}")

    assert plan["toSummarize"] == {"first": 1, "last": 4}
    assert done.code == Exit.DONE
    assert int(after.lstrip("~")) == done.data["effective"] < plan["effective"]
    assert undone.out == "the messages 1-4 are sent again\n"
    assert here("request chat-42 --tokens").out == "~54\n"


def test_old_tool_results_are_cleared_and_come_back(here: Here) -> None:
    """It needs no summary; what is in force is listed, and taken back by its number."""
    with rs.Store("sqlite:///chat.db") as store:
        session = store.session("tools", create=True)
        for number in range(3):
            call = rs.ToolCallBlock(id=f"c{number}", name="look")
            found = rs.ToolResponseBlock(call_id=call.id, result="found it " * 100)
            session.append([rs.user("Look."), rs.assistant(call), rs.tool(found)])
    before = here("request tools --tokens").out

    otherwise = here("compact tools --limit 600 --no-clear")
    planned = here("compact tools --limit 600")
    done = here("compact tools --limit 600 --apply --json")

    assert "summarize" in otherwise.out
    assert "clear  1-6" in planned.out
    assert "--apply\n" in planned.err
    assert done.data["cleared"] == {"first": 1, "last": 6}
    assert done.data["compaction"]["kind"] == "clearing"
    assert here("request tools --tokens").out == f"~{done.data['effective']}\n" != before
    assert "tool results cleared" in here("compact list tools").out
    (row,) = here("compact list tools --json").data
    assert (row["kind"], row["first"], row["last"], row["summary"]) == ("clearing", 1, 6, None)
    assert here("compact undo tools 1").out == "the tool results up to 6 are sent again\n"
    assert here("request tools --tokens").out == before
    assert here("compact tools --limit 600 --apply").out.startswith("the tool results up to 6 ")


def test_a_summary_of_other_messages_is_refused(here: Here) -> None:
    """A plan that has moved since the summary was written is a conflict, and nothing is done."""
    before = here("request chat-42 --tokens").out
    line = "compact chat-42 --limit 60 --summary-file summary.txt"

    assert here(line).code == Exit.USAGE
    assert "--range 1-4" in here(line).err
    assert here(f"{line} --range 1-2").code == Exit.CONFLICT
    assert here(f"{line} --range all").code == Exit.CONFLICT
    assert here("request chat-42 --tokens").out == before


def test_a_plan_that_strips_needs_no_summary(here: Here) -> None:
    """It is a setting of the session, and named."""
    here("settings set chat-42 includeInContext=true")
    ran = here("compact chat-42 --limit 80 --apply")

    assert ran.code == Exit.DONE
    assert "set reasoning.stripFromContext = " in ran.out
    assert here("settings get chat-42 stripFromContext --json").data[0]["layer"] == "session"


def test_undoing_a_compaction_takes_back_the_setting_that_it_changed(here: Here) -> None:
    """And what it cleared: the request is what it was, in this store and where it is imported."""
    with rs.Store("sqlite:///chat.db") as store:
        session = store.session("both", create=True)
        for number in range(4):
            call = rs.ToolCallBlock(id=f"c{number}", name="look")
            found = rs.ToolResponseBlock(call_id=call.id, result="found it " * 100)
            thought = rs.ThinkingBlock(thought="Where may it be? " * 50)
            session.append([rs.user("Look. " * 50), rs.assistant(thought, call), rs.tool(found)])
        session.append([rs.user("Thanks."), rs.assistant("You are welcome.")])
        session.settings.set("reasoning.includeInContext", True)
    before = here("request both --tokens").out
    plan = here("compact both --limit 200 --json").data
    place = f"{plan['toSummarize']['first']}-{plan['toSummarize']['last']}"
    line = f"compact both --limit 200 --range {place} --summary-file summary.txt"
    done = here(line)
    Path("both.jsonl").write_text(here("export both").out, "utf-8")
    undo = re.search(r"to undo it: reasoning-store (.+)\n", done.err)
    assert undo is not None

    assert {step["kind"] for step in plan["steps"]} >= {"strip", "summarize"}
    assert here("request both --tokens").out != before
    assert "reasoning.stripFromContext is none again" in here(undo[1]).out
    assert here("request both --tokens").out == before
    assert here("compact list both --json").data == []
    assert here("settings get both stripFromContext --json").data[0]["layer"] == "default"
    here("import both.jsonl --db sqlite:///new.db")
    here(f"{undo[1]} --db sqlite:///new.db")
    assert here("request both --tokens --db sqlite:///new.db").out == before


def test_a_setting_that_was_changed_since_stays_when_a_compaction_is_undone(here: Here) -> None:
    """It was decided later."""
    here("settings set chat-42 includeInContext=true")
    done = here("compact chat-42 --limit 30 --json --range 1-4 --summary-file summary.txt").data
    here("settings set chat-42 stripFromContext=allButLast")
    here(f"compact undo chat-42 {done['compaction']['id']}")

    assert done["stripFromContext"] is not None
    assert here("settings get chat-42 stripFromContext").out == "allButLast\n"


def test_a_fork_is_a_branch_of_its_own(here: Here) -> None:
    """Its number is printed; --branch reads it, --activate makes it the current one."""
    number = here("branches fork chat-42:5").out.strip()

    assert here(f"show chat-42 --branch {number}").out.count("[") == 4
    assert here("show chat-42").out.count("[") == 6
    here("branches fork chat-42:3 --activate")
    assert here("show chat-42").out.count("[") == 2
    assert here("show chat-42 --branch 9").code == Exit.NOT_FOUND


def test_a_session_is_archived_renamed_and_brought_back(here: Here) -> None:
    """Out of the list and in again, under another title."""
    here("sessions archive short")
    gone = here("sessions --json").data["sessions"]
    archived = here("sessions --archived --json").data["sessions"]
    here("sessions archive short --undo")
    here("sessions rename short 'Rain, again'")

    assert [one["id"] for one in gone] == ["chat-42"]
    assert [one["id"] for one in archived] == ["short"]
    assert "Rain, again" in here("sessions").out


def test_pages_of_sessions_follow_one_another(here: Here) -> None:
    """The mark of a page is where the next one goes on."""
    first = here("sessions --limit 1 --json").data
    second = here(f"sessions --limit 1 --after {first['next']} --json").data

    assert {first["sessions"][0]["id"], second["sessions"][0]["id"]} == {"chat-42", "short"}
    assert second["next"] is None


def test_thinking_is_shown_in_full_in_a_line_or_not_at_all(here: Here) -> None:
    """And what is not shown is still there."""
    with rs.Store("sqlite:///chat.db") as store:
        long = rs.ThinkingBlock(thought="one thing\nand another, " * 20)
        store.session("long", create=True).append([rs.user("Hm?"), rs.assistant(long, "Yes.")])
    full, short, none = (
        [line for line in here(f"show long --thinking {how}").out.splitlines() if "|" in line]
        for how in ("full", "short", "none")
    )

    assert (len(full), len(short), len(none)) == (21, 1, 0)
    assert short[0].endswith("...")
    assert here("show long --last 1").out.count("[") == 1
