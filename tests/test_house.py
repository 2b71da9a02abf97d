"""What holds the house: who may import whom, what is promised, what an import costs."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import reasoning_store as rs
from reasoning_store import testing

CHECKOUT = Path(__file__).parent.parent
PACKAGE = CHECKOUT / "reasoning_store"

VALUES = {"blocks", "chunks", "errors"}
FACES = {
    *("store", "session", "sending", "shortening", "prospects", "layers", "stored", "viewing"),
    "workings",
    *("recorder", "replies", "draft_keeper"),
    *("aio", "aio_session", "aio_recorder", "threads"),
    *("importing", "incoming"),
}
ROOMS: dict[str, set[str]] = {
    "blocks": set(),
    "errors": set(),
    "rope": set(),
    "surrogates": set(),
    "numerals": set(),
    "files": {"errors"},
    "quoting": set(),
    "forks": set(),
    "collected": set(),
    "chunks": {"blocks"},
    "codec": VALUES,
    "strict": VALUES,
    "clearing": VALUES | {"codec"},
    "checking": VALUES | {"codec"},
    "streams": VALUES | {"codec"},
    "settings": VALUES | {"quoting"},
    "tokenizers": VALUES | {"forks", "surrogates"},
    "wire": VALUES | {"codec", "strict", "rope", "quoting"},
    "ledger": VALUES | {"codec", "strict", "clearing", "files", "forks", "surrogates", "numerals"},
    "ingress": VALUES | {"codec", "strict", "wire", "quoting"},
    "egress": VALUES
    | {"codec", "clearing", "checking", "wire", "settings", "tokenizers", "rope"}
    | {"surrogates", "numerals", "quoting"},
    "importers": VALUES | {"codec", "strict", "files", "wire", "ingress", "quoting"},
    "testing": VALUES | {"codec", "wire"},
}
DOORS = {"__init__", "__main__", "cli"}
PURE = (
    *("blocks", "chunks", "codec", "strict", "rope", "surrogates", "numerals", "quoting"),
    *("clearing", "checking"),
    *("wire", "ingress", "egress"),
)
IMPURE_MODULES = {"os", "time", "datetime", "random", "secrets", "socket", "sqlalchemy", "pathlib"}


def modules() -> list[Path]:
    return sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if "_migrations" not in path.relative_to(PACKAGE).parts
    )


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name the whole path"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "reasoning_store" and len(parts) > 1 else None


def test_every_module_belongs_to_a_room_that_is_known() -> None:
    """What stands in no table would be held to nothing; what is gone stands in none."""
    assert {room(path) for path in modules()} == {*ROOMS, *FACES, *DOORS}


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if room(path) in ROOMS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_a_room_imports_only_the_rooms_before_it(path: Path) -> None:
    """Nothing flows back."""
    here = room(path)
    reached = {name for full in imports(path) if (name := own(full)) is not None} - {here}

    assert reached <= ROOMS[here]


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if room(path) not in FACES | DOORS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_only_the_command_line_imports_the_faces(path: Path) -> None:
    """Nothing below a face knows it."""
    assert not {own(name) for name in imports(path)} & (FACES | {"cli"})


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if room(path) in PURE],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_a_pure_room_has_no_clock_no_environment_and_no_io(path: Path) -> None:
    """The pure rooms give the same answer for the same values, always."""
    assert not {name.split(".")[0] for name in imports(path)} & IMPURE_MODULES


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_opens_by_saying_what_it_is(path: Path) -> None:
    """In one sentence, on the first line."""
    first = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]

    assert re.search(r"\w{2}.*[.:]$", first)


@pytest.mark.parametrize("room", sorted({*ROOMS, *FACES}))
def test_a_room_opens_by_saying_what_it_must_not_know(room: str) -> None:
    """In so many words: what is written there is held to it by whoever reads it."""
    paths = (PACKAGE / f"{room}.py", PACKAGE / room / "__init__.py")
    path = next(path for path in paths if path.exists())
    opening = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""

    assert "must not" in " ".join(opening.split())


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_source_is_ascii(path: Path) -> None:
    """What looks alike is alike."""
    assert path.read_text("utf-8").isascii()


@pytest.mark.parametrize(
    "path", sorted(CHECKOUT.glob("tests/**/*.py")), ids=lambda path: str(path.relative_to(CHECKOUT))
)
def test_nothing_is_imported_from_a_test(path: Path) -> None:
    """What several tests need stands beside them, in a module of its own."""
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


def named(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the types that a public name's signatures and fields say, each with its place."""
    if inspect.isfunction(thing):
        yield from get_type_hints(thing).items()
    elif not inspect.isclass(thing):
        yield "", thing
    else:
        yield from ((name, t) for name, t in get_type_hints(thing).items() if name[0] != "_")
        for name, member in own_of(thing):
            reader = getattr(member, "fget", None) or getattr(member, "func", None)
            function = reader or getattr(member, "__func__", member)
            if inspect.isfunction(function) and own(function.__module__) is not None:
                yield from ((f"{name}: {at}", t) for at, t in get_type_hints(function).items())


def kinds(hint: Any) -> Iterator[type]:
    """Yield the classes that an annotation names."""
    parts = hint if isinstance(hint, list | tuple) else get_args(hint)
    if inspect.isclass(hint) and not parts:
        yield hint
    for part in parts:
        yield from kinds(part)


@pytest.mark.parametrize("module", [rs, testing], ids=lambda module: module.__name__)
def test_whoever_uses_a_public_name_can_write_its_types(module: ModuleType) -> None:
    """Each class in a public signature or field is public, too, or of the standard library."""
    promised = [(name, getattr(module, name)) for name in module.__all__]
    public = {id(getattr(holder, name)) for holder in (rs, testing) for name in holder.__all__}
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


def test_every_rule_stands_beside_a_line_and_in_a_test() -> None:
    """The page of rules says so, and how to find them."""
    page = (CHECKOUT / "docs" / "reference" / "rules.md").read_text("utf-8")
    rules = {*re.findall(r"^\| ((?:BR|EC|ERR)-\d{3}) \|", page, re.MULTILINE)}

    def named(paths: Iterable[Path]) -> set[str]:
        texts = (path.read_text("utf-8") for path in paths)
        return {rule for text in texts for rule in re.findall(r"\b(?:BR|EC|ERR)-\d{3}\b", text)}

    assert len(rules) == 19
    assert named(modules()) == rules
    assert named((CHECKOUT / "tests").rglob("test_*.py")) == rules


def test_the_code_map_names_only_what_exists() -> None:
    """Each path in "to change X, open Y" can be opened."""
    page = CHECKOUT / "docs" / "code-map.md"
    targets = re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8"))

    assert len(targets) > 20
    assert [target for target in targets if not (page.parent / target).exists()] == []


BY_FOLDER = {"wire", "cli", "testing", "refusals", "importers", "verbs"}
"""Rooms whose modules are many of one kind: the map has the folder, or some of them."""


def test_the_code_map_names_every_module() -> None:
    """A newcomer finds each by what it does."""
    page = (CHECKOUT / "docs" / "code-map.md").read_text("utf-8")
    wanted = [
        f"{path.relative_to(CHECKOUT)}"
        for path in modules()
        if path.name not in ("__init__.py", "__main__.py") and path.parent.name not in BY_FOLDER
    ]

    assert [name for name in wanted if f"(../{name})" not in page] == []


def test_the_package_says_that_it_is_typed() -> None:
    """By the marker that type checkers look for."""
    assert (PACKAGE / "py.typed").exists()


PROMISE = """
Alternative AsyncOwner AsyncOwnerSettings AsyncPage AsyncProfiles AsyncRecording AsyncSession
AsyncSessionSettings AsyncStore BackedUp Block BlockChunk Branch Budget Chunk Compaction Conflict
ContextUsage CorruptRow Erased ErrorChunk Explanation FinishChunk Holder Imported Masker MediaBlock
Message MissingExtra NotFound Origin OriginChunk Owner OwnerSettings Page Plan Problem Profile
Profiles Range RawBlock ReasoningChunk ReasoningRenderer ReasoningSettings ReasoningStoreError
Recording ReportRow Request RequestSettings Resolved Run SchemaError SecretMasker Selection Session
SessionSettings SettingError Split Step Store StoreBusy StoreFull Stored StreamNormalizer TagFilter
TextBlock TextChunk ThinkingBlock TokenCount ToolCallBlock ToolCallChunk ToolResponseBlock
UnknownChunk Usage UsageChunk UsageError Verdict Verified Warning WhatIf WireError assistant
build_request effective_tokens explain_refusal normalize_response select split_reasoning system
tool user visible_parts what_if
""".split()
