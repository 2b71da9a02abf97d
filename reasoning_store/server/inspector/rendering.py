"""The templates of the pages, of the server's and of the one that is a file."""

from __future__ import annotations

from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from reasoning_store.server.inspector import texts

_TEMPLATES: Final = Environment(
    loader=PackageLoader("reasoning_store.server.inspector"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {"minute": texts.minute, "signed": texts.signed, "plural": texts.plural}
_TEMPLATES.globals |= {"is_file": False}


def template(name: str) -> Template:
    """Return a template; each value that it prints is escaped."""
    return _TEMPLATES.get_template(name)
