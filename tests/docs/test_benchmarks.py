"""The benchmarks measure what they say, and judge it as the documentation says."""

from __future__ import annotations

import dataclasses
import platform
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, func, select, table

import reasoning_store as rs
from benchmarks import (
    bare,
    bulk,
    command,
    figures,
    histories,
    machine,
    ours,
    page,
    picture,
    process,
    report,
    results,
    rivals,
    sentences,
)
from benchmarks.conversation import SESSION, messages, signed, turns
from benchmarks.figures import Spread
from benchmarks.running import Storage, run
from benchmarks.table import WORKLOADS
from benchmarks.table.reading import RECOUNTING
from benchmarks.workload import CLASS, FLOOR, OBJECTS, Bound, Contender, Sample, Setting, Workload
from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.ledger.ledger import Ledger
from tests.properties import each

TABLES = {name: table(name) for name in ("messages", "bodies", "thinking_blocks")}


# The arithmetic


def test_a_ratio_is_taken_round_by_round() -> None:
    """A round that was slow for both leaves the ratio alone."""
    assert figures.ratio([1.0, 50.0, 1.0], [2.0, 100.0, 2.0]) == Spread(0.5, 0.5, 0.5, 0.5, 3)


def test_a_ratio_of_sides_that_did_not_take_turns_is_refused() -> None:
    """Figures that belong to no common round are not divided."""
    with pytest.raises(ValueError, match="shorter"):
        figures.ratio([1.0, 1.0], [1.0])


@each(
    "measured, verdict",
    [
        (Spread(1.39, 1.38, 1.41, 1.38, 9), "green"),
        (Spread(1.41, 1.38, 1.42, 1.38, 9), "red"),
        (Spread(1.3, 1.1, 1.6, 1.0, 9), "noisy"),
        (Spread(1.0, 0.8, 1.2, 0.7, 9), "noisy"),
        (Spread(0.5, 0.3, 0.6, 0.3, 9), "green"),
        (Spread(4.0, 3.0, 5.0, 2.9, 9), "red"),
    ],
)
def test_a_bound_is_judged_unless_the_spread_is_wide(measured: Spread, verdict: str) -> None:
    """What is wide tells of the machine, unless all of it is far on one side."""
    assert figures.verdict(measured, 1.4) == verdict


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_an_exponent_is_the_power_of_the_size(power: float) -> None:
    """Whatever the constant, the slope is the power."""
    points = {size: 3e-6 * size**power for size in (10, 100, 1000)}

    assert figures.exponent(points) == pytest.approx(power)
    assert figures.last_exponent(points) == pytest.approx(power)


def test_an_exponent_of_one_size_is_not_known() -> None:
    """There is no slope through one point."""
    assert figures.exponent({10: 1.0}) is None


def quiet(**points: float) -> dict[int, Spread]:
    return {int(size[1:]): figures.spread([value] * 3) for size, value in points.items()}


def test_growth_that_bends_upward_at_its_end_is_seen() -> None:
    """Fixed costs at the small sizes do not hide the last step."""
    bending = quiet(n10=1.0, n100=1.0, n1000=1.0, n10000=40.0)

    assert figures.growth(bending, {}, figures.LINEAR) == "red"


def test_growth_is_of_the_quickest_go() -> None:
    """A machine that was busy at the largest size does not bend a straight line."""
    busy = quiet(n10=1.0, n100=10.0) | {1_000: figures.spread([100.0, 400.0, 900.0])}

    assert figures.growth(busy, {}, figures.LINEAR) == "green"


def test_growth_that_is_missed_by_wide_figures_is_noisy() -> None:
    """What cannot be told is not called a miss."""
    busy = quiet(n10=1.0, n100=10.0) | {1_000: figures.spread([150.0, 600.0, 900.0])}

    assert figures.growth(busy, {}, figures.LINEAR) == "noisy"


def test_growth_may_be_that_of_the_floor() -> None:
    """Where the machine itself bends a straight line, no one could do better."""
    mine = quiet(n1000=1.0, n10000=14.0)

    assert figures.growth(mine, {}, figures.LINEAR) == "red"
    assert figures.growth(mine, quiet(n1000=0.5, n10000=7.0), figures.LINEAR) == "green"


def test_flat_is_flat_whatever_the_floor_does() -> None:
    """A floor that grows is no excuse where nothing may grow."""
    growing = quiet(n10=1.0, n100=10.0)

    assert figures.growth(growing, growing, figures.FLAT) == "red"


def workload(
    *prepared: tuple[str, Any], bounds: tuple[Bound, ...] = (), sizes: tuple[int, ...] = (10, 100)
) -> Workload:
    kinds: dict[str, Any] = {"ours": "ours", "floor": "floor", OBJECTS: "bare"}
    return Workload(
        name="made-up",
        title="a made-up work",
        of="things",
        sizes=sizes,
        contenders=tuple(
            Contender(name, kinds.get(name, "rival"), prepare) for name, prepare in prepared
        ),
        bounds=bounds,
        growth="linear",
        rounds=(4, 4),
    )


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for name in ("memory", "disk", "templates"):
        (tmp_path / name).mkdir()
    return Storage(tmp_path / "memory", tmp_path / "disk", tmp_path / "templates")


def test_contenders_take_turns_and_the_first_go_of_each_is_not_counted(storage: Storage) -> None:
    """Every round has each of them once, each order comes backwards, too, and then turns."""
    order: list[str] = []

    def named(name: str) -> Any:
        @contextmanager
        def prepare(setting: Setting) -> Iterator[Sample]:
            def sample() -> float:
                order.append(name)
                return 1.0

            yield sample

        return prepare

    names = "ours", "floor", "rival"
    work = workload(*((name, named(name)) for name in names), sizes=(10,))
    measured = run(work, storage, database=None, seconds=0)

    forwards, turned = [*names], ["floor", "rival", "ours"]
    assert order == [*names, *forwards, *forwards[::-1], *turned, *turned[::-1]]
    assert {name: len(values) for name, values in measured[10].items()} == dict.fromkeys(names, 4)


def test_a_contender_leaves_no_files(storage: Storage) -> None:
    """What was stored to be measured is gone afterwards."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        (setting.folder / "left").write_text("x")
        yield lambda: 1.0

    run(workload(("ours", prepare)), storage, database=None, seconds=0)

    assert list(storage.memory.iterdir()) == []


# The judging


def measured(**by_name: float) -> dict[int, dict[str, list[float]]]:
    return {
        size: {name: [value * size] * 4 for name, value in by_name.items()} for size in (10, 100)
    }


def made_up(*bounds: Bound, **by_name: float) -> dict[str, Any]:
    names = [(name, None) for name in by_name]
    return results.judged(workload(*names, bounds=bounds), measured(**by_name))


def test_the_best_rival_is_the_one_with_the_smallest_figure() -> None:
    """A promise against the best is not kept by beating the worst."""
    row = made_up(Bound(0.6, "best rival"), ours=1.0, slow=9.0, quick=1.2)

    assert row["ratios"][0]["against"] == "quick"
    assert row["ratios"][0]["verdict"] == "red"


@pytest.mark.parametrize(
    ("ours", "floor", "verdict"),
    [
        pytest.param(0.5, 0.4, "green", id="met"),
        pytest.param(0.8, 0.7, "floor", id="near the floor, which misses it"),
        pytest.param(0.8, 0.55, "red", id="the floor meets it"),
        pytest.param(2.0, 0.7, "red", id="far from the floor"),
    ],
)
def test_a_miss_is_the_floors_where_the_bare_driver_misses_it_too(
    ours: float, floor: float, verdict: str
) -> None:
    """And where ours is as near to the floor as is promised, not otherwise."""
    bounds = (Bound(1.4, FLOOR), Bound(0.6, "best rival"))
    row = made_up(*bounds, ours=ours, floor=floor, quick=1.0)

    assert row["ratios"][1]["verdict"] == verdict
    assert ("the floor 0.70" in report.terminal(report.lines([row]))) == (verdict == "floor")


@pytest.mark.parametrize(("ours", "verdict"), [(1.7, "floor"), (2.5, "red")])
def test_a_miss_of_the_floor_is_excused_where_its_objects_miss_it_too(
    ours: float, verdict: str
) -> None:
    """And where ours is as near to them as is promised."""
    bounds = (Bound(1.2, OBJECTS), Bound(1.5, FLOOR))
    row = made_up(*bounds, ours=ours, floor=1.0, **{OBJECTS: 1.6})

    assert row["ratios"][1]["verdict"] == verdict


def test_a_floor_that_is_too_wide_to_judge_excuses_no_miss() -> None:
    """What is missed stays missed where the bare driver cannot be told to miss it."""
    sure, unsure = Spread(0.7, 0.69, 0.71, 0.6, 9), Spread(0.7, 0.5, 0.9, 0.4, 9)

    assert figures.beside_the_floor("red", sure, 0.6, "green") == "floor"
    assert figures.beside_the_floor("red", unsure, 0.6, "green") == "red"


def test_a_promise_against_an_absent_contender_is_not_measured() -> None:
    """Without the rivals no row is green by accident."""
    row = made_up(Bound(0.6, "best rival"), Bound(0.5, "somebody"), ours=1.0, floor=1.0)

    assert [one["verdict"] for one in row["ratios"][:2]] == ["unmeasured", "unmeasured"]


def test_a_wide_ratio_without_a_promise_is_marked_and_counts_for_nothing() -> None:
    """Who reads it is warned; nothing was promised, so nothing is missed or left open."""
    by_name = {"ours": [1.0, 1.0, 4.0, 4.0], "quiet": [1.0, 1.0, 4.0, 4.0], "wide": [1.0] * 4}
    row = results.judged(workload(*((name, None) for name in by_name)), {10: by_name})
    told = {line.against: line.verdict for line in report.lines([row])}
    found = {"machine": machine.described(memory_backed=True, postgres=None), "rows": [row]}

    assert told == {"quiet": "", "wide": "noisy"}
    assert results.verdicts(row) == []
    assert "### Missed promises" not in page.written(found)


def test_a_class_of_time_is_met_up_to_half_as_much_again() -> None:
    """The one kind of promise that is not a ratio has room for another machine."""
    assert made_up(Bound(90.0, CLASS), ours=1.0)["ratios"][0]["verdict"] == "green"
    assert made_up(Bound(60.0, CLASS), ours=1.0)["ratios"][0]["verdict"] == "red"


def test_a_missed_figure_is_red_in_the_table_and_on_the_page(tmp_path: Path) -> None:
    """No one has to look for what is missed."""
    row = made_up(Bound(1.4, FLOOR), ours=3.0, floor=1.0)
    found = {"machine": {**machine.described(memory_backed=True, postgres=None)}, "rows": [row]}

    assert "MISSED" in report.terminal(report.lines([row]))
    assert "### Missed promises" in page.written(found)


def test_a_run_of_some_workloads_replaces_only_their_rows(tmp_path: Path) -> None:
    """The rest of the results stand as they were measured."""
    path = tmp_path / "latest.json"
    old, new = made_up(ours=1.0), made_up(ours=2.0)
    path.write_text(
        results.as_text({"version": 1, "machine": {}, "rows": [old, {**old, "name": "other"}]})
    )
    rows = {row["name"]: row for row in results.merged(path, {}, [new])["rows"]}

    assert rows["made-up"] == new
    assert rows["other"] == {**old, "name": "other"}


def test_a_page_keeps_the_text_around_the_results() -> None:
    """Only the marked part is written anew, and a second time gives the same."""
    once = page.filled(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n", "new")

    assert once == f"before\n{page.BEGIN}\nnew\n{page.END}\nafter\n"
    assert page.filled(once, "new") == once


def test_a_page_without_a_place_for_the_results_is_refused() -> None:
    """Nothing is written over a page that has lost its marks."""
    with pytest.raises(ValueError, match="no place"):
        page.filled(f"before\n{page.BEGIN}\nafter\n", "new")


def test_what_is_shown_is_what_was_measured_last() -> None:
    """README, page and picture say what the results say; ``--redraw`` makes them."""
    found = results.read(command.LATEST)
    texts = {name: (process.CHECKOUT / name).read_text("utf-8") for name in page.told(found)}

    assert sorted(texts) == ["README.md", "docs/benchmarks.md"]
    assert {
        name: page.filled(texts[name], text) for name, text in page.told(found).items()
    } == texts
    assert (command.RESULTS / "ratios.svg").read_text("utf-8") == picture.drawn(found["rows"])


# The sentences


NEAREST, *STORES = (one.name for one in rivals.STORES)
OTHERS = (RECOUNTING, *(rivals.without_json(one.name) for one in rivals.STORES))


def row_of(name: str, **by_name: float) -> dict[str, Any]:
    """Return a workload's row, its contenders and bounds as they are, with these figures."""
    (work,) = [one for one in WORKLOADS if one.name == name]
    kinds: dict[str, Any] = {"ours": "ours", "floor": "floor", **dict.fromkeys(OTHERS, "other")}
    contenders = tuple(
        Contender(other, kinds.get(other, "rival"), work.contenders[0].prepare) for other in by_name
    )
    there = {other: [value] * 4 for other, value in by_name.items()}
    made = dataclasses.replace(work, contenders=contenders)
    return results.judged(made, {size: there for size in work.sizes})


def said(*rows: dict[str, Any]) -> str:
    return " ".join(sentences.written(rows).split())


def test_a_turn_is_compared_with_the_driver_and_with_every_store() -> None:
    """The ratio is given, and no word judges it."""
    turn = row_of("turn", ours=3.0, floor=2.0, **{NEAREST: 1.0, **dict.fromkeys(STORES, 12.0)})

    assert said(turn) == (
        "- A durable turn, its tokens counted, takes 1.50 times as long as the bare driver with"
        " tiktoken. The time of a turn, divided by that of a store that counts no tokens (above 1"
        f" is slower): | store | ratio | |---|---| | {NEAREST} | 3.00 | | {STORES[0]} | 0.25 |"
        f" | {STORES[1]} | 0.25 | | {STORES[2]} | 0.25 |"
    )


def test_a_request_is_compared_with_the_quickest_rival() -> None:
    """With the JSON that only the rival writes, and without."""
    figures = {NEAREST: 5.0, STORES[0]: 4.0}
    without = {rivals.without_json(name): value / 2 for name, value in figures.items()}
    row = row_of("request-kept", ours=1.0, floor=1.0, **figures, **without)

    assert said(row) == (
        "- To build a request of 1 000 messages, with their thinking, takes 0.25 times as long as"
        f" to load the messages from the quickest rival, {STORES[0]}, and to write them as JSON."
        " Compared with the loading alone, it is 0.50 times as long."
    )


def test_the_cost_of_a_count_is_reported_for_all_lengths() -> None:
    """The least and the most, so that it is as true of a cost that grows."""
    row = row_of("usage", ours=50e-6, **{RECOUNTING: 0.4})
    row["sizes"]["10000"]["ours"]["median"] = 2e-3

    assert said(row) == (
        "- To count the next request takes 50 \N{MICRO SIGN}s to 2 ms, at lengths from 10 to"
        " 10 000 messages. To count the text of 1 000 messages again takes 400 ms."
    )


def test_a_ratio_that_is_too_wide_is_not_reported_alone() -> None:
    """A sentence is no place to hide the quartiles of a noisy figure."""
    row = row_of("turn", ours=1.0, floor=1.0, **{NEAREST: 1.0})
    to_floor = next(ratio for ratio in row["ratios"] if ratio["against"] == "floor")
    to_floor |= {"median": 1.2, "low": 0.3, "high": 1.3}

    assert "takes 1.20 (noisy: 0.30 to 1.30) times as long" in said(row)


def test_an_unmeasured_row_is_not_reported() -> None:
    """Without the rivals nothing is stated of them, and nothing breaks."""
    alone = [row_of(name, ours=1.0, floor=1.0) for name in ("turn", "writers", "request-kept")]

    assert said(*alone) == said() == ""
    assert said(row_of("usage", ours=1.0)).endswith("messages.")


def test_the_machine_is_described_without_a_name_or_a_path() -> None:
    """Results can be shown to anyone."""
    told = str(machine.described(memory_backed=True, postgres=None))

    assert platform.python_version() in told
    assert socket.gethostname() not in told
    assert "/" not in told


def test_the_picture_is_svg_for_light_and_for_dark() -> None:
    """It can be put into the README as it is."""
    row = {**made_up(Bound(1.4, FLOOR), ours=1.0, floor=0.8, rival=2.0), "name": "turn"}
    drawn = picture.drawn([row])
    root = ElementTree.fromstring(drawn)

    assert root.tag.endswith("svg")
    assert "prefers-color-scheme: dark" in drawn
    assert "Shorter is better" in "".join(one.text or "" for one in root)
    assert len([one for one in root.iter() if one.tag.endswith("rect")]) == 3


def test_what_grows_is_the_whole_where_a_figure_is_one_of_many() -> None:
    """A delta that costs the same in any text makes a text whose cost is linear."""
    work = dataclasses.replace(workload(("ours", None)), each=True)
    row = results.judged(work, {10: {"ours": [2.0]}, 100: {"ours": [2.0]}})

    assert row["growth"]["exponent"] == pytest.approx(1.0)


# The workloads


def test_every_workload_has_a_name_of_its_own() -> None:
    """Results are kept by name."""
    names = [one.name for one in WORKLOADS]

    assert len(names) == len(set(names))


@each("one", WORKLOADS)
def test_ours_comes_first_and_what_is_promised_can_be_judged(one: Workload) -> None:
    """Each workload has ours once, bounds where a promise is named, a judged size."""
    assert [item.kind for item in one.contenders].count("ours") == 1
    assert one.contenders[0].name == "ours"
    assert bool(one.promise) == bool(one.bounds)
    assert one.judged_at in one.sizes


def test_a_workload_that_is_not_there_is_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error does not measure nothing and end well."""
    assert command.main(["--only", "turm"]) == 2
    assert "postgres-turn" in capsys.readouterr().err


def test_a_smoke_run_works_through_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    """The same code in its smallest form; CI runs all of them."""
    assert command.main(["--smoke", "--only", "load"]) == 0
    assert "2 of 2 workloads work" in capsys.readouterr().out


def test_the_floor_has_the_library_that_ours_has() -> None:
    """A difference between two SQLites is in no figure."""
    assert bare.library() is sqlite_connections.library()


@pytest.mark.parametrize(
    ("module", "not_its_own"),
    [
        ("benchmarks.rivals", {"sqlalchemy", "reasoning_store.store"}),
        ("benchmarks.bare", {"sqlalchemy", "reasoning_store.store", "asyncio", "statistics"}),
    ],
)
def test_what_a_rival_or_the_floor_holds_is_its_own(module: str, not_its_own: set[str]) -> None:
    """The process whose memory is a figure has imported neither what stores ours nor a clock."""
    program = f"import sys, benchmarks.process, {module} as held; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=process.CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert module in ran.stdout.split()
    assert not_its_own.isdisjoint(ran.stdout.split())


# The floor is honest


@pytest.fixture
def conversation(sqlite_path: Path) -> Path:
    """A conversation of 12 messages."""
    histories.fill(f"sqlite:///{sqlite_path}", 12)
    return sqlite_path


def texts(message: rs.Message) -> tuple[str, str, list[str]]:
    return message.role, message.text, [block.thought for block in message.thinking]


def of_floor(rows: list[bare.Row]) -> list[tuple[str, str | None, list[str]]]:
    return [(head[2], said, [thought[4] for thought in mine]) for head, said, _, mine in rows]


def test_the_floor_reads_the_rows_that_ours_reads(conversation: Path) -> None:
    """As many messages, the same texts, the JSON decoded."""
    with rs.Store(f"sqlite:///{conversation}") as store:
        mine = [one.message for one in store.session(SESSION).history()]
    with closing(bare.connect(conversation)) as connection:
        rows = bare.load(connection.execute, 1, 12)

    assert of_floor(rows) == list(map(texts, mine))
    assert [row[2]["usage"][2] for row in rows[1::2]] == [
        message.usage and message.usage.reasoning for message in mine[1::2]
    ]


def test_the_floor_without_thinking_reads_the_rows_that_ours_reads(conversation: Path) -> None:
    """The thinking is left alone by both."""
    with Ledger.open(f"sqlite:///{conversation}") as ledger:
        row = ledger.sessions.get("", SESSION)
        mine = ledger.views.view(row.key, row.current_branch, thinking_from=ours.NO_THINKING)
    with closing(bare.connect(conversation)) as connection:
        rows = bare.load(connection.execute, 1, 12, thinking=False)

    assert of_floor(rows) == [texts(one.message) for one in mine]


@pytest.mark.parametrize("thinking", [True, False])
def test_the_objects_of_the_floor_are_the_messages_of_ours(
    conversation: Path, thinking: bool
) -> None:
    """The same texts and the same counts."""
    with Ledger.open(f"sqlite:///{conversation}") as ledger:
        row = ledger.sessions.get("", SESSION)
        mine = ledger.views.view(
            row.key, row.current_branch, thinking_from=1 if thinking else ours.NO_THINKING
        )
    with closing(bare.connect(conversation)) as connection:
        made = bare.load_objects(connection.execute, 1, 12, thinking=thinking)

    def texts_of(blocks: Iterable[Any]) -> list[str]:
        return [getattr(one, "thought", None) or one.text for one in blocks]

    assert [texts_of(one.message.blocks) for one in made] == [
        texts_of(one.message.blocks) for one in mine
    ]
    assert [one.counts.visible for one in made] == [one.counts.visible for one in mine]


@pytest.mark.parametrize("thinking", [True, False])
def test_the_floor_of_a_request_makes_the_messages_of_the_request(
    conversation: Path, thinking: bool
) -> None:
    """The same list of dicts, key by key."""
    settings = ours.KEPT if thinking else {}
    with rs.Store(f"sqlite:///{conversation}") as store:
        body = store.session(SESSION).build_request(settings=settings).body
    with closing(bare.connect(conversation)) as connection:
        made = bare.rendered(connection.execute, 1, 12, thinking=thinking)

    assert made == body["messages"]


def test_the_floor_of_a_signed_request_makes_the_messages_of_the_request(tmp_path: Path) -> None:
    """Each thought with its own signature, in the form that goes back to who signed it."""
    path = tmp_path / "chat.db"
    histories.fill(f"sqlite:///{path}", 12, signed)
    with rs.Store(f"sqlite:///{path}") as store:
        body = store.session(SESSION).build_request(**ours.SIGNED).body
    with closing(bare.connect(path)) as connection:
        made = bare.rendered_signed(connection.execute, 1, 12)

    assert made == body["messages"]
    assert len({said["content"][0]["signature"] for said in made[1::2]}) == 6


def rows_of(connect: Any) -> dict[str, int]:
    with connect as connection:
        return {
            name: connection.execute(select(func.count()).select_from(of)).scalar_one()
            for name, of in TABLES.items()
        }


def test_the_floor_writes_the_rows_that_ours_writes(conversation: Path) -> None:
    """A turn of the driver's adds what a turn of ours adds, and ours reads it back."""
    engine = create_engine(f"sqlite:///{conversation}", module=sqlite_connections.library())
    before = rows_of(engine.connect())
    with rs.Store(f"sqlite:///{conversation}") as store:
        store.session(SESSION).append(list(messages()[0]))
    between = rows_of(engine.connect())
    turn = turns(2)[0]
    with closing(bare.connect(conversation)) as connection:
        bare.write(connection, turn, bare.tokens(bare.encode(), turn), 1)
    after = rows_of(engine.connect())
    engine.dispose()
    with rs.Store(f"sqlite:///{conversation}") as store:
        session = store.session(SESSION)
        last = session.history(limit=2)
        counted = session.usage(settings=ours.KEPT).raw
        built = session.build_request(settings=ours.KEPT).tokens.raw

    assert {name: after[name] - between[name] for name in TABLES} == {
        name: between[name] - before[name] for name in TABLES
    }
    assert [texts(one.message) for one in last] == list(map(texts, messages()[0]))
    assert counted == built


def test_the_floor_fills_the_columns_that_ours_fills(conversation: Path) -> None:
    """A column that only ours writes would be work, and an index, that the floor is spared."""
    turn = turns(2)[0]
    with rs.Store(f"sqlite:///{conversation}") as store:
        store.session(SESSION).append(list(messages()[0]))
    with closing(bare.connect(conversation)) as connection:
        bare.write(connection, turn, bare.tokens(bare.encode(), turn), 1)
        mine, floors = (
            [
                [value is not None for value in row]
                for row in connection.execute(
                    "SELECT * FROM messages WHERE position BETWEEN ? AND ?", (first, first + 1)
                )
            ]
            for first in (13, 15)
        )

    assert len(mine) == 2
    assert mine == floors


def test_the_floor_on_a_server_writes_and_reads_the_rows_that_ours_does(postgres_url: str) -> None:
    """One statement adds what a turn of ours adds."""
    histories.fill(postgres_url, 12)
    engine = create_engine(postgres_url)
    before = rows_of(engine.connect())
    turn = turns(2)[0]
    plain = postgres_url.replace("postgresql+psycopg", "postgresql")
    with closing(psycopg.connect(plain, autocommit=True)) as connection:
        counts = bare.tokens(bare.encode(), turn)
        connection.execute(bare.POSTGRES_TURN, bare.postgres_turn(turn, counts, 1))
        read = bare.load(
            lambda sql, span: connection.execute(sql, span).fetchall(), 1, 14, mark="%s"
        )
    after = rows_of(engine.connect())
    engine.dispose()
    with rs.Store(postgres_url) as store:
        mine = [one.message for one in store.session(SESSION).history()]

    assert {name: after[name] - before[name] for name in TABLES} == {
        "messages": 2,
        "bodies": 2,
        "thinking_blocks": 1,
    }
    assert of_floor(read) == list(map(texts, mine))


def test_the_floor_of_an_import_writes_what_the_import_writes(tmp_path: Path) -> None:
    """Both end with as many messages of the same texts."""
    (tmp_path / "templates").mkdir()
    setting = Setting(tmp_path, 1, 1, tmp_path / "templates")
    lines = bulk.lines(setting)
    with rs.Store(f"sqlite:///{tmp_path / 'ours.db'}") as store:
        with lines.open(encoding="utf-8") as file:
            store.import_lines(file)
        mine = [one.message for one in store.session(SESSION).history()]
    with rs.Store(f"sqlite:///{tmp_path / 'floor.db'}") as store:
        store.session(SESSION, create=True)
        bulk.write_bare(tmp_path / "floor.db", lines, bare.encode())
        bares = [one.message for one in store.session(SESSION).history()]

    assert len(mine) > 300
    assert list(map(texts, bares)) == list(map(texts, mine))
