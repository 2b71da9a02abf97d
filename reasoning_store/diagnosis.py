"""Checks of this library and of a database, fit to be pasted.

No finding holds text of a conversation or a secret: of a URL only the engine and the host are
named.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from reasoning_store.conversation import settings
from reasoning_store.conversation.errors import ReasoningStoreError
from reasoning_store.ledger.database import (
    backup,
    checkpoints,
    distribution,
    files,
    foreign_objects,
    opening,
    schema_version,
    sqlite_connections,
    topology,
)
from reasoning_store.ledger.database.topology import Cluster, ServerSettings
from reasoning_store.store import Store
from reasoning_store.tokens import ENCODINGS, counter

if TYPE_CHECKING:
    from sqlalchemy import URL

State: TypeAlias = Literal["ok", "note", "failed"]

_STATES: Final = ("ok", "note", "failed")
_NO_NAMES: Final = "run there: ALTER SYSTEM RESET synchronous_standby_names"
_INIT: Final = "run: reasoning-store db create"
_DISTRIBUTE: Final = "run: reasoning-store db distribute"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    state: State
    detail: str


def diagnose(url: str) -> Iterator[Finding]:
    """Yield what each check found, of the library, the environment and a database."""
    yield from _check_library()
    yield from _check_vocabularies()
    yield from _check_environment()
    yield from _check_database(url)


def _check_library() -> Iterator[Finding]:
    module: Any = sqlite_connections.library()
    version = f"{module.sqlite_version} of {module.__name__.partition('.')[0]}"
    if checkpoints.is_vulnerable(module.sqlite_version_info):
        yield Finding(
            "sqlite",
            "note",
            f"{version}; two processes could lose data with it, so checkpoints are made under"
            " the write lock only",
        )
    else:
        yield Finding("sqlite", "ok", f"{version}; its WAL needs no guard")


def _check_vocabularies() -> Iterator[Finding]:
    for name in ENCODINGS:
        count = counter(name).count("seven")
        exact = count.exactness == "exact"
        yield Finding(
            name, "ok" if exact else "failed", "counts exactly" if exact else "estimates only"
        )


_OTHER_VARIABLES = (
    "REASONING_STORE_URL",
    "REASONING_STORE_LIMIT",
    "REASONING_STORE_OWNER",
    "REASONING_STORE_CONTRACTS",
    "REASONING_STORE_TOKEN",
    "REASONING_STORE_CONFIG",
)


def _check_environment() -> Iterator[Finding]:
    try:
        given = settings.from_environment(os.environ)
    except ReasoningStoreError as error:
        yield Finding("environment", "failed", str(error))
    else:
        yield Finding("environment", "ok", ", ".join(given) or "sets nothing")
    known = [*settings.ENVIRONMENT, *_OTHER_VARIABLES]
    for name in sorted(os.environ):
        if name.startswith("REASONING_STORE_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield Finding("environment", "note", f"{name} is not a variable of this program{meant}")


def _check_database(url: str) -> Iterator[Finding]:
    try:
        address = opening.parse_url(url)
        path = opening.file_of(address)
        server = address.get_backend_name() != "sqlite"
        place = f"PostgreSQL at {_host_names(address)}" if server else str(path or "in memory")
        if path is not None and files.status_of(path, f"{path.name} cannot be opened") is None:
            made = f"{place}: does not exist yet; {_INIT}"
            yield Finding("database", "note", made)
            return
        with closing(opening.open_any_version(url)) as database:
            revision = database.read(schema_version.current_revision) or schema_version.BASE
            is_newest = database.read(schema_version.is_current)
    except ReasoningStoreError as error:
        detail = f"{error} ({error.hint})" if error.hint else str(error)
        yield Finding("database", "failed", detail)
        return
    yield Finding("database", "ok", place)
    if is_newest:
        yield Finding("schema", "ok", f"revision {revision}")
    else:
        how = "run: reasoning-store db upgrade"
        yield Finding("schema", "failed", f"revision {revision}; {how}")
    if server:
        yield from _check_server(url, is_newest=is_newest)
    if path is not None:
        if is_newest:
            yield from _check_erasures(url, path)
            yield from _check_foreign_objects(url)
        yield from _check_files(path)


def _host_names(address: URL) -> str:
    several = address.query.get("host", ())
    named = (several,) if isinstance(several, str) else several
    found = [address.host or "", *(host for host in named if not host.startswith("/"))]
    return ", ".join(filter(None, found)) or "a socket"


def _check_server(url: str, *, is_newest: bool) -> Iterator[Finding]:
    """Show the settings of the server for this role, its standbys, and where its tables are."""
    with closing(opening.open_any_version(url)) as database:
        nodes = {"this server": database.read(topology.read_settings)}
        cluster = database.read(topology.read_cluster) if is_newest else None
        away = () if cluster is None else database.read_one(topology.nodes_away)
        if cluster is not None and cluster.is_coordinator:
            nodes |= database.read_one(topology.read_worker_settings)
    yield from _of_worst("durability", nodes, _commit_state)
    yield from _of_worst("standbys", nodes, partial(standby_state, is_cluster=len(nodes) > 1))
    yield from _of_worst("foreign keys", nodes, _foreign_key_state)
    if cluster is None:
        yield Finding("tables", "ok", "on one server: this database has no Citus")
    else:
        yield from _check_cluster(cluster, away)


def _of_worst(
    what: str,
    nodes: Mapping[str, ServerSettings],
    state_of: Callable[[ServerSettings], tuple[State, str]],
) -> Iterator[Finding]:
    """Show what the nodes that are worst have, with their names if others have something else."""
    found: dict[tuple[State, str], list[str]] = {}
    for name, of_node in nodes.items():
        found.setdefault(state_of(of_node), []).append(name)
    worst = max([state for state, _ in found], key=_STATES.index)
    for (state, detail), names in found.items():
        if state == worst:
            whose = f"{', '.join(names)}: " if len(found) > 1 else ""
            yield Finding(what, state, f"{whose}{detail}")


def _commit_state(settings: ServerSettings) -> tuple[State, str]:
    commit = settings.synchronous_commit
    lost = (
        " for this role: a crash of the server loses acknowledged messages of its last moments;"
        " run: ALTER ROLE ... RESET synchronous_commit"
    )
    is_off = commit == "off"
    return "note" if is_off else "ok", f"synchronous_commit is {commit}{lost if is_off else ''}"


def _foreign_key_state(settings: ServerSettings) -> tuple[State, str]:
    role = settings.replication_role
    left = (
        " for this role: erased data leaves rows behind; run: ALTER ROLE ... RESET"
        " session_replication_role"
    )
    is_on = role == "origin"
    return "ok" if is_on else "failed", f"session_replication_role is {role}{'' if is_on else left}"


def standby_state(settings: ServerSettings, *, is_cluster: bool = False) -> tuple[State, str]:
    """Return what a fail-over would lose, from the settings of a server."""
    connected = f"{settings.standbys} connected"
    names = settings.standby_names
    if settings.is_standby:
        waits = f"; promoted, every write would wait for {names}: {_NO_NAMES}" if names else ""
        return "note", f"this server is a standby: it takes no writes{waits}"
    if not names:
        lost = "; a fail-over loses the last acknowledged messages"
        state: State = "note" if settings.standbys or is_cluster else "ok"
        return state, f"{connected}, synchronous_standby_names is empty{lost}"
    if not settings.standbys:
        return "note", f"{connected}, synchronous_standby_names is {names}: every write waits"
    if settings.synchronous_commit in ("off", "local"):
        return (
            "note",
            f"{connected}, synchronous_standby_names is {names}, and synchronous_commit does not"
            " wait for it; run: ALTER ROLE ... RESET synchronous_commit",
        )
    return "ok", f"{connected}, synchronous_standby_names is {names}"


def _check_cluster(cluster: Cluster, away: Sequence[str]) -> Iterator[Finding]:
    """Show what is distributed, what is not yet, and what an owner's list of sessions costs."""
    if away:
        yield Finding("nodes", "failed", f"{', '.join(away)}: no answer")
    wrong = distribution.misplaced(cluster)
    missing = [step.subject for step in distribution.distribution_steps(cluster)]
    left = [step.subject for step in distribution.truncation_steps(cluster)]
    placed = [one for one in cluster.tables.values() if one.kind == "hash"]
    nodes = _plural(sum(node.has_shards for node in cluster.nodes), "node")
    if wrong is not None:
        yield Finding("tables", "failed", f"{wrong}; {_DISTRIBUTE} --check")
    elif missing and not placed:
        yield Finding("tables", "note", f"on the coordinator alone; {_DISTRIBUTE}")
    elif missing:
        yield Finding("tables", "failed", f"not distributed: {', '.join(missing)}; {_DISTRIBUTE}")
    else:
        shards = _plural(placed[0].shards, "shard")
        yield Finding("tables", "ok", f"distributed by session_key: {shards} on {nodes}")
    if left:
        yield Finding(
            "coordinator",
            "failed",
            f"has the rows from before it was distributed, erased ones too, of {', '.join(left)};"
            f" {_DISTRIBUTE}",
        )
    if placed and (cluster.pool_size or 1) > 1:
        yield Finding(
            "list of sessions",
            "note",
            f"asks each node with up to {cluster.pool_size} connections at once; run: ALTER ROLE"
            " ... SET citus.max_adaptive_executor_pool_size = 1",
        )


def _check_erasures(url: str, path: Path) -> Iterator[Finding]:
    """Finish an erasure that was interrupted, or print the files that still hold its bytes."""
    with Store(url, read_only=True) as store:
        left = _unerased_files(store, path)
    if left:
        with suppress(ReasoningStoreError), Store(url) as store:
            left = _unerased_files(store, path)
    if left:
        yield Finding(
            "erasure",
            "failed",
            f"not finished: what was erased may still be in"
            f" {' and '.join(left)}; let other"
            " programs come to an end, make room on the disk for two more such files, and run this"
            " again",
        )
    else:
        yield Finding("erasure", "ok", "nothing is left of what was erased")


def _check_foreign_objects(url: str) -> Iterator[Finding]:
    database = opening.connect_to_read(url)
    if found := database.read(foreign_objects.foreign_names):
        yield Finding(
            "foreign",
            "failed",
            f"{', '.join(found)}: not ours, and may keep what is erased or change what is written",
        )


def _unerased_files(store: Store, path: Path) -> list[str]:
    """Return the files of the database that hold what was erased."""
    left = [name for name in store.scrub() if name in (str(path), f"{path}-wal")]
    return left if str(path) in left else []


def _check_files(path: Path) -> Iterator[Finding]:
    for file, name in ((path, "file"), (Path(f"{path}-wal"), "wal")):
        if file.exists():
            mode = file.stat().st_mode & 0o777
            open_to_others = bool(mode & 0o077) and os.name == "posix"
            detail = f"{file.stat().st_size} bytes, mode {mode:04o}"
            yield Finding(
                name,
                "note" if open_to_others else "ok",
                detail + ("; others can read it" if open_to_others else ""),
            )
    if copies := backup.copies_of(path):
        yield Finding("copies", "note", f"{_plural(len(copies), 'older copy', 'older copies')}")


def _plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
