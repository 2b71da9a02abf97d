"""What is no part of a chat: an import, whole processes, bytes on disk, counting alone."""

from __future__ import annotations

from benchmarks import bulk, floors, histories, ours, process, rivals
from benchmarks.rivals import streams
from benchmarks.table import who
from benchmarks.workload import CLASS, Bound, Workload

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="import",
        title="an import, a megabyte of lines",
        of="MB",
        sizes=(1, 10, 100),
        each=True,
        growth="linear",
        rounds=(1, 3),
        contenders=(who.ours(bulk.imported), who.floor(bulk.bare_import)),
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
            who.ours(process.resident("ours", histories.filled)),
            who.floor(process.resident("floor", histories.filled)),
            *rivals.contenders(rivals.held),
        ),
    ),
    Workload(
        name="start-import",
        title="import of the package",
        of="processes",
        sizes=(1,),
        contenders=(
            who.ours(process.importing("reasoning_store")),
            who.floor(process.importing()),
        ),
        smoke=(1,),
    ),
    Workload(
        name="start-store",
        title="import of what stores",
        of="processes",
        sizes=(1,),
        contenders=(
            who.ours(process.importing("reasoning_store.store")),
            who.floor(process.importing("sqlite3")),
            *who.if_installed("agents", "OpenAI Agents", lambda: process.importing("agents")),
            *who.if_installed(
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
        promise="`--version`",
        sizes=(1,),
        bounds=(Bound(0.050, CLASS),),
        contenders=(
            who.ours(process.started("-m", "reasoning_store", "--version")),
            who.floor(process.importing()),
        ),
        smoke=(1,),
    ),
    *(
        Workload(
            name=f"start-{command.split()[0]}",
            title=f"`reasoning-store {command}`",
            of="messages",
            promise="a command that reads",
            sizes=(100,),
            bounds=(Bound(0.200, CLASS),),
            contenders=(
                who.ours(process.reading(command, session=command != "sessions")),
                who.floor(process.importing("sqlalchemy", "click")),
            ),
        )
        for command in ("request --tokens", "show", "sessions")
    ),
    Workload(
        name="bytes",
        title="bytes on disk, a message",
        of="messages",
        sizes=(10_000,),
        unit="bytes",
        rounds=(1, 1),
        contenders=(
            who.ours(ours.bytes_on_disk),
            who.floor(floors.bytes_of_text),
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
            who.ours(ours.tokens),
            who.floor(floors.tokens),
            *who.if_installed("litellm", streams.LITELLM, lambda: streams.counting),
        ),
        smoke=(1_000,),
    ),
)
