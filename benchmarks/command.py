"""The command: which workloads, how long, what is written, and how it ends.

It ends with 1 when a promise was missed or could not be judged, so that "all green" can be
asked of a shell; a smoke run judges nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, create_engine

from benchmarks import machine, page, picture, report, results
from benchmarks.results import Row
from benchmarks.running import Database, Storage, run
from benchmarks.table import WORKLOADS
from benchmarks.workload import Workload
from tests.servers import server

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LATEST = RESULTS / "latest.json"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    chosen = [one for one in WORKLOADS if _asked_for(one.name, asked.only)]
    if not chosen:
        print("there is no such workload; there are:", file=sys.stderr)
        print("\n".join(one.name for one in WORKLOADS), file=sys.stderr)
        return 2
    if asked.list:
        print("\n".join(f"{one.name:24}{one.title}" for one in chosen))
        return 0
    if asked.redraw:
        _show(results.read(LATEST))
        return 0
    rows: list[Row] = []
    for row, about in _measured(chosen, smoke=asked.smoke, seconds=asked.seconds):
        rows.append(row)
        print(_progress(row), file=sys.stderr, flush=True)
        if asked.write and not asked.smoke:
            _write(row, about)
    if asked.smoke:
        print(f"{len(rows)} of {len(chosen)} workloads work")
        return int(len(rows) < len(chosen))
    print(report.terminal(report.lines(rows)))
    print("\n" + report.summary(rows))
    return int(any(one not in ("green", "floor") for row in rows for one in results.verdicts(row)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a workload, or how some begin"
    )
    parser.add_argument("--list", action="store_true", help="say which workloads there are")
    parser.add_argument(
        "--smoke", action="store_true", help="tiny sizes, once: shows that everything works"
    )
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="about what one size of one may take"
    )
    parser.add_argument(
        "--write", action="store_true", help="write the results, the picture and the pages"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="measure nothing; the picture and pages again"
    )
    return parser


def _asked_for(name: str, only: Sequence[str]) -> bool:
    return not only or any(name.startswith(one) for one in only)


def _measured(
    chosen: Sequence[Workload], *, smoke: bool, seconds: float
) -> Iterator[tuple[Row, dict[str, object]]]:
    """Give each row when it is measured, and the machine."""
    # The rivals tell of many things that are on their way out.
    warnings.simplefilter("ignore")
    with ExitStack() as stack:
        memory = machine.memory_folder()
        disk = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=".bench-", dir=HERE.parent))
        )
        templates = stack.enter_context(tempfile.TemporaryDirectory(dir=memory))
        # A run that judges nothing need not wait for a disk.
        durable = memory if smoke and memory else disk
        storage = Storage(memory or disk, durable, Path(templates))
        database: Database | None = None
        postgres: str | None = None
        if any(one.server for one in chosen):
            database, postgres = _found(stack, durable=not smoke)
        about = machine.described(memory_backed=memory is not None, postgres=postgres)
        for workload in chosen:
            if workload.server and database is None:
                print(f"{workload.name}: not measured, there is no PostgreSQL server here")
                continue
            measured = run(workload, storage, database=database, seconds=seconds, smoke=smoke)
            yield results.judged(workload, measured), about


def _found(stack: ExitStack, *, durable: bool) -> tuple[Database | None, str | None]:
    """Return what makes databases, and the server's version; nothing where there is none."""
    try:
        url = stack.enter_context(server(durable=durable))
    except ImportError:
        return None, None
    return stack.enter_context(_databases(url))


@contextmanager
def _databases(server: URL) -> Iterator[tuple[Database, str]]:
    """Make databases on a server, and drop them in the end."""
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    made: list[str] = []

    def create() -> str:
        name = f"rs_bench_{len(made)}"
        with admin.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE template0")
        made.append(name)
        return server.set(database=name).render_as_string(hide_password=False)

    with admin.connect() as connection:
        version = connection.exec_driver_sql("SHOW server_version").scalar_one()
    try:
        yield create, str(version).split()[0]
    finally:
        with admin.connect() as connection:
            for name in made:
                connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        admin.dispose()


def _progress(row: Row) -> str:
    told = [f"{line.ratio} x {line.against}" for line in report.lines([row]) if line.ratio != "-"]
    return f"{row['name']}: {'; '.join(told)}"


def _write(row: Row, about: dict[str, object]) -> None:
    RESULTS.mkdir(exist_ok=True)
    order = [one.name for one in WORKLOADS]
    found = results.merged(LATEST, about, [row])
    found["rows"] = sorted(
        (row for row in found["rows"] if row["name"] in order),
        key=lambda row: order.index(row["name"]),
    )
    LATEST.write_text(results.as_text(found), "utf-8")
    _show(found)


def _show(found: Mapping[str, Any]) -> None:
    """Draw the picture and fill the pages."""
    (RESULTS / "ratios.svg").write_text(picture.drawn(found["rows"]), "utf-8")
    page.update(HERE.parent, found)
