"""The commands `serve` and `ui`: the gateway, the Conversations API and the inspector."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from reasoning_store import InvalidCall, MissingExtra
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.completion import complete_provider, complete_session
from reasoning_store.cli.options import OWNER
from reasoning_store.cli.output import print_answer, print_note

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from reasoning_store.server.options import ServerOptions

Function = TypeVar("Function", bound=Callable[..., Any])

_TOKEN = "REASONING_STORE_TOKEN"
_SHARED = (
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to bind."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8765,
        show_default=True,
        help="The port; 0 takes a free one.",
    ),
    OWNER,
    click.option(
        "--token-file",
        type=click.File("r", encoding="utf-8"),
        help="A file with a token and its owner on each line.  [env: REASONING_STORE_TOKEN, one]",
    ),
    click.option(
        "--allow-host",
        multiple=True,
        metavar="NAME",
        help="A name by which clients call the server.",
    ),
    click.option("--check", is_flag=True, help="Check the options and the database, and end."),
)


def _takes_shared(command: Function) -> Function:
    for option in reversed(_SHARED):
        command = option(command)
    return command


@click.command(
    "serve",
    cls=Command,
    examples=("serve --upstream https://api.deepseek.com --check",),
    answers="url upstream provider mode tokens",
)
@click.option("--upstream", metavar="URL", help="The provider's base URL, as its SDK takes it.")
@click.option("--provider", shell_complete=complete_provider, help="The provider of the URL.")
@click.option(
    "--upstream-key",
    metavar="VARIABLE",
    help="The environment variable that has the provider's key; without it, the client's key is"
    " passed on.",
)
@click.option(
    "--mode",
    type=click.Choice(["mirror", "clean", "render"]),
    default="mirror",
    show_default=True,
    help="The form of the replies: the provider's bytes; inline tags in the reasoning field;"
    " thinking in the text.",
)
@click.option(
    "--on-store-error",
    type=click.Choice(["pass", "fail"]),
    default="pass",
    show_default=True,
    help="If the store fails: pass the request on, or refuse it.",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="URL",
    help="An origin whose scripts may call the server.",
)
@click.option(
    "--largest-body",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="MB",
    help="The size of a request, at most.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the provider may send nothing.",
)
@click.option(
    "--drain",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Seconds that running replies have after SIGTERM; then they are stored as interrupted.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many processes serve; each uses the same database.",
)
@_takes_shared
@click.pass_obj
def serve(
    call: Call,
    /,
    upstream_key: str | None,
    allow_origin: tuple[str, ...],
    largest_body: int,
    timeout: float,
    check: bool,
    workers: int,
    **given: Any,
) -> None:
    """Serve clients: a gateway to a provider, the Conversations API, and the inspector.

    Give clients the printed address as base URL. Their requests then contain the lost thinking.
    A client's key is passed on, and never stored.
    """
    from reasoning_store.server.limits import Limits

    options = _options(
        upstream_key=_read_variable(upstream_key),
        origins=frozenset(origin.rstrip("/") for origin in allow_origin),
        limits=Limits(body_bytes=largest_body * 1024 * 1024, provider_seconds=timeout),
        **given,
    )
    _serve(call, options, check=check, workers=workers)


@click.command("ui", cls=Command, examples=("ui chat-42 --check",), answers="url")
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=complete_session)
@_takes_shared
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.pass_obj
def ui(call: Call, /, session_id: str | None, check: bool, no_browser: bool, **given: Any) -> None:
    """Open the inspector: conversations, their thoughts, and the next request before it is sent."""
    options = _options(**given)
    path = "/"
    if session_id is not None:
        from reasoning_store.server.inspector.session_list import session_address

        with store_access.Where(session_id, options.owner).open(call) as session:
            path = session_address(session.id)
    _serve(call, options, check=check, path=path, opens=not no_browser)


def _options(
    *,
    token_file: IO[str] | None,
    allow_host: tuple[str, ...],
    **given: Any,
) -> ServerOptions:
    from reasoning_store.server.options import ServerOptions, read_tokens

    lines = [] if token_file is None else token_file.read().splitlines()
    tokens = read_tokens(lines, getattr(token_file, "name", ""))
    if one := os.environ.get(_TOKEN):
        tokens |= read_tokens([f"{one} {given['owner']}"], _TOKEN)
    if token_file is not None and not tokens:
        raise InvalidCall(f"{token_file.name}: no token", hint="each line is: TOKEN OWNER")
    hosts = frozenset(name.lower() for name in allow_host)
    return ServerOptions(tokens=tokens, hosts=hosts, **given)


def _read_variable(name: str | None) -> str | None:
    if name is None:
        return None
    if value := os.environ.get(name):
        return value
    raise InvalidCall("--upstream-key: the variable that it names is not set", hint="export it")


def _serve(
    call: Call,
    options: ServerOptions,
    *,
    check: bool,
    workers: int = 1,
    path: str = "",
    opens: bool = False,
) -> None:
    try:
        from reasoning_store.server.app import make_app
        from reasoning_store.server.journal import log_to_stderr
        from reasoning_store.server.listening import listen
    except ImportError as error:
        raise MissingExtra(f"{error.name} is not installed", extra="server") from None
    call.if_interrupted = "replies under way are stored as interrupted"

    def report(address: str) -> None:
        _print_address(call, options, address + path)
        if opens and not call.json:
            import webbrowser

            webbrowser.open(address + path)

    @contextmanager
    def open_app() -> Iterator[Starlette]:
        with store_access.open_or_create(call, dry_run=check) as store:
            yield make_app(store, options)

    if workers > 1:
        if store_access.is_in_memory(call):
            raise InvalidCall(
                "--workers: a database in memory belongs to one process", hint="--db chat.db"
            )
        with store_access.open_or_create(call, dry_run=check):
            pass  # it is made and upgraded once
    if check:
        with open_app():
            report(f"http://{options.host}:{options.port}")
        return
    if call.command == "serve":
        log_to_stderr()
    listen(open_app, options, workers=workers, on_ready=report)


def _print_address(call: Call, options: ServerOptions, url: str) -> None:
    from reasoning_store.results import Contracts

    known, upstream = Contracts.default(), options.upstream
    named = known.provider_id(options.provider, upstream)
    provider = named if named in known.providers else None
    answer: dict[str, Any] = {"url": url}
    if call.command == "serve":
        answer |= {"upstream": upstream, "provider": provider}
        answer |= {"mode": options.mode, "tokens": len(options.tokens)}
    print_answer(call, answer, lambda page: page.line(url))
    sys.stdout.flush()  # a program waits for it, and this one goes on
    if upstream is not None:
        others = f"Anthropic's and Google's {url}"
        print_note(f"give OpenAI clients {url}/v1 as their base URL, {others}")
        print_note(_UNKNOWN if provider is None else f"the upstream is {provider}")


_UNKNOWN = (
    "nothing is known of the upstream, so only a model's name tells which thoughts it demands; "
    "name it with --provider"
)
