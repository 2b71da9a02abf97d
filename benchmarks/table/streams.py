"""What is read while a model speaks: inline tags taken out, chunks of a stream."""

from __future__ import annotations

from benchmarks import chat_stream, following, tags
from benchmarks.rivals import streams
from benchmarks.table import who
from benchmarks.workload import CLASS, Bound, Contender, Workload

KIB = 1024


def _tags(length: int) -> tuple[Contender, ...]:
    return (
        who.ours(tags.driven(tags.ours, length)),
        who.floor(tags.driven(tags.floor, length)),
        who.other("ours, tags cut anywhere", tags.driven(tags.ours, length, whole_tags=False)),
        *who.if_installed(
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
            who.ours(chat_stream.driven(chat_stream.ours, kind)),
            who.floor(chat_stream.driven(chat_stream.floor, kind, plain=True)),
            who.other("ours, plain dicts", chat_stream.driven(chat_stream.ours, kind, plain=True)),
            *who.if_installed(
                "litellm",
                streams.LITELLM,
                lambda: chat_stream.driven(streams.litellm, kind),
                only_at=2_000,
            ),
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
        contenders=(who.ours(tags.on_hostile),),
        smoke=(200,),
        rounds=(3, 9),
    ),
    _stream("text"),
    _stream("reasoning"),
    _stream("tagged"),
    Workload(
        name="follow",
        title="a chunk on its way to a follower in another process, p99",
        of="chunks",
        promise="a follower in another process",
        sizes=(300,),
        storage="disk",
        rounds=(3, 5),
        bounds=(Bound(0.2, CLASS),),
        contenders=(who.ours(following.delayed()),),
    ),
)
