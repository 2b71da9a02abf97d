"""What each command is tried with: a row for every command, or the tests fail.

``good`` does its work, in the folder of ``conftest``; ``code`` is how it then ends. ``bad`` is
refused with ``refused``, in one line. ``needs`` says that it works on a database.
"""

from __future__ import annotations

from dataclasses import dataclass

from reasoning_store.cli.exit_codes import Exit


@dataclass(frozen=True)
class Case:
    good: str
    bad: str
    refused: Exit = Exit.USAGE
    code: Exit = Exit.DONE
    needs: bool = True
    says: str = ""
    """What the one line of the refusal holds."""


MISSING = Exit.NOT_FOUND
NEAR = "did you mean chat-42?"

CASES: dict[str, Case] = {
    "": Case("", "--db soap://chat", needs=False, says="soap is not supported"),
    "annotate": Case("annotate chat-42:2 rating=1", "annotate chat-42:99 rating=1", MISSING),
    "branches activate": Case(
        "branches activate chat-42 1", "branches activate chat-42 7", MISSING, says="branches"
    ),
    "branches edit": Case(
        "branches edit chat-42:1 Hello?", "branches edit chat-42 Hello?", says="SESSION:POSITION"
    ),
    "branches fork": Case("branches fork chat-42:5", "branches fork chat-42:99", MISSING),
    "branches list": Case("branches", "branches chat-43", MISSING, says=NEAR),
    "branches regenerate": Case(
        "branches regenerate chat-42:2", "branches regenerate chat-42:99", MISSING
    ),
    "compact list": Case("compact list", "compact list chat-43", MISSING, says=NEAR),
    "compact run": Case("compact chat-42 --limit 60", "compact chat-42", says="--limit"),
    "compact undo": Case("compact undo short 1", "compact undo short 7", MISSING),
    "contracts": Case("contracts deepseek", "contracts nope", MISSING, needs=False, says="'nope'"),
    "db backup": Case("db backup copy.db", "db backup chat.db", says="is the database itself"),
    "db create": Case(
        "db create", "db create --db sqlite:////proc/nowhere/chat.db", needs=False, says="mkdir"
    ),
    "db current": Case("db", "db current --db mysql://localhost/chat", says="not supported"),
    "db distribute": Case(
        "db distribute --check", "db distribute", says="an SQLite file is on one machine"
    ),
    "db doctor": Case("db doctor", "db doctor --frobnicate", needs=False, says="--frobnicate"),
    "db upgrade": Case(
        "db upgrade", "db upgrade --db sqlite:///broken.json", Exit.SCHEMA, needs=False
    ),
    "demo": Case("demo --folder left", "demo twice", needs=False, says="twice"),
    "erase": Case("erase chat-42 --only reasoning --yes", "erase chat-42", says="pass --yes"),
    "explain": Case(
        "explain 'Missing `reasoning_content` field in the assistant message'",
        "explain 'Too many requests'",
        MISSING,
        needs=False,
        says="not known",
    ),
    "export": Case("export", "export chat-43", MISSING, says=NEAR),
    "import": Case("import history.json", "import broken.json", needs=False, says="line 1"),
    "report": Case("report", "report --by colour", says="'colour' is not one of"),
    "request": Case("request chat-42", "request chat-43", MISSING, says=NEAR),
    "search": Case("search weather", "search '?!'", says="at least one word"),
    "serve": Case(
        "serve --upstream https://api.deepseek.com --check",
        "serve --host 0.0.0.0 --check",
        needs=False,
        says="REASONING_STORE_TOKEN",
    ),
    "sessions archive": Case("sessions archive short", "sessions archive shart", MISSING),
    "sessions delete": Case("sessions delete short --yes", "sessions delete short", says="--yes"),
    "sessions list": Case("sessions", "sessions --limit 0", says="--limit"),
    "sessions rename": Case("sessions rename short Oslo", "sessions rename shorter Oslo", MISSING),
    "sessions show": Case("sessions show", "sessions show chat-43", MISSING, says=NEAR),
    "sessions tag": Case("sessions tag short a=1", "sessions tag short a", says="KEY=VALUE"),
    "settings drop": Case("settings drop terse", "settings drop ters", MISSING, says="'terse'"),
    "settings get": Case(
        "settings chat-42 includeInContext",
        "settings chat-42 reasoning.effrt",
        says="did you mean reasoning.effort",
    ),
    "settings profiles": Case("settings profiles", "settings profiles terse", says="terse"),
    "settings set": Case(
        "settings set chat-42 reasoning.includeInContext=true effort=low",
        "settings set chat-42 effort=low reasoning.includeInContext=perhaps",
        says="one of: true, false",
    ),
    "settings unset": Case("settings unset effort", "settings unset chat-42", says="no KEY"),
    "settings use": Case(
        "settings use chat-42 terse", "settings use chat-42 ters", MISSING, says="'terse'"
    ),
    "show": Case("show chat-42", "show chat-43", MISSING, says=NEAR),
    "stop": Case("stop", "stop chat-43", MISSING, says=NEAR),
    "ui": Case("ui chat-42 --check", "ui chat-43 --check", MISSING, says=NEAR),
    "verify": Case("verify", "verify chat-42", says="chat-42"),
}
