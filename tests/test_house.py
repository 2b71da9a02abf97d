"""What holds the house: who may import whom, what is promised, what an import costs."""

from __future__ import annotations
import __future__

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

import reasoning_store as rs
from reasoning_store import formats, results, testing
from tests.properties import each

CHECKOUT = Path(__file__).parent.parent
PACKAGE = CHECKOUT / "reasoning_store"

ROOMS = {
    "conversation": 0,
    **dict.fromkeys(("tokens", "wire"), 1),
    **dict.fromkeys(("ingress", "ledger", "egress", "display"), 2),
    **dict.fromkeys(("root", "sessions", "recording", "aio"), 3),
    **dict.fromkeys(("importers", "integrations", "server", "cli", "testing"), 4),
}
"""Each folder imports only folders with a lower number, the ledger only ``conversation``."""
ABOVE = {
    ("cli", "importers"),
    ("cli", "server"),
    ("cli", "testing"),
    ("integrations", "importers"),
    ("server", "integrations"),
}
"""The doors that open another door."""
KNOWN: set[str] = set()
"""Imports that are still wrong; each has to go."""
SURFACES = ("importers", "integrations", "server", "cli")
OPEN = tuple(f"reasoning_store{name}" for name in ("", ".results", ".formats", ".testing"))
"""The modules whose names are public."""
STILL_PRIVATE = {
    "cli/commands/compact.py: egress.budget.THRESHOLD",
    "cli/commands/database.py: ledger.database.distribution",
    "cli/commands/explain.py: wire.contract.Contract",
    "cli/commands/explain.py: wire.contract.RULES",
    "cli/commands/explain.py: wire.contract_lookup",
    "cli/commands/explain.py: wire.contract_tables",
    "cli/commands/import_.py: ledger.database.files",
    "cli/commands/request.py: egress.budget.THRESHOLD",
    "cli/commands/settings.py: conversation.settings",
    "cli/completion.py: conversation.settings",
    "cli/options.py: conversation.settings",
    "cli/options.py: ledger.database.files",
    "cli/output_files.py: ledger.database.backup.check_target",
    "cli/output_files.py: ledger.database.files",
    "cli/store_access.py: ledger.database.files",
    "integrations/echo_matcher.py: display.text_renderer.answers_without_sections",
    "server/reply_modes.py: ingress.normalizer.make_text_channel",
    "server/reply_modes.py: ingress.reply_counters.Counters",
    "server/reply_modes.py: ingress.text_channel.TextChannel",
    "server/reply_modes.py: wire.contract_lookup.find_contract",
}
"""What surfaces import of the inside; each has to become public, or go."""
PURE = ("conversation", "wire", "ingress", "egress", "display")
IMPURE_MODULES = {"os", "time", "datetime", "random", "secrets", "socket", "sqlalchemy", "pathlib"}
MOST_LINES = 470
NAMED_BY_THE_ENVIRONMENT = "wire/contract_tables.py"
"""The one module of a pure room that reads a file: the contracts that the environment names."""


def modules() -> list[Path]:
    return sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if "_migrations" not in path.relative_to(PACKAGE).parts
    )


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "root"


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name the whole path"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_room(name: str) -> str | None:
    """Return the room of an imported name; None where it is not ours."""
    parts = name.split(".")
    if parts[0] != "reasoning_store":
        return None
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else "root"


def may_import(here: str, there: str) -> bool:
    if ROOMS[here] == ROOMS[there] == ROOMS["root"]:
        return not (here == "recording" and there == "aio")
    if here == there or (here, there) in ABOVE:
        return True
    if here == "ledger":
        return there == "conversation"
    if (here, there) == ("testing", "egress"):
        return False
    return ROOMS[there] < ROOMS[here]


def test_a_folder_imports_only_folders_above_it() -> None:
    """DESIGN: conversation < tokens, wire < ingress, ledger, egress, display < root < doors."""
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name.rpartition('.')[0]}"
        for path in modules()
        if path.name != "__main__.py"
        for name in imports(path)
        if (there := imported_room(name)) is not None and not may_import(room(path), there)
    ]

    assert {*wrong} <= KNOWN


def private_imports(path: Path) -> Iterator[str]:
    """Yield what a surface imports that is neither public, nor its own, nor another surface's."""
    here = room(path)
    for name in imports(path):
        there = imported_room(name)
        module, _, word = name.rpartition(".")
        if there is None or there == here or (here, there) in ABOVE:
            continue
        is_promised = module == OPEN[0] and word in (*rs.__all__, "__version__")
        if is_promised or name in OPEN or module in OPEN[1:]:
            continue
        yield f"{path.relative_to(PACKAGE)}: {name.removeprefix('reasoning_store.')}"


def test_a_surface_imports_public_names() -> None:
    """DESIGN: so a surface can leave the house with another project's release."""
    found = {name for path in modules() if room(path) in SURFACES for name in private_imports(path)}

    assert found == STILL_PRIVATE


def test_no_module_needs_a_second_sitting() -> None:
    """470 lines are the most."""
    long = {
        str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines())
        for path in modules()
    }

    assert {name: lines for name, lines in long.items() if lines > MOST_LINES} == {}


def test_a_module_can_be_imported_by_its_name() -> None:
    """Its package begins with ``from __future__ import``, which takes a few names."""
    taken = set(__future__.all_feature_names)

    assert [path for path in modules() if path.stem in taken] == []


def test_a_pure_room_has_no_clock_no_environment_and_no_io() -> None:
    """The pure rooms give the same answer for the same values, always."""
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in modules()
        if room(path) in PURE and str(path.relative_to(PACKAGE)) != NAMED_BY_THE_ENVIRONMENT
        for name in imports(path)
        if name.split(".")[0] in IMPURE_MODULES
    ]

    assert wrong == []


def test_a_module_opens_with_one_sentence() -> None:
    """On the first line."""
    first = {
        str(path.relative_to(PACKAGE)): (
            ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        ).partition("\n")[0]
        for path in modules()
    }

    assert [name for name, line in first.items() if not re.search(r"\w{2}.*[.:]$", line)] == []


ASKING = re.compile(
    r"(?:\A|[.:;!?]\s+|\n\n\s*|\n\s*(?:[-*]|\d\.) |\| )"
    r"((?:What|Whatever|Where|Wherever|Who|Whoever|Whom)\b[^.?!|]*[.?!|]?)"
)
"""A sentence that begins with a word of a question."""
READ_TWICE = re.compile(r"\b(?:(?:is|are) none|[Bb]eside|[Ss]omebody|[Nn]obody|[Ww]hoever|told)\b")


def read_twice(text: str) -> list[str]:
    """Return the places of a text that a reader has to read twice."""
    asking = [found for found in ASKING.findall(text) if not found.endswith("?")]
    return [*asking, *READ_TWICE.findall(text)]


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


@each("path", modules())
def test_a_docstring_is_read_once(path: Path) -> None:
    """Its sentences have a subject, and a noun for each thing."""
    found = [place for text in docstrings(path) for place in read_twice(text)]

    assert [*found, *(text for text in docstrings(path) if "behind" in text)] == []


@each("page", [*CHECKOUT.glob("*.md"), *sorted(CHECKOUT.glob("docs/**/*.md"))])
def test_a_page_is_read_once(page: Path) -> None:
    """A heading, a question and a program may begin with What or Where."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "code", text)

    assert read_twice(re.sub(r"^#.*", "", text, flags=re.MULTILINE)) == []


@each("path", modules())
def test_the_source_is_ascii(path: Path) -> None:
    """What looks alike is alike."""
    assert path.read_text("utf-8").isascii()


@each("path", sorted(CHECKOUT.glob("tests/**/*.py")))
def test_nothing_is_imported_from_a_test(path: Path) -> None:
    """What several tests need stands next to them, in a module of its own."""
    words: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            words |= {word for alias in node.names for word in alias.name.split(".")}
        if isinstance(node, ast.ImportFrom):
            words |= {*(node.module or "").split(".")}

    assert [word for word in words if word.startswith("test_")] == []


def test_the_promise_is_sorted_and_kept() -> None:
    """Every promised name exists, and the list reads in order."""
    assert rs.__all__ == sorted(rs.__all__)
    assert [name for name in rs.__all__ if getattr(rs, name, None) is None] == []


def test_the_promise_is_this() -> None:
    """A change of the public names is a visible change of this list."""
    assert rs.__all__ == PROMISE
    assert results.__all__ == RESULTS
    assert formats.__all__ == FORMATS


def own_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what of a class an application uses: its public members, and what Python calls."""
    is_made = not dataclasses.is_dataclass(kind) and "Made by" not in (kind.__doc__ or "")
    seen = set() if is_made else {"__init__"}
    for base in kind.__mro__:
        if base.__module__.startswith("reasoning_store"):
            for name, member in vars(base).items():
                if name not in seen and (name[0] != "_" or name[:2] == "__"):
                    seen.add(name)
                    yield name, member


@cache
def names_for_types(module: str) -> dict[str, Any]:
    """Return what a module imports for its types alone."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    tests = (node for node in tree.body if isinstance(node, ast.If))
    names: dict[str, Any] = {}
    for node in tests:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), names)
    return names


def types_of(thing: Any) -> dict[str, Any]:
    """Return the types that are written down in a function or class."""
    is_class = inspect.isclass(thing) and not is_typeddict(thing)
    holders = thing.__mro__ if is_class else [thing]
    names = [
        names_for_types(one.__module__)
        for one in holders
        if one.__module__.startswith("reasoning_store")
    ]
    return get_type_hints(thing, localns={k: v for each in names for k, v in each.items()})


def named(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the types that a public name's signatures and fields say, each with its place."""
    if inspect.isfunction(thing):
        yield from types_of(thing).items()
    elif not inspect.isclass(thing):
        yield "", thing
    else:
        yield from ((name, t) for name, t in types_of(thing).items() if name[0] != "_")
        for name, member in own_of(thing):
            reader = getattr(member, "fget", None) or getattr(member, "func", None)
            function = reader or getattr(member, "__func__", member)
            if inspect.isfunction(function) and imported_room(function.__module__) is not None:
                yield from ((f"{name}: {at}", t) for at, t in types_of(function).items())


def kinds(hint: Any) -> Iterator[type]:
    """Yield the classes that an annotation names."""
    parts = hint if isinstance(hint, list | tuple) else get_args(hint)
    if is_typeddict(hint):  # its fields are keywords in the signature
        parts = [*types_of(hint).values()]
    elif inspect.isclass(hint) and not parts:
        yield hint
    for part in parts:
        yield from kinds(part)


@pytest.mark.parametrize(
    "module", [rs, results, formats, testing], ids=lambda module: module.__name__
)
def test_the_types_of_each_public_name_can_be_written(module: ModuleType) -> None:
    """Each class in a public signature or field is public, too, or of the standard library."""
    promised = [(name, getattr(module, name)) for name in module.__all__]
    public = {
        id(getattr(holder, name))
        for holder in (rs, results, formats, testing)
        for name in holder.__all__
    }
    hidden = [
        f"{name}.{place}: {kind.__name__}"
        for name, thing in promised
        for place, hint in named(thing)
        for kind in kinds(hint)
        if id(kind) not in public and kind.__module__.split(".")[0] not in sys.stdlib_module_names
    ]

    assert hidden == []


def test_a_name_that_is_not_promised_is_an_attribute_error() -> None:
    """Loading names late does not change what an unknown one says."""
    with pytest.raises(AttributeError, match="no attribute 'Stoer'"):
        rs.Stoer  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_nothing_that_is_slow() -> None:
    """Neither SQL nor a vocabulary nor the command line is paid for by an import."""
    code = (
        "import sys, reasoning_store; print(sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = ast.literal_eval(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    )

    assert not set(loaded) & {"sqlalchemy", "alembic", "tiktoken", "click", "rich", "pydantic"}


def test_asking_for_the_version_loads_no_sql_and_no_vocabulary() -> None:
    """``--version`` answers at once."""
    code = (
        "import sys; from reasoning_store.cli import main; main(['--version']);"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout == f"reasoning-store, version {rs.__version__}\n"
    assert not set(ast.literal_eval(ran.stderr)) & {"sqlalchemy", "alembic", "tiktoken", "rich"}


def test_every_rule_is_named_next_to_a_line_and_in_a_test() -> None:
    """The page of rules says so, and how to find them."""
    page = (CHECKOUT / "docs" / "reference" / "rules.md").read_text("utf-8")
    rules = {*re.findall(r"^\| ((?:BR|EC|ERR)-\d{3}) \|", page, re.MULTILINE)}

    def named(paths: Iterable[Path]) -> set[str]:
        texts = (path.read_text("utf-8") for path in paths)
        return {rule for text in texts for rule in re.findall(r"\b(?:BR|EC|ERR)-\d{3}\b", text)}

    assert len(rules) == 19
    assert named(modules()) == rules
    assert named((CHECKOUT / "tests").rglob("test_*.py")) == rules


@each("page", ["CONTRIBUTING.md", "docs/explanation/how-it-works.md"])
def test_the_pages_for_contributors_name_files_that_exist(page: str) -> None:
    """A path, or the end of one: ``NAME`` stands for the part that you choose."""
    text = (CHECKOUT / page).read_text("utf-8")
    named = {*re.findall(r"(?<![\w*/])[\w./]*\w\.(?:py|toml)\b", text)}
    folders = ("reasoning_store", "tests", "tools", "migrations")
    inside = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.*")]
    files = [f"/{path}" for path in (*CHECKOUT.glob("*.toml"), *inside)]

    assert [
        name
        for name in sorted(named)
        if "NAME" not in name and not any(file.endswith(f"/{name}") for file in files)
    ] == []


def test_the_package_says_that_it_is_typed() -> None:
    """By the marker that type checkers look for."""
    assert (PACKAGE / "py.typed").exists()


PROMISE = """
AsyncContext AsyncRecording AsyncSession AsyncStore Block BlockChunk Chunk Conflict Context
CorruptRow ErrorChunk FinishChunk InvalidCall JSONEvents Masker MediaBlock Message MissingExtra
NDJSONDecoder NotFound Origin OriginChunk Plan RawBlock ReasoningChunk ReasoningRenderer
ReasoningSettings ReasoningStoreError ReasoningStreamAdapter Recording Request SchemaError
SecretMasker Session SettingError Store StoreBusy StoreFull StreamNormalizer TagFilter TextBlock
TextChunk ThinkingBlock ToolCallBlock ToolCallChunk ToolResponseBlock UnknownChunk Usage UsageChunk
WireError adapters assistant build_request effective_tokens explain_refusal normalize_response
select split_reasoning system tool ui_events ui_headers ui_messages ui_sse user visible_parts
what_if write_message
""".split()

RESULTS = """
AdapterRegistry Alternative Asked AsyncClientConversation AsyncFollowing AsyncOwner
AsyncOwnerSettings AsyncProfiles AsyncSessionSettings BackedUp Branch Budget ClientConversation
Compaction ContextUsage Contracts Deleted Erased Explanation Finding Following Hit Holder Imported
ImportedConversation ImportedHistory Owner OwnerSettings Page Place Problem Profile Profiles Range
Recovery Report ReportRow RequestSettings RequestWarning Resolved RestoredReply Role Run Selection
SessionSettings Skipped Split Status Step Stored Thought TokenCount TokensByKind Verdict Verified
Version WhatIf Withheld
""".split()

FORMATS = """
CallLinks Conversation Item RequestMessage SourceBranch call_arguments check_encoding
describe_result message_to_json open_to_read parse_arguments parse_json read_blocks read_medium
read_message read_messages read_usage split_messages tool_response write_messages
""".split()
