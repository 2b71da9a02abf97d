"""Python programs that tests start: each a process of its own, with its own folder and variables.

In `make test` a program is forked from a process that has imported what it imports: most of
what a short program costs is imports. In `make test-long` it is started by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import io
import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from reasoning_store.tokens import counter

_ALWAYS = (
    "sqlalchemy.dialects.sqlite sqlalchemy.dialects.postgresql.psycopg alembic.command tiktoken "
    "pydantic rich.console"
)
_EXTRAS = ("__main__", "_migrations", "integrations", "server")
"""What few programs import of the package; all the rest is imported once."""
_IMPORTS = re.compile(r"^\s*(?:from|import) ([\w.]+)", re.MULTILINE)
_NOT_OURS = 100
"""File descriptors above are none that a program was given by number."""


def run(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], input: str = "", timeout: int = 120
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end: ``words`` as of ``subprocess.run``, the interpreter first."""
    if _is_thorough():
        return subprocess.run(
            words,
            cwd=cwd,
            env=env,
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as given,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        given.write(input)
        given.seek(0)
        program = Forked(words, cwd=cwd, env=env, streams=(given, out, err))
        code = program.wait(timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def start(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes] | Forked:
    """Start a program whose output is that of the tests."""
    if _is_thorough():
        return subprocess.Popen(words, cwd=cwd, env=env, pass_fds=pass_fds)
    return Forked(words, cwd=cwd, env=env, streams=(sys.__stdin__, 1, 2), pass_fds=pass_fds)


def run_shell(
    text: str, *, cwd: Path, env: Mapping[str, str], timeout: int = 120
) -> subprocess.CompletedProcess[str]:
    """Run commands of a shell; the Python programs among them are forked as others are."""
    passed = [] if _is_thorough() else [_parent().fileno()]
    if passed:
        env = {**env, "PATH": f"{_shims(passed[0])}{os.pathsep}{env['PATH']}"}
    return subprocess.run(
        ["sh", "-ec", text],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        pass_fds=passed,
    )


_SHIM = """#!{python} -IS
import json, os, socket, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
script = "{scripts}/" + name
if name == "python" and words[:1] not in (["-c"], ["-m"]):
    os.execv(script, [script, *words])
ours, theirs = socket.socketpair()
text, into = os.pipe()
request = {{"words": words if name == "python" else [script, *words], "passed": []}}
os.write(into, json.dumps({{**request, "cwd": os.getcwd(), "env": dict(os.environ)}}).encode())
os.close(into)
parent = socket.socket(fileno={parent})
socket.send_fds(parent, [b"!"], [text, theirs.fileno(), 0, 1, 2])
theirs.close()
status = ours.makefile()
status.readline()
code = int(status.readline())
os._exit(code if code >= 0 else 128 - code)
"""


@cache
def _shims(parent: int) -> Path:
    """Return a folder of commands that have the parent fork what they are named after."""
    folder = Path(tempfile.mkdtemp(prefix="shims-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scripts = Path(sys.executable).parent
    for name in ("python", "reasoning-store", "alembic"):
        shim = folder / name
        shim.write_text(_SHIM.format(python=sys.executable, scripts=scripts, parent=parent))
        shim.chmod(0o755)
    return folder


class Forked:
    """A running program, as ``subprocess.Popen`` has it."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        streams: Sequence[Any],
        pass_fds: Sequence[int] = (),
    ) -> None:
        assert words[0] == sys.executable
        status, theirs = socket.socketpair()
        request = {"words": words[1:], "cwd": str(cwd), "env": dict(env), "passed": list(pass_fds)}
        with tempfile.TemporaryFile("w+", encoding="utf-8") as text, theirs:
            json.dump(request, text)
            text.seek(0)
            given = [text.fileno(), theirs.fileno(), *map(_number, streams), *pass_fds]
            socket.send_fds(_parent(), [b"!"], given)
            self._status = status.makefile("r")
            status.close()
            self.pid = int(self._status.readline())

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        """Return the exit code, negative for a signal."""
        del timeout  # faulthandler ends a run that hangs
        with self._status:
            return int(self._status.readline())


def _is_thorough() -> bool:
    from tests.properties import is_thorough

    return is_thorough()


def _number(stream: Any) -> int:
    return stream if isinstance(stream, int) else int(stream.fileno())


@cache
def _parent() -> socket.socket:
    """Start the process that programs are forked from; it ends when this one does."""
    ours, theirs = socket.socketpair()
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.programs", str(theirs.fileno())],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        parent.wait()

    atexit.register(end)
    return ours


# In the process that programs are forked from


def _import(names: Sequence[str]) -> None:
    for name in names:
        # A program that imports what there is not says so itself.
        with contextlib.suppress(ImportError):
            import_module(name)


def _package() -> list[str]:
    """Return the modules of the package, also those that are imported when they are used."""
    package = Path(__file__).parent.parent / "reasoning_store"
    paths = [path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py")]
    return [
        ".".join(p.parts).removesuffix(".__init__")
        for p in sorted(paths)
        if not set(p.parts) & {*_EXTRAS}
    ]


def _imported(request: Mapping[str, Any]) -> list[str]:
    """Return what a program says that it imports, or its script, or what is where it runs."""
    words = request["words"]
    files = [*Path(request["cwd"]).glob("*.py"), *(Path(w) for w in words if w.endswith(".py"))]
    texts = [*words, *(path.read_text("utf-8") for path in files)]
    modules = [word for option, word in pairwise(words) if option == "-m"]
    return [*modules, *(name for text in texts for name in _IMPORTS.findall(text))]


def _serve(requests: socket.socket) -> None:
    _import([*_ALWAYS.split(), *_package()])
    counter("o200k_base").count("What most programs count with is loaded once.")
    while True:
        _, received, _, _ = socket.recv_fds(requests, 1, 32)
        if not received:
            return
        given, status, *streams = (
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _NOT_OURS) for fd in received
        )
        for fd in received:
            os.close(fd)
        with open(given, encoding="utf-8") as text:
            request = json.load(text)
        _import(_imported(request))
        gc.freeze()  # what is imported is no one's to collect: a copy of its pages costs a second
        if os.fork() == 0:
            requests.close()
            _keep(request, status, streams)
        for fd in (status, *streams):
            os.close(fd)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(request: dict[str, Any], status: int, streams: Sequence[int]) -> None:
    """Fork the program, and say its number and how it ended."""
    pid = os.fork()
    if pid == 0:
        os.close(status)
        _become(request, streams)
    os.write(status, f"{pid}\n".encode())
    for fd in streams:
        os.close(fd)
    _, ended = os.waitpid(pid, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


def _become(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the program, to the end of the interpreter."""
    for fd, number in zip(streams, [0, 1, 2, *request["passed"]], strict=True):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    words = list(request["words"])
    warnings.resetwarnings()
    if words[0] == "-W":
        warnings.simplefilter(words[1])
        del words[:2]
    elif "PYTHONWARNINGS" in os.environ:
        warnings.simplefilter(os.environ["PYTHONWARNINGS"])  # type: ignore[arg-type]
    time.tzset()
    # Made anew: a pipe is not what the parent's are.
    encoding = os.environ.get("PYTHONIOENCODING")
    is_direct = "PYTHONUNBUFFERED" in os.environ
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding)
    for name, fd, errors in (("stdout", 1, "strict"), ("stderr", 2, "backslashreplace")):
        raw = io.BufferedWriter(io.FileIO(fd, "w", closefd=False))
        stream = io.TextIOWrapper(
            raw, encoding, errors, line_buffering=fd == 2, write_through=is_direct
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    try:
        if words[0] == "-c":
            sys.argv, sys.path[0] = ["-c", *words[2:]], ""
            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(words[1], "<string>", "exec"), vars(main))
        elif words[0] == "-m":
            sys.argv, sys.path[0] = words[1:], request["cwd"]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = words, str(Path(words[0]).parent)
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit:
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
