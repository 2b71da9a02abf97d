"""Build the wheel, install it alone in a new environment, and use it away from the checkout.

What works here works for somebody who has only the package: the migrations and the
vocabularies ride inside, and nothing is taken from the checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
        venv.create(place / "env", with_pip=True)
        python = place / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        run(python, "-m", "pip", "install", "--quiet", str(wheel), at=place)
        run(python, "-m", "reasoning_store", "demo", at=place)
        run(python, "-c", USE, at=place)
        run(python, "-m", "reasoning_store", "--db", "sqlite:///chat.db", "current", at=place)
    print(f"{wheel.name} works alone")
    return 0


def run(*command: str | Path, at: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_"))}
    subprocess.run([str(part) for part in command], cwd=at, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
