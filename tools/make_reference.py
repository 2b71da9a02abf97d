"""Writes the parts of the documentation that the package itself can say.

    python tools/make_reference.py            write them
    python tools/make_reference.py --check    say which pages are not what they should be

A page has places, ``<!-- made: NAME -->`` up to ``<!-- end -->``; all around them is written
by people. What stands in a place comes from the package: signatures and docstrings from the
code, settings from their model, lines of an export from their dataclasses, the models'
demands from ``contracts.toml``, refusals from ``refusals.toml``, commands from their tree,
the list of pages from ``site_pages.py``, which also gives ``docs/llms.txt``. A test compares
the pages with what would be written.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from command_line_reference import commands, exit_codes
from pydantic.alias_generators import to_camel
from python_reference import attributes, behind, is_error, python, said, type_name
from site_pages import DOCS, list_of_pages, llms_txt
from troubleshooting_reference import refusals

import reasoning_store as rs
from reasoning_store.conversation import errors, settings
from reasoning_store.conversation.blocks import Counts
from reasoning_store.ledger.transfer import lines
from reasoning_store.server.limits import Limits
from reasoning_store.wire import contract_tables
from reasoning_store.wire.contract import Contract, Floor

PLACE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    out = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        for row in out
    )


# Limits


def limits_table() -> str:
    about = attributes(Limits)
    rows = []
    for field in dataclasses.fields(Limits):
        what, _, beyond = said(about[field.name]).partition(" Beyond: ")
        rows.append(
            (
                _amount(field.name, getattr(Limits(), field.name)),
                what.rstrip("."),
                beyond.rstrip("."),
            )
        )
    return table(("limit", "", "beyond"), rows)


def _amount(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{value // 2**20} MB" if value >= 2**20 else f"{value // 2**10} KB"
    return f"{value:g} seconds" if name.endswith("_seconds") else f"{value}"


# Settings


def settings_table() -> str:
    about = attributes(settings.SettingValues)
    variables = {key: variable for variable, key in settings.ENVIRONMENT.items()}
    rows = []
    for name, field in rs.ReasoningSettings.model_fields.items():
        key = settings.KEY_OF[name]
        default = "unset" if field.default is None else _json(field.default)
        meant = said(about.get(name, ""))
        rows.append((f"`{key}`", _values(field.annotation), default, f"`{variables[key]}`", meant))
    return table(("key", "values", "default", "variable", ""), rows)


def _values(annotation: Any) -> str:
    parts = [part for part in _flat(annotation) if part is not NoneType]
    if bool in parts:
        return "`true` `false`"
    if int in parts:
        return "a whole number, 0 or more"
    return " ".join(f"`{part}`" for part in parts)


def _flat(annotation: Any) -> Iterator[Any]:
    inside = get_args(annotation)
    if not inside:
        yield annotation
    for part in inside:
        # What is next to the first of an Annotated is about it, and no value.
        if isinstance(part, str) or inspect.isclass(part) or get_args(part):
            yield from _flat(part)


def _json(value: Any) -> str:
    return f"`{json.dumps(value)}`" if isinstance(value, bool) or value == "" else f"`{value}`"


# Errors


def errors_list() -> str:
    assert errors.__doc__ is not None
    tree = errors.__doc__.split("\n\n")[1].rstrip()
    out = [f"```text\n{textwrap.dedent(tree)}\n```"]
    for name in rs.__all__:
        kind = getattr(rs, name)
        if is_error(kind):
            out.append(f"## `{name}`\n\n{said(kind)}" + _of_error(kind))
    return "\n\n".join(out)


def _of_error(kind: type[rs.ReasoningStoreError]) -> str:
    lines = [f"Its usual hint: {kind.hint}."] if kind.hint else []
    if "__init__" in vars(kind):
        source = inspect.getsource(kind.__init__)
        own = [n for n in re.findall(r"self\.(\w+) =", source) if n != "hint"]
        lines += [f"- `.{n}`" + behind(attributes(kind).get(n)) for n in own]
    return "".join(f"\n\n{line}" for line in lines)


# The export


def export_lines() -> str:
    out = ["### Types\n\n" + table(("type", "values"), _types_of_fields())]
    # A dataclass with slots is made twice, and the first of the two is a subclass, too.
    by_name = {vars(kind)["kind"]: kind for kind in lines.Line.__subclasses__()}
    for kind in (*by_name.values(), Counts):
        is_line = issubclass(kind, lines.Line)
        title = (
            f"`{vars(kind)['kind']}`"
            if is_line
            else "`StrictCounts`, inside a message or a compaction"
        )
        about = attributes(kind)
        rows = [
            (
                f"`{to_camel(field.name)}`",
                type_name(field.type).removesuffix(" | None"),
                _default(field),
                said(about.get(field.name, "")),
            )
            for field in dataclasses.fields(kind)
        ]
        out.append(f"### {title}\n\n" + table(("field", "type", "left out", ""), rows))
    return "\n\n".join(out)


_JSON = {str: "a string", int: "a whole number", bool: "`true` or `false`"}
_LIMITS = (("ge", "from"), ("le", "to"), ("pattern", "that matches"))


def _types_of_fields() -> Iterator[tuple[str, str]]:
    """Yield the types that the fields of a line have, and the values of each."""
    for name, kind in vars(lines).items():
        if get_origin(kind) is Annotated:
            base, info = get_args(kind)
            if base not in _JSON:
                continue
            words = [_JSON[base]]
            for one in info.metadata:
                words += [
                    f"{word} {getattr(one, limit)}"
                    for limit, word in _LIMITS
                    if hasattr(one, limit)
                ]
            yield f"`{name}`", " ".join(words)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return "absent" if field.default is None else _json(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return "empty"
    return "never"


# The models

_WHERE: Mapping[Floor, str] = {
    "none": "nothing",
    "open_calls": "messages with a call, in the open turn",
    "all_calls": "messages with a call, in any turn",
    "open_turn_with_call": "every message of the open turn, once it has a call",
    "all": "every message",
}


def demanding() -> str:
    """Return the models that demand reasoning, or seals, back."""
    return table(
        ("provider", "protocol", "models", "demanded back", "if missing", "thoughts go back as"),
        (
            (f"`{provider}`", f"`{api}`", names, *cells)
            for (provider, api, *cells, _), names in _models().items()
            if cells[0] != _WHERE["none"]
        ),
    )


def others() -> str:
    """Return the models that demand nothing, by where their thoughts have a place."""
    return table(
        ("provider", "protocol", "models", "thoughts go back as"),
        (
            (f"`{provider}`", f"`{api}`", names, place)
            for (provider, api, demanded, _, place, _), names in _models().items()
            if demanded == _WHERE["none"]
        ),
    )


def _models() -> Mapping[tuple[str, ...], str]:
    """Return the models of each provider's protocols, those together that demand the same.

    The last part of a key tells those apart that have to stand before others.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for contract in contract_tables.shipped_contracts().rows:
        if contract.provider is not None:
            for patterns, changed in _refined(contract):
                cells = _cells(changed)
                before = patterns != contract.models and cells == _cells(contract)
                key = (contract.provider, contract.api, *cells, str(before))
                found.setdefault(key, []).extend(patterns)
    groups = Counter(key[:2] for key in found)
    return {key: _patterns(names, alone=groups[key[:2]] == 1) for key, names in found.items()}


def _refined(contract: Contract) -> Iterator[tuple[tuple[str, ...], Contract]]:
    """Yield a row as each model sees it, the models that differ first.

    A model that does not differ stands before one that does and whose names would take it in.
    """
    seen = []
    for model in contract_tables.shipped_contracts().models:
        sample = model.models[0].replace("*", "").partition("[")[0]
        if model.matches(contract, sample) and _row_of(contract, sample) is contract:
            seen.append((model, sample, contract.with_rules(model.rules)))
    differ = [model for model, _, changed in seen if _cells(changed) != _cells(contract)]
    for model, sample, changed in seen:
        if model in differ or any(other.matches(contract, sample) for other in differ):
            yield model.models, changed
    yield contract.models, contract


def _row_of(contract: Contract, model: str) -> Contract | None:
    """Return the row that holds for a model at the same provider and protocol."""
    same = (
        row
        for row in contract_tables.shipped_contracts().rows
        if (row.provider, row.api) == _key(contract)
    )
    return next((row for row in same if contract_tables.matches_model(model, row.models)), None)


def _key(contract: Contract) -> tuple[str | None, str]:
    return contract.provider, contract.api


def _cells(contract: Contract) -> tuple[str, ...]:
    if contract.returning.call_signature_at is not None and contract.returning.floor != "none":
        demanded = "the signature of each call in the open turn"
    else:
        demanded = _WHERE[contract.returning.floor]
    missing = "refused" if contract.returning.refusal else "worse answers"
    places = [f"`{contract.returning.returns_in}`"] if contract.returning.returns_in else []
    if contract.returning.opaque:
        places.append("sealed blocks as they came")
    if contract.returning.prefix_bound is not None:
        places.append("bound to their prefix")
    return demanded, missing, ", ".join(places) or "they have no place"


def _patterns(names: list[str], *, alone: bool) -> str:
    if "*" in names:
        return "all" if alone else "all others"
    return " ".join(f"`{name}`" for name in dict.fromkeys(names))


MADE: Mapping[str, Callable[[], str]] = {
    "python": python,
    "settings": settings_table,
    "limits": limits_table,
    "errors": errors_list,
    "export": export_lines,
    "demanding": demanding,
    "others": others,
    "commands": commands,
    "exit_codes": exit_codes,
    "pages": list_of_pages,
    "refusals": refusals,
}


def filled(page: str) -> str:
    """Return a page with all of its places filled."""
    return PLACE.sub(lambda place: f"{place[1]}\n{MADE[place[2]]()}\n\n{place[3]}", page)


def main(arguments: list[str]) -> int:
    stale = []
    made = {path: filled(path.read_text("utf-8")) for path in sorted(DOCS.rglob("*.md"))}
    made[DOCS / "llms.txt"] = llms_txt()
    for path, text in made.items():
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(str(path.relative_to(DOCS.parent)))
            if "--check" not in arguments:
                path.write_text(text, "utf-8")
    for name in stale:
        print(name)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
