"""What the package says of itself in Python: its public names, their signatures, their words.

Read from the running package and, for what stands under an attribute, from its source. It
knows what Python offers to look at; it must not know a page.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

import reasoning_store as rs
from reasoning_store import formats, results, testing
from reasoning_store.conversation import errors

# Words of the package


def annotated(function: Any) -> str:
    """Return a signature as it is written, without ``self``."""
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    out, starred = [], False
    for parameter in kept:
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not starred:
            out.append("*")
            starred = True
        out.append(_parameter(parameter))
    result = signature.return_annotation
    arrow = "" if result in (signature.empty, "None") else f" -> {type_name(result)}"
    return f"({', '.join(out)}){arrow}"


_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def _parameter(parameter: inspect.Parameter) -> str:
    stars = _STARS.get(parameter.kind.name, "")
    has_type = parameter.annotation is not parameter.empty
    text = f"{stars}{parameter.name}" + (f": {type_name(parameter.annotation)}" if has_type else "")
    if parameter.default is parameter.empty:
        return text
    return f"{text} = {parameter.default!r}" if has_type else f"{text}={parameter.default!r}"


def type_name(annotation: Any) -> str:
    if isinstance(annotation, ForwardRef):  # what a NamedTuple makes of a name in quotes
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("typing.", "").replace("reasoning_store.", "")


def said(thing: Any) -> str:
    """Return a docstring as a paragraph of Markdown."""
    text = inspect.cleandoc(thing if isinstance(thing, str) else inspect.getdoc(thing) or "")
    return text.replace("``", "`")


def attributes(kind: type) -> Mapping[str, str]:
    """Return what stands under each attribute in the source, its bases' included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("reasoning_store"):
            found |= _under(base)
    return found


def _under(kind: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    inside = [body.body, *(n.body for n in body.body if isinstance(n, ast.FunctionDef))]
    return {
        _name_of(first): second.value.value
        for statements in inside
        for first, second in pairwise(statements)
        if _name_of(first)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
        and isinstance(second.value.value, str)
    }


def _name_of(statement: ast.stmt) -> str:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        return statement.targets[0].attr
    return ""


# Python

GROUPS: Mapping[str, str] = {
    "Stores and sessions": "Store Owner Session Context Stored Branch Page Recording",
    "Settings that are kept": "SessionSettings OwnerSettings Profiles Profile Resolved",
    "What a store tells": """ReportRow Budget Plan Step Range Compaction Erased Verified Problem
        BackedUp Imported Withheld Recovery""",
    "The same, awaited": """AsyncStore AsyncOwner AsyncSession AsyncContext AsyncRecording
        AsyncSessionSettings AsyncOwnerSettings AsyncProfiles""",
    "Messages": """user assistant system tool Message TextBlock ThinkingBlock ToolCallBlock
        ToolResponseBlock MediaBlock RawBlock Block Origin Usage""",
    "What arrives": """StreamNormalizer normalize_response split_reasoning Split TagFilter Run
        SecretMasker Masker ReasoningChunk TextChunk ToolCallChunk BlockChunk UsageChunk FinishChunk
        OriginChunk ErrorChunk UnknownChunk Chunk""",
    "What leaves": """ReasoningSettings build_request Request RequestSettings select Selection
        Verdict RequestWarning effective_tokens TokenCount ContextUsage what_if WhatIf Alternative
        explain_refusal Explanation Place Holder""",
    "What is shown": "visible_parts ReasoningRenderer",
}
"""Every public name but the errors, which have a page of their own."""
_WORD = re.compile(r"\b[A-Z]\w+")
_QUALIFIED = re.compile(r"\b(?:\w+\.)+(?=\w)")


PUBLIC: Mapping[str, Any] = {
    name: getattr(holder, name) for holder in (rs, results) for name in holder.__all__
}


def python() -> str:
    placed = {name for names in GROUPS.values() for name in names.split()}
    public = {name for name, thing in PUBLIC.items() if not is_error(thing)}
    rest = sorted(public - placed)
    groups = {**GROUPS, **({"More": " ".join(rest)} if rest else {})}
    out = []
    for title, names in groups.items():
        out.append(f"## {title}")
        out += [_public_entry(name) for name in names.split() if name in public]
    out.append("## `reasoning_store.testing`")
    out += [_entry(name, getattr(testing, name)) for name in testing.__all__]
    out.append("## `reasoning_store.formats`")
    out += [_entry(name, getattr(formats, name)) for name in formats.__all__]
    out.append("## What these signatures call")
    out += [_entry(name, alias) for name, alias in sorted(_aliases(public).items())]
    return "\n\n".join(out)


def _public_entry(name: str) -> str:
    entry = _entry(name, PUBLIC[name])
    if name in results.__all__:
        entry = entry.replace(f"### `{name}`", f"### `results.{name}`", 1)
    return entry


def _aliases(public: set[str]) -> dict[str, Any]:
    """Return what public signatures name that is no class: no one has to import it."""
    things = [PUBLIC[name] for name in sorted(public)]
    things += [getattr(holder, name) for holder in (testing, formats) for name in holder.__all__]
    found: dict[str, Any] = {}
    for thing in things:
        for name in _named(thing) - {*PUBLIC, *testing.__all__, *formats.__all__}:
            alias = _alias(name, thing.__module__)
            if alias is not None:
                found.setdefault(name, alias)
    return found


def _named(thing: Any) -> set[str]:
    """Return the names in a thing's signatures and fields."""
    texts = []
    if inspect.isfunction(thing):
        texts.append(annotated(thing))
    elif inspect.isclass(thing):
        texts += _values(thing).values()
        if _is_made(thing):
            texts.append(annotated(vars(thing)["__init__"]))
        for _, member in _members(thing):
            if not isinstance(member, property):
                texts.append(annotated(member))
            elif member.fget is not None:
                texts.append(type_name(inspect.signature(member.fget).return_annotation))
    return set(_WORD.findall(" ".join(texts)))


def _alias(name: str, where: str) -> Any:
    """Return what the package calls so that is no class.

    What the module that names it calls so comes first: two rooms may use one word.
    """
    for module in (where, *sorted(sys.modules)):
        if module.startswith("reasoning_store"):
            thing = vars(sys.modules[module]).get(name)
            if get_origin(thing) not in (None, Annotated):
                return thing
    return None


def is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, errors.ReasoningStoreError)


def _entry(name: str, thing: Any) -> str:
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        return f"### `{name}`\n\n{_choices(thing)}"
    if inspect.isfunction(thing):
        call = f"### `{name}`\n\n```text\n{_folded(name, annotated(thing))}\n```"
        return "\n\n".join([call, said(thing), *_more(name, thing)])
    return "\n\n".join(filter(None, _of_class(name, thing)))


def _choices(alias: Any) -> str:
    """Return what a word of signatures stands for."""
    if get_origin(alias) not in (Literal, Union, UnionType):
        return _short(alias)
    parts = get_args(alias)
    return f"One of {', '.join(f'`{one}`' if type(one) is str else _short(one) for one in parts)}."


def _short(annotation: Any) -> str:
    return f"`{_QUALIFIED.sub('', type_name(annotation)).replace('NoneType', 'None')}`"


def _of_class(name: str, kind: type) -> Iterator[str]:
    yield f"### `{name}`"
    awaited = name.startswith("Async")
    if _is_made(kind):
        yield f"```text\n{_folded(name, annotated(vars(kind)['__init__']))}\n```"
    if kind.__doc__ and not kind.__doc__.startswith(f"{name}("):
        yield said(kind)
    for base in _told_of(kind):
        yield f"It has all that `{base.__name__}` has."
    about = attributes(kind)
    yield "\n".join(
        f"- `.{field}{f': {type}' if type else ''}`" + behind(about.get(field))
        for field, type in _values(kind).items()
    )
    if awaited:
        verbs = [f"`{n}`" for n, m in _members(kind) if not isinstance(m, property)]
        yield f"The names: {', '.join(verbs)}." if verbs else ""
        return
    # A property, also an inherited one, comes before the verbs.
    for member, value in sorted(_members(kind), key=lambda one: not isinstance(one[1], property)):
        if isinstance(value, property):
            assert value.fget is not None
            result = type_name(inspect.signature(value.fget).return_annotation)
            yield f"- `.{member}: {result}`" + behind(value.__doc__)
        else:
            call = _folded(f".{member}", annotated(value))
            yield f"#### `{name}.{member}`"
            yield f"```text\n{call}\n```" + (f"\n\n{said(value)}" if value.__doc__ else "")
            yield from _more(f"{name}_{member}", value)


def _more(name: str, function: Any) -> Iterator[str]:
    """Yield what a function returns and raises, with links, and its example."""
    result = type_name(inspect.signature(function).return_annotation)
    returned = [word for word in _WORD.findall(result) if word in PUBLIC]
    raised = [word for word in _CODE.findall(said(function)) if is_error(PUBLIC.get(word))]
    links = [f"Returns {_linked(returned)}."] if returned else []
    links += [f"Raises {_linked(raised)}."] if raised else []
    if links:
        yield " ".join(links)
    if example := _examples().get(_SMALL.sub(r"_\1", name).lower()):
        yield f"```py\n{example}\n```"


def _linked(names: list[str]) -> str:
    """Return names with links to their entries, as GitHub addresses headings."""
    links = []
    for name in dict.fromkeys(names):
        page = "errors.md" if is_error(PUBLIC[name]) else ""
        heading = f"results.{name}" if name in results.__all__ else name
        links.append(f"[`{name}`]({page}#{heading.replace('.', '').lower()})")
    return ", ".join(links)


_CODE = re.compile(r"`(\w+)`")
_SMALL = re.compile(r"(?<=[a-z])([A-Z])")


@cache
def _examples() -> Mapping[str, str]:
    """Return the body of each function in the module of examples."""
    path = Path(__file__).parent.parent / "tests" / "docs" / "verbs.py"
    source = path.read_text("utf-8")
    lines = source.splitlines()
    return {
        node.name: textwrap.dedent("\n".join(lines[node.body[0].lineno - 1 : node.end_lineno]))
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }


def _told_of(kind: type) -> list[type]:
    """Return the bases of a class whose own entries say what it has from them."""
    bases = [base for base in kind.__mro__[1:] if base.__name__ in PUBLIC]
    return [base for base in bases if any(_members(base))]


def _values(kind: type) -> dict[str, str]:
    """Return the types of a class's public attributes, as far as the source says them."""
    found: dict[str, str] = {}
    elsewhere = {one for base in _told_of(kind) for one in base.__mro__}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("reasoning_store") and base not in elsewhere:
            annotations = vars(base).get("__annotations__", {})
            found |= {name: type_name(annotation) for name, annotation in annotations.items()}
            found |= _assigned(base)
    hidden = {n for n, t in found.items() if n[0] == "_" or "ClassVar" in t} | {"model_config"}
    defaults = {
        field.name: f" = {field.default!r}"
        for field in (dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ())
        if field.default is not dataclasses.MISSING
    }
    return {
        name: type + defaults.get(name, "") for name, type in found.items() if name not in hidden
    }


def _assigned(kind: type) -> dict[str, str]:
    """Return what a constructor written by hand assigns, where that is public."""
    if dataclasses.is_dataclass(kind) or not inspect.isfunction(vars(kind).get("__init__")):
        return {}
    tree = ast.parse(textwrap.dedent(inspect.getsource(vars(kind)["__init__"])))
    found = {}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
            value = statement.value
            made = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
            maker = ast.unparse(value.func) if made and isinstance(value, ast.Call) else ""
            found[statement.targets[0].attr] = maker if maker[:1].isupper() else ""
    return found


def _is_made(kind: type) -> bool:
    """Whether an application makes one itself, with arguments of its own."""
    is_public = kind.__name__ in {*PUBLIC, *testing.__all__}
    has_own = "__init__" in vars(kind) and not dataclasses.is_dataclass(kind)
    is_form = getattr(kind, "_is_protocol", False)
    return is_public and has_own and not is_form and "Made by" not in (kind.__doc__ or "")


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("reasoning_store"):
            continue
        if base is not kind and base.__name__ in PUBLIC:
            break  # it has an entry of its own
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                if isinstance(value, cached_property):
                    value = property(value.func)
                plain = getattr(value, "__func__", value)
                own = getattr(plain, "__module__", "").startswith("reasoning_store")
                if (inspect.isfunction(plain) and own) or isinstance(value, property):
                    yield name, plain


def behind(text: str | None) -> str:
    return f": {' '.join(said(text).split())}" if text else ""


def _folded(name: str, signature: str) -> str:
    """Return a signature on one line, or with a line for each parameter."""
    if len(name + signature) <= 90:
        return name + signature
    inside, _, arrow = signature[1:].rpartition(")")
    depth, start, parts = 0, 0, []
    for place, letter in enumerate(inside):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            parts.append(inside[start:place].strip())
            start = place + 1
    parts.append(inside[start:].strip())
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"
