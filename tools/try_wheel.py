"""Build the wheel, install it alone in new environments, and use it away from the checkout.

What works here works for someone who has only the package: the migrations and the
vocabularies ride inside, and nothing is taken from the checkout. It is used once with the
newest packages that it takes, and once with the oldest, on a server too, where this Python is
no younger than they are: ``>=`` in pyproject.toml is a promise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, create_engine, text

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from tests.servers import server  # noqa: E402

USE = """
import sys
import reasoning_store as rs
with rs.Store(sys.argv[1]) as store:
    session = store.session("first", create=True)
    session.append(rs.user("hello"), idempotency_key="1")
    said = {"index": 0, "delta": {"reasoning_content": "Hm.", "content": "Hi."}}
    chunks = [{"choices": [said]}]
    with session.record(chunks, provider="deepseek", model="deepseek-flash") as reply:
        list(reply)
    assert [one.message.text for one in session.history()] == ["hello", "Hi."]
    assert session.usage().exactness == "approximate", session.usage()
    assert store.verify().ok
"""
"""One turn, in the database that is named."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        dist = place / "dist"
        run(sys.executable, "-m", "build", "--wheel", "--outdir", dist, ".", at=CHECKOUT)
        (wheel,) = dist.glob("*.whl")
        newest = installed(place / "newest", str(wheel))
        run(newest, "-m", "reasoning_store", "demo", "--folder", "new", at=place)
        use(newest, "sqlite:///newest.db", at=place)
        print(f"{wheel.name} works alone")
        # Packages of that age have no wheels for a Python that came after them.
        if sys.version_info < (3, 14):
            (place / "oldest.txt").write_text("\n".join(oldest()), "utf-8")
            old = installed(
                place / "oldest", f"{wheel}[postgres]", "--constraint", str(place / "oldest.txt")
            )
            run(old, "-m", "reasoning_store", "demo", "--folder", "old", at=place)
            use(old, "sqlite:///oldest.db", at=place)
            with database() as url:
                use(old, url.render_as_string(hide_password=False), at=place)
            print(f"{wheel.name} works with {', '.join(oldest())}")
    return 0


def oldest() -> list[str]:
    """Return the oldest version of each package that the wheel says it works with."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["postgres"]]
    found = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", one) for one in wanted]
    return [f"{one[1]}=={one[2]}" for one in found if one is not None]


def installed(place: Path, *what: str) -> Path:
    """Install the wheel in an environment of its own, and return its Python."""
    venv.create(place, with_pip=True)
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", *what, at=place)
    return python


@contextmanager
def database() -> Iterator[URL]:
    """Give an empty database on a server, as the tests find one."""
    name = f"rs_wheel_{os.getpid()}"
    with server() as url, create_engine(url, isolation_level="AUTOCOMMIT").connect() as admin:
        admin.execute(text(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"))
        try:
            yield url.set(database=name)
        finally:
            admin.execute(text(f"DROP DATABASE {name}"))


def use(python: Path, url: str, *, at: Path) -> None:
    """Use the package that a Python has, on a database that nothing is in."""
    run(python, "-m", "reasoning_store", "--db", url, "db", "create", at=at)
    run(python, "-c", USE, url, at=at)
    run(python, "-m", "reasoning_store", "--db", url, "db", "current", at=at)


def run(*command: str | Path, at: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_"))}
    subprocess.run([str(part) for part in command], cwd=at, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
