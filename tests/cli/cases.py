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
    "backup": Case("backup copy.db", "backup chat.db", says="is the database itself"),
    "branches activate": Case(
        "branches activate chat-42 1", "branches activate chat-42 7", MISSING, says="branches"
    ),
    "branches edit": Case(
        "branches edit chat-42:1 Hello?", "branches edit chat-42 Hello?", says="SESSION:POSITION"
    ),
    "branches fork": Case("branches fork chat-42:5", "branches fork chat-42:99", MISSING),
    "branches list": Case("branches chat-42", "branches chat-43", MISSING, says=NEAR),
    "branches regenerate": Case(
        "branches regenerate chat-42:2", "branches regenerate chat-42:99", MISSING
    ),
    "compact list": Case("compact list short", "compact list chat-43", MISSING, says=NEAR),
    "compact run": Case("compact chat-42 --limit 60", "compact chat-42", says="--limit"),
    "compact undo": Case("compact undo short 1", "compact undo short 7", MISSING),
    "context": Case("context chat-42", "context chat-43", MISSING, says=NEAR),
    "current": Case("current", "current --db mysql://localhost/chat", says="not supported"),
    "delete": Case("delete short --yes", "delete short", says="--yes"),
    "demo": Case("demo --folder left", "demo twice", needs=False, says="twice"),
    "distribute": Case("distribute --check", "distribute", says="an SQLite file is on one machine"),
    "doctor": Case("doctor", "doctor --frobnicate", needs=False, says="--frobnicate"),
    "downgrade": Case("downgrade base --yes", "downgrade 9999 --yes", says="one of: base, 1905"),
    "erase": Case("erase chat-42 --only reasoning --yes", "erase chat-42", says="pass --yes"),
    "export": Case("export", "export chat-43", MISSING, says=NEAR),
    "get": Case(
        "get chat-42 includeInContext",
        "get chat-42 reasoning.effrt",
        says="did you mean reasoning.effort",
    ),
    "import": Case("import history.json", "import broken.json", needs=False, says="line 1"),
    "init": Case("init", "init --db sqlite:////proc/nowhere/chat.db", needs=False, says="mkdir"),
    "profile delete": Case("profile delete terse", "profile delete ters", MISSING, says="'terse'"),
    "profile list": Case("profile list", "profile list terse", says="terse"),
    "profile show": Case("profile show terse", "profile show ters", MISSING, says="'terse'"),
    "profile use": Case(
        "profile use chat-42 terse",
        "profile use chat-42 ters",
        MISSING,
        says="'terse'",
    ),
    "report": Case("report", "report --by colour", says="'colour' is not one of"),
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
    "sessions show": Case("sessions show chat-42", "sessions show chat-43", MISSING, says=NEAR),
    "sessions tag": Case("sessions tag short a=1", "sessions tag short a", says="KEY=VALUE"),
    "set": Case(
        "set chat-42 reasoning.includeInContext true",
        "set chat-42 reasoning.includeInContext perhaps",
        says="one of: true, false",
    ),
    "show": Case("show chat-42", "show chat-43", MISSING, says=NEAR),
    "stop": Case("stop chat-42", "stop chat-43", MISSING, says=NEAR),
    "thoughts": Case("thoughts", "thoughts --after 7", says="not the .next"),
    "ui": Case("ui chat-42 --check", "ui chat-43 --check", MISSING, says=NEAR),
    "unset": Case("unset chat-42 effort", "unset effort", says="SESSION KEY is wanted"),
    "upgrade": Case("upgrade", "upgrade --db sqlite:///broken.json", Exit.SCHEMA, needs=False),
    "usage": Case(
        "usage chat-42 --limit 60 --fail-over 0.5",
        "usage chat-42 --fail-over 0.5",
        code=Exit.OVER,
        says="--limit",
    ),
    "verify": Case("verify", "verify chat-42", says="chat-42"),
    "what-if": Case("what-if chat-42", "what-if chat-42 --as soap", says="'soap' is not one of"),
}
