"""The commands `explain` and `contracts`: a refusal, and the rules of hosts and models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from reasoning_store import NotFound
from reasoning_store.cli import hints
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.completion import complete_provider
from reasoning_store.cli.options import read_text
from reasoning_store.cli.output import Page, answer_fields, print_answer
from reasoning_store.cli.terminal_text import json_text


@click.command(
    "explain",
    cls=Command,
    examples=(
        "explain 'Missing `reasoning_content` field in the assistant message' --provider deepseek",
    ),
    answers="cause fix settings steps act",
)
@click.argument("text", metavar="TEXT|FILE")
@click.option(
    "--provider", shell_complete=complete_provider, help="The provider that answered, if known."
)
@click.pass_obj
def explain(call: Call, text: str, provider: str | None) -> None:
    """Explain a provider's refusal, without a database: the cause, and what helps.

    Pass the text of the 400, or a file that holds it; - is standard input.
    """
    if text == "-":
        text = read_text(sys.stdin.buffer, "standard input")
    elif len(text) < 256 and Path(text).is_file():
        with open(text, "rb") as file:
            text = read_text(file, text)
    from reasoning_store import explain_refusal

    found = explain_refusal(provider, text)
    if found is None:
        raise NotFound(
            "this refusal is not known", hint="pass the provider's text, with --provider"
        )

    def write_page(page: Page) -> None:
        page.line(found.cause, "bold")
        page.line(found.fix)
        if found.settings:
            page.line(hints.command_line(call, "settings", "set", *found.settings), "green")

    print_answer(call, asdict(found), write_page)


@click.command(
    "contracts",
    cls=Command,
    examples=("contracts deepseek", "contracts claude-sonnet-4-5"),
    answers="* provider api models rules source checked",
)
@click.argument("name", metavar="[MODEL|HOST]", required=False, shell_complete=complete_provider)
@click.pass_obj
def contracts(call: Call, name: str | None) -> None:
    """Print what a host or a model takes and demands, with sources and dates.

    Without a name, print the hosts.
    """
    rows = [*_rows_of(name)]
    if not rows:
        raise NotFound(f"no row is about {name!r}", hint="without a name, the hosts are listed")

    def write_page(page: Page) -> None:
        for row in rows:
            models = f" {', '.join(row['models'])}" if row["models"] else ""
            page.line(f"{row['provider'] or 'any host'} ({row['api'] or 'text'}){models}", "bold")
            for rule, value in row["rules"].items():
                page.line(f"  {rule} = {json_text(value, indent=None)}")
            page.paragraph("  ", f"{row['source']} ({row['checked']})", "dim")

    print_answer(call, rows, write_page)


def _rows_of(name: str | None) -> Iterator[dict[str, Any]]:
    """Yield the hosts, or the rows that hold for a host or a model."""
    from reasoning_store.wire import contract_lookup, contract_tables
    from reasoning_store.wire.contract import RULES, Contract

    tables = contract_lookup.tables_of(None)
    if name is None:
        hosts = {host.id: host for host in tables.hosts.values()}
        yield from (_row(host, id, host.api, (), {}) for id, host in hosts.items())
        return
    host = contract_lookup.find_host(name)
    maker = host or contract_lookup.find_maker(name, tables)
    provider = "" if maker is None else maker.id

    def holds(row: Any) -> bool:
        return host is not None or contract_tables.matches_model(name, row.models)

    own = [row for row in reversed(tables.rows) if row.provider == provider and holds(row)]
    # Of the rows for a model's api, the first holds.
    for row in reversed({(row.api, row.models if host else ()): row for row in own}.values()):
        usual = Contract(api=row.api)
        rules = {
            rule: value
            for rule, part in RULES.items()
            if (value := getattr(getattr(row, part), rule)) != getattr(getattr(usual, part), rule)
        }
        yield _row(row, provider, row.api, row.models, rules)
    of_models = (row for row in tables.models if provider in row.providers and holds(row))
    yield from (_row(row, provider, row.apis, row.models, row.rules) for row in of_models)
    templates = (row for row in tables.templates if host is None and holds(row))
    yield from (_row(row, None, row.apis, row.models, row.rules) for row in templates)


def _row(row: Any, provider: str | None, api: Any, models: Any, rules: Any) -> dict[str, Any]:
    apis = api if isinstance(api, str) else ", ".join(api)
    about = {"provider": provider, "api": apis, "models": models, "rules": dict(rules)}
    return {**about, **answer_fields(row, "source checked")}
