"""Every workload, as data: what is done, by whom, over which sizes, and what is promised.

A bound is a promise of docs/benchmarks.md; a workload without one is shown so that its cost
is known. To add a workload, add a row.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from benchmarks import bulk, chat_stream, floors, histories, ours, process, rivals, tags
from benchmarks.rivals import SQLALCHEMY_SESSION, SQLITE_SESSION, streams
from benchmarks.workload import BEST, CLASS, FLOOR, Bound, Contender, Prepare, Workload

KIB = 1024
RECOUNTING = "counting again"
_A_LAP = 30
"""Goes of eight turns until every contender's WAL has been all around once. Until then each
turn makes the file longer, which costs half as much again; a process that stays, never."""


def _ours(prepare: Prepare) -> Contender:
    return Contender("ours", "ours", prepare)


def _floor(prepare: Prepare, only_at: int | None = None) -> Contender:
    return Contender("floor", "floor", prepare, only_at)


def _other(name: str, prepare: Prepare, only_at: int | None = None) -> Contender:
    return Contender(name, "other", prepare, only_at)


def _if_installed(
    package: str, name: str, make: Callable[[], Prepare], only_at: int | None = None
) -> tuple[Contender, ...]:
    found = find_spec(package) is not None
    return (Contender(name, "rival", make(), only_at),) if found else ()


def _tags(length: int) -> tuple[Contender, ...]:
    return (
        _ours(tags.driven(tags.ours, length)),
        _floor(tags.driven(tags.floor, length)),
        _other("ours, tags cut anywhere", tags.driven(tags.ours, length, whole_tags=False)),
        *_if_installed(
            "pydantic_ai",
            streams.PYDANTIC_AI,
            lambda: tags.driven(streams.pydantic_ai, length),
        ),
    )


def _stream(kind: str) -> Workload:
    return Workload(
        name=f"stream-{kind}",
        title=f"a chunk of a Chat Completions stream, {kind}",
        of="chunks",
        sizes=(500, 2_000, 8_000),
        judged=2_000,
        each=True,
        growth="linear",
        contenders=(
            _ours(chat_stream.driven(chat_stream.ours, kind)),
            _floor(chat_stream.driven(chat_stream.floor, kind, plain=True)),
            _other("ours, plain dicts", chat_stream.driven(chat_stream.ours, kind, plain=True)),
            *_if_installed(
                "litellm",
                streams.LITELLM,
                lambda: chat_stream.driven(streams.litellm, kind),
                only_at=2_000,
            ),
        ),
    )


_TURNS = rivals.contenders(rivals.turn, only_at=100)
_LENGTHS = (10, 1_000, 10_000, 100_000)
_TO_A_REQUEST = (SQLITE_SESSION, SQLALCHEMY_SESSION)
_JUDGED = 10_000


def _request(name: str, title: str, *, thinking: bool) -> tuple[Workload, Workload]:
    cold = Workload(
        name=f"request-{name}",
        title=f"the first request after opening, {title}",
        of="messages",
        promise="request of 10 000 messages, cold",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="linear",
        bounds=(Bound(1.5, FLOOR), Bound(0.3, BEST)),
        contenders=(
            _ours(ours.request_cold(thinking=thinking)),
            _floor(floors.request_cold(thinking=thinking)),
            *rivals.contenders(rivals.load_and_dump, _TO_A_REQUEST, only_at=_JUDGED),
            _other(
                "ours, written as JSON", ours.request_cold(thinking=thinking, dump=True), _JUDGED
            ),
            *(
                _other(f"{one.name}, without JSON", one.prepare, _JUDGED)
                for one in rivals.contenders(rivals.load, _TO_A_REQUEST)
            ),
        ),
    )
    following = Workload(
        name=f"request-next-{name}",
        title=f"the next request, one turn later, {title}",
        of="messages",
        promise="request of 10 000 messages, next one",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="flat but for the copy",
        bounds=(Bound(2.0, FLOOR),),
        repeats=8,
        contenders=(
            _ours(ours.request_next(thinking=thinking)),
            _floor(floors.request_next(thinking=thinking)),
        ),
    )
    return cold, following


_REQUEST_SIGNED = Workload(
    name="request-signed",
    title="the first request after opening, signed thinking kept",
    of="messages",
    promise="request of 10 000 messages, cold",
    sizes=_LENGTHS,
    judged=_JUDGED,
    growth="linear",
    bounds=(Bound(1.5, FLOOR),),
    contenders=(
        _ours(ours.request_signed()),
        _floor(floors.request_signed()),
        _other("ours, written as JSON", ours.request_signed(dump=True), _JUDGED),
    ),
)


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="tags-4",
        title="tag filter, a delta of 4 characters",
        of="characters",
        promise="tag filter, 4-character deltas",
        sizes=(16 * KIB, 128 * KIB, 2048 * KIB),
        each=True,
        growth="linear",
        bounds=(Bound(0.3e-6, CLASS), Bound(1 / 3, streams.PYDANTIC_AI)),
        contenders=_tags(4),
        smoke=(2 * KIB,),
    ),
    Workload(
        name="tags-4096",
        title="tag filter, a delta of 4 KB",
        of="characters",
        sizes=(256 * KIB, 2048 * KIB),
        each=True,
        growth="linear",
        contenders=_tags(4 * KIB),
        repeats=5,
        smoke=(16 * KIB,),
    ),
    Workload(
        name="tags-hostile",
        title="tag filter, a character of hostile texts",
        of="characters",
        sizes=(2_000, 20_000, 200_000),
        each=True,
        growth="linear",
        contenders=(_ours(tags.on_hostile),),
        smoke=(200,),
        rounds=(3, 9),
    ),
    _stream("text"),
    _stream("reasoning"),
    _stream("tagged"),
    Workload(
        name="turn",
        title="a durable turn, counted",
        of="messages before it",
        promise="durable turn on SQLite, counted",
        sizes=(100, 10_000),
        judged=100,
        growth="linear",
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        before=_A_LAP,
        bounds=(
            Bound(1.4, FLOOR),
            Bound(1.2, SQLITE_SESSION.name),
            Bound(0.35, SQLALCHEMY_SESSION.name),
        ),
        contenders=(_ours(ours.turn), _floor(floors.turn(counted=True)), *_TURNS),
    ),
    Workload(
        name="turn-async",
        title="a durable turn, counted, awaited",
        of="messages before it",
        sizes=(100,),
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        before=_A_LAP,
        contenders=(_ours(ours.turn_async), _floor(floors.turn_async), *_TURNS),
    ),
    Workload(
        name="turn-uncounted",
        title="a durable turn, its counts known",
        of="messages before it",
        sizes=(100,),
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        before=_A_LAP,
        contenders=(
            _ours(ours.turn_counted_before),
            _floor(floors.turn(counted=False)),
            *_TURNS,
        ),
    ),
    Workload(
        name="turn-memory",
        title="a turn where storage costs no waiting, its counts known",
        of="messages before it",
        sizes=(100, 10_000),
        growth="linear",
        repeats=20,
        contenders=(
            _ours(ours.turn_counted_before),
            _floor(floors.turn(counted=False)),
            *_TURNS,
        ),
    ),
    Workload(
        name="writers",
        title="a durable turn, 8 writers at once",
        of="turns a writer",
        sizes=(8,),
        storage="disk",
        rounds=(9, 25),
        before=_A_LAP // 8,
        contenders=(
            _ours(ours.writers),
            _floor(floors.writers),
            *rivals.contenders(rivals.writers, _TO_A_REQUEST),
        ),
        smoke=(2,),
    ),
    Workload(
        name="load",
        title="a history loaded whole",
        of="messages",
        promise="load 10 000 messages",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="linear",
        bounds=(Bound(1.4, FLOOR), Bound(0.6, BEST)),
        contenders=(
            _ours(ours.history),
            _floor(floors.load(thinking=True)),
            *rivals.contenders(rivals.load, only_at=_JUDGED),
        ),
    ),
    Workload(
        name="load-stripped",
        title="a history loaded without its thinking",
        of="messages",
        promise="load 10 000 messages, stripped",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="linear",
        bounds=(Bound(1.5, FLOOR), Bound(0.2, BEST)),
        contenders=(
            _ours(ours.history_stripped),
            _floor(floors.load(thinking=False)),
            *rivals.contenders(rivals.load, only_at=_JUDGED),
        ),
    ),
    Workload(
        name="usage",
        title="context usage, one of 16 policies",
        of="messages",
        promise="context usage, any policy",
        sizes=_LENGTHS,
        judged=_JUDGED,
        growth="flat",
        bounds=(Bound(1 / 5_000, RECOUNTING),),
        contenders=(
            _ours(ours.usage),
            _floor(floors.usage),
            _other(RECOUNTING, floors.recount, _JUDGED),
        ),
        repeats=4,
    ),
    *_request("stripped", "thinking stripped", thinking=False),
    *_request("kept", "thinking kept", thinking=True),
    _REQUEST_SIGNED,
    Workload(
        name="import",
        title="an import, a megabyte of lines",
        of="MB",
        sizes=(1, 10, 100),
        each=True,
        growth="linear",
        rounds=(1, 3),
        contenders=(_ours(bulk.imported), _floor(bulk.bare_import)),
        smoke=(1,),
    ),
    Workload(
        name="memory",
        title="memory held by a process that loads a history",
        of="messages",
        sizes=(100, 10_000),
        unit="bytes",
        rounds=(3, 3),
        contenders=(
            _ours(process.resident("ours", histories.filled)),
            _floor(process.resident("floor", histories.filled)),
            *rivals.contenders(rivals.held),
        ),
    ),
    Workload(
        name="start-import",
        title="import of the package",
        of="processes",
        promise="import of the package, `--version`",
        sizes=(1,),
        bounds=(Bound(0.150, CLASS),),
        contenders=(
            _ours(process.importing("reasoning_store")),
            _floor(process.importing("")),
        ),
        smoke=(1,),
    ),
    Workload(
        name="start-store",
        title="import of what stores",
        of="processes",
        sizes=(1,),
        contenders=(
            _ours(process.importing("reasoning_store.store")),
            _floor(process.importing("sqlite3")),
            *_if_installed("agents", "OpenAI Agents", lambda: process.importing("agents")),
            *_if_installed(
                "langchain_community",
                "LangChain",
                lambda: process.importing("langchain_community.chat_message_histories.sql"),
            ),
        ),
        smoke=(1,),
    ),
    Workload(
        name="start-version",
        title="`reasoning-store --version`",
        of="processes",
        promise="import of the package, `--version`",
        sizes=(1,),
        bounds=(Bound(0.150, CLASS),),
        contenders=(
            _ours(process.started("-m", "reasoning_store", "--version")),
            _floor(process.importing("")),
        ),
        smoke=(1,),
    ),
    Workload(
        name="bytes",
        title="bytes on disk, a message",
        of="messages",
        sizes=(10_000,),
        unit="bytes",
        rounds=(1, 1),
        contenders=(
            _ours(ours.bytes_on_disk),
            _floor(floors.bytes_of_text),
            *rivals.contenders(rivals.bytes_on_disk),
        ),
        smoke=(100,),
    ),
    Workload(
        name="tokens",
        title="counting the tokens of a text",
        of="characters",
        sizes=(1_000, 16_000, 256_000, 2_000_000),
        growth="linear",
        contenders=(
            _ours(ours.tokens),
            _floor(floors.tokens),
            *_if_installed("litellm", streams.LITELLM, lambda: streams.counting),
        ),
        smoke=(1_000,),
    ),
    Workload(
        name="postgres-turn",
        title="a durable turn on PostgreSQL, counted",
        of="messages before it",
        promise="PostgreSQL turn",
        sizes=(100,),
        server=True,
        storage="disk",
        repeats=8,
        rounds=(15, 40),
        bounds=(Bound(1.5, FLOOR), Bound(0.5, rivals.LANGCHAIN.name)),
        contenders=(
            _ours(ours.turn_on_server),
            _floor(floors.server_turn(counted=True)),
            _other("one statement, nothing counted", floors.server_turn(counted=False)),
            *rivals.contenders(rivals.turn, rivals.ON_A_SERVER),
        ),
    ),
    Workload(
        name="postgres-load",
        title="a history loaded from PostgreSQL",
        of="messages",
        promise="PostgreSQL load 10 000",
        sizes=(100, 1_000, 10_000),
        growth="linear",
        server=True,
        bounds=(Bound(1.25, FLOOR), Bound(0.5, rivals.LANGCHAIN.name)),
        contenders=(
            _ours(ours.history_on_server),
            _floor(floors.server_load),
            *rivals.contenders(rivals.load, rivals.ON_A_SERVER),
        ),
    ),
)
