"""The command ``serve`` in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

from tests import programs


class Served:
    """A server on the same port each time that it is started."""

    def __init__(
        self, folder: Path, upstream: str, *options: str, db: str = "chat.db", setup: str = ""
    ) -> None:
        """Start it; ``setup`` is code that its process runs before the command."""
        self._words = ["serve", "--upstream", upstream, "--provider", "deepseek", *options]
        self._setup = setup
        self._folder = folder
        self._db = db if "://" in db else f"{folder}/{db}"
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        ready, ours = os.pipe()
        code = self._setup + (
            "import sys; from reasoning_store.cli import main;"
            f"sys.stdout = open({ours}, 'w'); main()"
        )
        words = [*self._words, "--port", str(self.port), "--db", self._db, "--json"]
        self.process = programs.start(
            [sys.executable, "-c", code, *words],
            cwd=self._folder,
            env={**os.environ, "REASONING_STORE_CONFIG": ""},
            pass_fds=[ours],
        )
        os.close(ours)
        with open(ready) as output:
            text = ""
            for line in output:
                text += line
                if line == "}\n":
                    break
        self.address = json.loads(text)["data"]["url"]
        self.port = int(self.address.rpartition(":")[2])

    def end(self, number: int) -> int:
        """Send it a signal, and return the status that it ended with."""
        os.kill(self.process.pid, number)
        return self.process.wait(60)

    def memory(self, field: str) -> int:
        """Return the bytes of memory that a field of its status names."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        found = next(line for line in lines if line.startswith(f"{field}:"))
        return int(found.split()[1]) * 1024

    def wait_until_closed(self) -> None:
        """Wait until it takes no more connections."""
        try:
            while True:
                socket.create_connection(("127.0.0.1", self.port), 60).close()
        except ConnectionError:
            return
