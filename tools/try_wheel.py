"""Build the wheel, install it alone in new environments, and use it away from the checkout.

What works here works for somebody who has only the package: the migrations and the
vocabularies ride inside, and nothing is taken from the checkout. It is used once with the
newest packages that it takes, and once with the oldest, where this Python is no younger than
they are: ``>=`` in pyproject.toml is a promise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

USE = """
import reasoning_store as rs
with rs.Store("sqlite:///chat.db") as store:
    session = store.session("first", create=True)
    session.append(rs.user("hello"))
    assert session.usage().exactness == "exact", session.usage()
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--outdir",
            str(place / "dist"),
            ".",
            at=CHECKOUT,
        )
        (wheel,) = (place / "dist").glob("*.whl")
        (place / "oldest.txt").write_text("\n".join(oldest()), "utf-8")
        use(wheel, place / "newest")
        print(f"{wheel.name} works alone")
        # Packages of that age have no wheels for a Python that came after them.
        if sys.version_info < (3, 14):
            use(wheel, place / "oldest", "--constraint", str(place / "oldest.txt"))
            print(f"{wheel.name} works with {', '.join(oldest())}")
    return 0


def oldest() -> list[str]:
    """Return the oldest version of each package that the wheel says it works with."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    found = [re.match(r"([\w-]+)>=([\d.]+)", wanted) for wanted in project["dependencies"]]
    return [f"{one[1]}=={one[2]}" for one in found if one is not None]


def use(wheel: Path, place: Path, *how: str) -> None:
    """Install the wheel in an environment of its own, and use it there."""
    venv.create(place / "env", with_pip=True)
    python = place / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", *how, str(wheel), at=place)
    run(python, "-m", "reasoning_store", "demo", at=place)
    run(python, "-c", USE, at=place)
    run(python, "-m", "reasoning_store", "--db", "sqlite:///chat.db", "current", at=place)


def run(*command: str | Path, at: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_"))}
    subprocess.run([str(part) for part in command], cwd=at, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
