"""What the site has more than the pages of docs/: its menu, and the files that they link to.

A link that leaves docs/ leads to the repository on GitHub, and to a page with the file's text
on the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, relpath
from shutil import copy
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

sys.path.insert(0, str(Path(__file__).parent))

from site_pages import DOCS, sections

CHECKOUT = DOCS.parent
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)#\s]+)(?=[)#])")
_PICTURES = {".svg", ".png"}
_AS_THEY_ARE = {".md", *_PICTURES}
_LANGUAGES = {".py": "python", ".toml": "toml", ".html": "html", ".yml": "yaml"}


def on_config(config: Any) -> Any:
    """Make the menu from the table of pages."""
    listed = [{title: list(pages)} for title, pages in sections()]
    config.nav = [{"Home": "index.md"}, *listed]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add a page for each file outside docs/ that a page links to."""
    waiting = [Path(file.abs_src_path) for file in files.documentation_pages()]
    while waiting:
        path = waiting.pop()
        for target in _outside(path) if path.suffix == ".md" else ():
            name = _address(target)
            if files.get_file_from_path(name) is None:
                files.append(_file_of(target, name, config))
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Lead the links that leave docs/ to the pages of those files."""
    name = page.file.src_uri
    outside = name.startswith("source/")
    here = (CHECKOUT / name.removeprefix("source/") if outside else DOCS / name).parent

    def led(link: re.Match[str]) -> str:
        target = (here / link[1]).resolve()
        return relpath(_address(target), dirname(name)) if target.exists() else link[1]

    return _outside_fences(markdown, lambda text: _LINK.sub(led, text))


def on_post_build(*, config: Any) -> None:
    """Put the pages as Markdown next to the others: `llms.txt` names those."""
    for page in DOCS.rglob("*.md"):
        copy(page, Path(config.site_dir) / page.relative_to(DOCS))


def _outside_fences(markdown: str, change: Any) -> str:
    """Change a page's text, and leave its blocks of code."""
    out, end = [], 0
    for fence in _FENCED.finditer(markdown):
        out += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*out, change(markdown[end:])])


def _outside(page: Path) -> Iterator[Path]:
    """Yield the files outside docs/ that a page links to."""
    for link in _LINK.findall(_FENCED.sub("", page.read_text("utf-8"))):
        target = (page.parent / link).resolve()
        if target.exists() and DOCS not in target.parents:
            yield target


def _address(target: Path) -> str:
    """Return the address of a file on the site."""
    if DOCS in target.parents:
        return target.relative_to(DOCS).as_posix()
    name = f"source/{target.relative_to(CHECKOUT).as_posix()}"
    return name if target.suffix in _AS_THEY_ARE else f"{name}.md"


def _file_of(target: Path, name: str, config: Any) -> File:
    if target.suffix in _PICTURES:
        return File.generated(config, name, abs_src_path=str(target))
    text = f"---\nsearch:\n  exclude: true\n---\n\n{_text_of(target)}"
    file = File.generated(config, name, content=text)
    file.inclusion = InclusionLevel.NOT_IN_NAV
    return file


def _text_of(target: Path) -> str:
    """Return a file, or the files of a folder, as a page."""
    if target.suffix == ".md":
        return target.read_text("utf-8")
    paths = sorted(target.glob("*.*")) if target.is_dir() else [target]
    title = target.relative_to(CHECKOUT).as_posix()
    return "\n\n".join([f"# {title}", *map(_block_of, paths)])


def _block_of(path: Path) -> str:
    language = _LANGUAGES.get(path.suffix, "text")
    return f"## {path.name}\n\n````{language}\n{path.read_text('utf-8')}````"
