"""In and out: exports, and histories of other programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.cli.commands.import_ import FORMATS
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.importers import formats
from reasoning_store.results import Owner
from tests.cli.conftest import Here
from tests.importers import kept


def test_what_goes_out_comes_in_again(here: Here) -> None:
    """Lossless, and a second time nothing is written."""
    here("export -o all.jsonl")
    here("db create --db sqlite:///new.db")
    first = here("import all.jsonl --db sqlite:///new.db --json").data
    again = here("import all.jsonl --db sqlite:///new.db --json").data
    here("export -o again.jsonl --db sqlite:///new.db")

    assert (first["messages"], first["already"]) == (15, 0)
    assert (again["messages"], again["already"]) == (0, 15)
    assert Path("again.jsonl").read_text("utf-8") == Path("all.jsonl").read_text("utf-8")
    assert Path("all.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", ["export --json", "show chat-42 --json"])
def test_an_answer_in_json_is_no_history(here: Here, command: str) -> None:
    """It is refused, with what writes one: nothing of it would come in."""
    Path("answer.json").write_text(here(command).out, "utf-8")
    refused = here("import answer.json")

    assert refused.code == Exit.USAGE
    assert "without --json" in refused.err


def test_an_export_replaces_nothing_unasked(here: Here) -> None:
    """What is there stays, until a whole one takes its place."""
    before = Path("summary.txt").read_text("utf-8")

    assert here("export -o summary.txt").code == Exit.USAGE
    assert Path("summary.txt").read_text("utf-8") == before
    assert here("export -o summary.txt --overwrite").code == Exit.DONE
    assert "mkdir -p" in here("export -o nowhere/all.jsonl").err
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]


def test_a_dash_is_standard_output(here: Here) -> None:
    """As it is standard input for import, and no file of that name."""
    assert here("export -o -").out == here("export").out
    assert here("export -o - --json").data == here("export --json").data
    assert not Path("-").exists()


def test_a_dry_run_writes_nothing(here: Here) -> None:
    """It tells what would come in, of lines and of a history alike."""
    here("export -o all.jsonl")
    here("db create --db sqlite:///new.db")
    before = Path("new.db").read_bytes()
    lines = here("import all.jsonl --dry-run --json --db sqlite:///new.db").data
    history = here("import history.json --dry-run --json --db sqlite:///new.db").data

    assert (lines["messages"], history["messages"]) == (15, 2)
    assert lines["dryRun"]
    assert history["dryRun"]
    assert Path("new.db").read_bytes() == before


@pytest.mark.parametrize("owner", ["", "--owner user-7"])
def test_a_dry_run_gives_the_numbers_of_the_import(here: Here, owner: str) -> None:
    """Also where some of it is there already, for any owner."""
    here("export -o all.jsonl")
    here("export chat-42 -o one.jsonl")
    here("db create --db sqlite:///new.db")
    here(f"import one.jsonl --db sqlite:///new.db {owner}")
    dry = here(f"import all.jsonl --dry-run --json --db sqlite:///new.db {owner}").data
    done = here(f"import all.jsonl --json --db sqlite:///new.db {owner}").data

    assert dry["already"] > 0
    assert dry["messages"] > 0
    assert {**dry, "dryRun": False} == done


def test_a_dry_run_knows_the_line_of_a_session_however_it_is_spelled(here: Here) -> None:
    """What is here of it counts as being here."""
    here("export -o all.jsonl")
    lines = Path("all.jsonl").read_text("utf-8").splitlines()
    spelled = [line.replace('"session"', '"sess\\u0069on"') for line in lines]
    assert spelled != lines
    Path("spelled.jsonl").write_text("\n".join(spelled), "utf-8")

    dry = here("import spelled.jsonl --dry-run --json").data

    assert (dry["messages"], dry["already"]) == (0, 15)
    assert {**dry, "dryRun": False} == here("import spelled.jsonl --json").data


def test_a_dry_run_that_cannot_look_at_what_is_here_says_so(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that are not the import's are worse than none."""
    here("export -o all.jsonl")

    def unreadable(*_: object) -> None:
        raise rs.InvalidCall("what is here cannot be taken along")

    monkeypatch.setattr(Owner, "export_lines", unreadable)
    dry = here("import all.jsonl --dry-run --json")

    assert dry.code == Exit.USAGE
    assert "what is here cannot be taken along" in dry.err


@pytest.mark.parametrize("more", ["", "--on-conflict skip"])
def test_a_dry_run_meets_the_conflicts_of_the_import(here: Here, more: str) -> None:
    """A session that differs is refused, or named and left out, before it matters."""
    here("export chat-42 -o one.jsonl")
    text = Path("one.jsonl").read_text("utf-8")
    Path("one.jsonl").write_text(text.replace("And Bergen?", "And Narvik?"), "utf-8")
    dry = here(f"import one.jsonl --dry-run --json {more}")
    done = here(f"import one.jsonl --json {more}")

    assert dry.code == done.code == (Exit.DONE if more else Exit.CONFLICT)
    assert dry.err == done.err
    assert "chat-42" in dry.err


TEXTS = {
    "import {}": "history.json",
    "import {} --format openai": "history.json",
    "import {} --format lines": "export.jsonl",
    "request chat-42 --tools {}": "tools.json",
    "compact chat-42 --limit 60 --range 1-4 --summary-file {}": "summary.txt",
}
"""Each way to have a text read."""


@pytest.mark.parametrize("line", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_text_in_another_encoding_is_refused_with_the_command_that_converts_it(
    here: Here, line: str, encoding: str
) -> None:
    """As PowerShell writes with ``>``; converted as the error advises, it is read."""
    Path("tools.json").write_text('[{"name": "look"}]', "utf-8")
    text = Path(TEXTS[line]).read_text("utf-8")
    Path("wide").write_bytes(f"\ufeff{text}".encode(encoding))
    refused = here(line.format("wide"))
    convert = re.search(r"\((iconv [^;]*);", refused.err)
    assert convert is not None, refused.err
    command = convert[1].replace("FILE", "wide").replace("NEW", "narrow")
    subprocess.run(command, shell=True, check=True)

    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert f" is in {encoding[:6].upper()}, and UTF-8 is read (" in refused.err
    assert here(line.format("narrow")).code == Exit.DONE


def test_an_import_makes_the_database_and_a_dry_run_needs_none(here: Here) -> None:
    """The numbers are the same, for a history and for lines of our own."""
    dry = here("import history.json --dry-run --json --db sqlite:///new.db").data
    lines = here("import export.jsonl --dry-run --json --db sqlite:///new.db").data
    assert not Path("new.db").exists()
    done = here("import history.json --json --db sqlite:///new.db")

    assert (dry["messages"], lines["messages"], done.data["messages"]) == (2, 6, 2)
    assert done.err.endswith("new.db was created\n")


def test_a_folder_is_imported_with_all_that_can_be_read(here: Here) -> None:
    """A file that cannot be read is named with its line, and another is counted."""
    Path("kept/deep").mkdir(parents=True)
    shutil.copy(kept.of_format("claude-code"), "kept/deep")
    shutil.copy("history.json", "kept")
    Path("kept/cut.jsonl").write_text('{"parentUuid": null, "isSidechain": false', "utf-8")
    Path("kept/notes.txt").write_text("Buy milk.", "utf-8")
    Path("kept/settings.json").write_text('{"system": "dark"}', "utf-8")
    shutil.copy("export.jsonl", "kept")

    dry = here("import kept --dry-run --db sqlite:///new.db")
    assert not Path("new.db").exists()
    done = here("import kept --json --db sqlite:///new.db")
    again = here("import kept --db sqlite:///new.db")

    assert dry.out.splitlines()[:3] == [
        "claude-code: 2 conversations, 13 messages would be imported",
        "openai: 1 conversation, 2 messages would be imported",
        "1 other file without a history",
    ]
    assert "kept/export.jsonl was left out: an export of this package: import it by" in dry.err
    assert "warning: kept/cut.jsonl was left out: line 1: not JSON" in dry.err
    assert (dry.code, done.code, again.code) == (Exit.USAGE,) * 3
    assert (done.data["messages"], done.data["sessions"]) == (15, 3)
    assert [file["error"] is None for file in done.data["files"]] == [False, True, False, True]
    assert "15 messages were there already" in again.out


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("broken.jsonl", b'{"type": "user", broken\n{"type": "user"}\n', Exit.USAGE),
        ("zeros.jsonl", b"\0" * 4096, Exit.USAGE),
        ("blank.jsonl", b"\n\n\0\0\n", Exit.USAGE),
        ("text.jsonl", b"Buy milk.", Exit.USAGE),
        ("wide.jsonl", '{"a": 1}'.encode("utf-16"), Exit.USAGE),
        ("empty.jsonl", b"", Exit.DONE),
        ("foreign.jsonl", b'{"foo": 1}\n', Exit.DONE),
        ("long.jsonl", b'{"foo": "' + b"x" * 70_000 + b'"}\n', Exit.DONE),
        ("notes.json", b"// settings\n{}", Exit.DONE),
    ],
)
def test_lines_whose_first_is_not_json_are_a_damaged_history(
    here: Here, name: str, content: bytes, code: int
) -> None:
    """They are named; a file of another program is counted, and named if you ask for it."""
    Path("kept").mkdir()
    shutil.copy("history.json", "kept")
    Path("kept", name).write_bytes(content)
    ran = here("import kept -v")

    assert ran.code == code
    assert (f"kept/{name} was left out: " in ran.err) == (code == Exit.USAGE)
    assert (f"1 other file without a history\n  kept/{name}\n" in ran.out) == (code == Exit.DONE)
    assert "2 messages imported" in ran.out


def pack(path: str, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)


def test_an_export_is_read_from_its_zip(here: Here) -> None:
    """As the folder that it would be unpacked to; the names in it are only labels."""
    history = Path("history.json").read_bytes()
    files = {
        "conversations.json": kept.of_format("chatgpt").read_bytes(),
        "../../conversations.json": history,
        "user.json": b'{"id": "user-1"}',
        "file-1.png": b"PNG",
        "cut.jsonl": b"\0\0",
        "bomb.json": b" " * (101 << 20),
    }
    pack("export.zip", files)
    before = sorted(path.name for path in Path().iterdir())
    done = here("import export.zip -v --db sqlite:///new.db")
    again = here("import export.zip --json --db sqlite:///new.db")
    only = here("import export.zip --format openai --json --dry-run --db sqlite:///new.db").data

    assert sorted(path.name for path in Path().iterdir()) == sorted([*before, "new.db"])
    assert not Path("../../conversations.json").exists()
    assert done.out.startswith("openai: 1 conversation, 2 messages imported\nchatgpt: ")
    assert "export.zip/user.json" in done.out
    assert "export.zip/bomb.json: unpacked it is more than 100 times as large" in done.err
    assert "export.zip/cut.jsonl was left out: line 1: not JSON" in done.err
    assert (done.code, again.data["messages"]) == (Exit.USAGE, 0)
    assert [file["path"] for file in only["files"] if file["error"] is None] == [
        "export.zip/../../conversations.json"
    ]


@pytest.mark.parametrize("flaw", ["cut", "flipped", "encrypted", "unknown method"])
def test_a_zip_that_cannot_be_read_is_named(here: Here, flaw: str) -> None:
    """Whatever is wrong with it."""
    pack("export.zip", {"conversations.json": kept.of_format("chatgpt").read_bytes()})
    content = bytearray(Path("export.zip").read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    if flaw == "cut":
        del content[entry:]
    elif flaw == "flipped":
        content[200] ^= 0xFF
    else:
        content[entry + (8 if flaw == "encrypted" else 10)] = 1
    Path("export.zip").write_bytes(content)
    ran = here("import export.zip")

    assert ran.code == Exit.USAGE
    assert "the zip file is damaged or encrypted" in ran.err


def test_of_a_folder_only_the_files_of_a_format_are_imported(here: Here) -> None:
    """And a folder without one says how many files were looked at."""
    Path("kept").mkdir()
    shutil.copy(kept.of_format("claude-code"), "kept")
    shutil.copy("history.json", "kept")

    assert here("import kept --format openai --json").data["messages"] == 2
    assert (
        "kept holds no history in the format llm (2 files" in here("import kept --format llm").err
    )


def test_many_warnings_of_a_folder_are_one_of_each_kind(here: Here) -> None:
    """With how many more there are; --json has them all."""
    Path("kept").mkdir()
    messages = [{"role": "robot", "content": "Hi."}, {"role": "user", "content": "Hi."}] * 50
    for name in ("a.json", "b.json"):
        Path("kept", name).write_text(json.dumps({"messages": messages}), "utf-8")
    ran = here("import kept")

    first, more = ran.err.splitlines()
    assert first.startswith("warning: kept/a.json, line 1: messages[0] was left out: its role is")
    assert more == "warning: ... and 99 more like this"


def test_the_formats_of_the_command_are_those_that_can_be_read() -> None:
    """It names them without importing a reader."""
    assert tuple(sorted([*formats.READERS, "lines"])) == FORMATS


def test_a_history_is_cleaned_counted_and_taken_in_once(here: Here) -> None:
    """Reasoning in, reasoning stored, delimiters out; importing again writes nothing."""
    first = here("import history.json --json").data
    again = here("import history.json --json").data
    shown = here(f"show {first['conversations'][0]['id']}").out

    assert (first["format"], first["messages"], again["messages"]) == ("openai", 2, 0)
    assert first["report"]["reasoningIn"] == first["report"]["reasoningStored"] == 1
    assert first["report"]["delimiters"] == 2
    assert "  | 7 * 13\n  No.\n" in shown


@pytest.mark.parametrize("more", ["", "--dry-run"])
def test_an_import_that_takes_nothing_of_a_file_in_is_no_success(here: Here, more: str) -> None:
    """A script has to see that it was another format; what is there already is no failure."""
    unknown, known = {"role": "robot", "content": "Hi."}, {"role": "user", "content": "Hi."}
    codes = []
    for messages in ([unknown, unknown], [unknown, known], [unknown, known], []):
        Path("chat.json").write_text(json.dumps({"id": "robots", "messages": messages}), "utf-8")
        codes.append(here(f"import chat.json {more} --json").code)
    Path("chat.json").write_text(json.dumps({"messages": [unknown]}), "utf-8")
    told = here(f"import chat.json {more}").err.splitlines()

    assert codes == [Exit.USAGE, Exit.DONE, Exit.DONE, Exit.DONE]
    assert told[0].startswith("warning: line 1: messages[0] was left out: its role is")
    assert told[1:] == ["nothing was imported: every message was left out"]


def test_many_warnings_of_a_kind_are_a_few_and_how_many_more(here: Here) -> None:
    """And no sum of what came in, where nothing did."""
    messages = [{"role": "robot", "content": "Hi."}] * 4_000
    Path("chat.json").write_text(json.dumps({"messages": messages}), "utf-8")
    ran = here("import chat.json")

    assert ran.out == ""
    assert len(ran.err.splitlines()) == 12
    assert ran.err.splitlines()[10] == "warning: ... and 3 990 more like this"


def test_a_warning_is_one_line_whatever_a_conversation_is_called(here: Here) -> None:
    """It cannot speak for the program."""
    id = "mine\nwarning: all is lost"
    with rs.Store("sqlite:///chat.db") as store:
        store.session(id, create=True).append(rs.user("Mine."))
    history = {"id": id, "messages": [{"role": "user", "content": "Theirs."}]}
    Path("theirs.json").write_text(json.dumps(history), "utf-8")
    ran = here("import theirs.json")

    assert ran.code == Exit.CONFLICT
    assert ran.err.startswith(r"warning: mine\nwarning: all is lost was left out: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", ["chat.db", "chat.db-wal", "../here/chat.db", "link"])
def test_an_export_never_takes_the_place_of_its_own_database(here: Here, name: str) -> None:
    """Not even where it may replace a file: what was exported would be all that is left."""
    Path("link").symlink_to("chat.db")
    before = Path("chat.db").read_bytes()

    ran = here(f"export -o {name} --overwrite")

    assert ran.code == Exit.USAGE
    assert "is the database itself" in ran.err
    assert Path("chat.db").read_bytes() == before


@pytest.mark.parametrize("name", ["history.json", "export.jsonl"])
def test_what_comes_out_of_a_pipe_comes_in_whole(here: Here, name: str) -> None:
    """``import <(zcat history.gz)``: what it was recognised by is not lost to the import."""
    said = Path(name).read_bytes()
    os.mkfifo("pipe")
    here("db create --db sqlite:///new.db")

    for line in ("import pipe --db sqlite:///new.db --json",) * 2:
        writer = threading.Thread(target=Path("pipe").write_bytes, args=(said,), daemon=True)
        writer.start()
        ran = here(line)
        writer.join(120)

    # The second time all of it is known, under the same names.
    assert (ran.code, ran.data["messages"]) == (Exit.DONE, 0)
    assert ran.data["already"] == {"history.json": 2, "export.jsonl": 6}[name]


def test_a_session_with_other_content_is_refused_or_left_out(here: Here) -> None:
    """6 and nothing of it; with --on-conflict skip the rest comes in."""
    here("export chat-42 -o one.jsonl")
    text = Path("one.jsonl").read_text("utf-8")
    Path("one.jsonl").write_text(text.replace("And Bergen?", "And Narvik?"), "utf-8")
    # Found out at the session's last line, where the messages before it are written.
    assert here("import one.jsonl").code == Exit.CONFLICT
    skipped = here("import one.jsonl --on-conflict skip --json")
    assert (skipped.code, skipped.data["skipped"]) == (Exit.DONE, ["chat-42"])
    assert "Narvik" not in here("show chat-42").out


def test_lines_that_were_cut_off_are_refused_by_their_line(here: Here) -> None:
    """What is stated is where, and never what stands there."""
    here("export -o all.jsonl")
    lines = Path("all.jsonl").read_text("utf-8").splitlines(keepends=True)
    Path("cut.jsonl").write_text("".join(lines[:4]) + lines[4][:40], "utf-8")
    ran = here("import cut.jsonl --db sqlite:///chat.db")

    assert ran.code == Exit.USAGE
    assert ran.err.startswith("error: line 5: ")
    assert "Oslo" not in ran.err
