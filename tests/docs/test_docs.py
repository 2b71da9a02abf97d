"""README and docs are true: their Python runs, their commands are ones that are run.

A block runs alone, in an empty folder, as a program of its own; on a page that says
``<!-- run in order -->`` the blocks run one after another in one folder. An ``output`` block
says what the block before it prints. The official clients are used as they are: a provider
on a local socket answers them, found by the variables that they read. A page that says
``<!-- on PostgreSQL -->`` finds an empty database of a real server in REASONING_STORE_URL.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import pytest

from reasoning_store.egress import (
    budget,
    compaction_plan,
    selection_values,
)
from reasoning_store.ledger import records
from reasoning_store.wire import contract_lookup
from tests.docs.pages import CHECKOUT, FENCE, Block, clean_environment, framework_of, read, run
from tests.docs.provider import Provider
from tests.properties import each

PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
COMMAND_OF_CI = re.compile(r"^(make [a-z ]+)$", re.MULTILINE)
IN_ORDER = "<!-- run in order -->"
ON_POSTGRES = "<!-- on PostgreSQL -->"
SHELLS = ("sh", "console", "bash")


def name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


ORDERED = [page for page in PAGES if IN_ORDER in page.read_text("utf-8")]


def blocks(*languages: str) -> list[object]:
    return [
        pytest.param(block, id=f"{name(page)}:{number}")
        for page in PAGES
        if page not in ORDERED and framework_of(page) is None
        for number, block in enumerate(read(page), 1)
        if block.language in languages
    ]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


@pytest.fixture
def environment(provider: Provider, tmp_path: Path) -> dict[str, str]:
    """Nothing of the one who runs the tests, and a provider for every client."""
    return clean_environment(tmp_path) | provider.environment


@pytest.mark.thinned
@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_of_the_documentation_runs(
    block: Block, tmp_path: Path, environment: dict[str, str], provider: Provider
) -> None:
    """Every example works as it is, prints what it says, and no provider refuses it."""
    run(block, tmp_path, environment)

    assert provider.refused == []


@pytest.mark.thinned
@pytest.mark.parametrize("page", ORDERED, ids=name)
def test_a_page_that_is_followed_from_top_to_bottom_holds(
    page: Path,
    tmp_path: Path,
    environment: dict[str, str],
    provider: Provider,
    request: pytest.FixtureRequest,
) -> None:
    """Each step works on what the steps before it left in the folder."""
    if ON_POSTGRES in page.read_text("utf-8"):
        url = request.getfixturevalue("create_database")()
        environment["REASONING_STORE_URL"] = url.render_as_string(hide_password=False)
    for block in read(page):
        if block.language in ("python", *SHELLS):
            run(block, tmp_path, environment)

    assert provider.refused == []


@pytest.mark.parametrize("block", blocks(*SHELLS))
def test_the_commands_of_the_documentation_run(
    block: Block, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Each command line is run, but for make's, which CI runs from a clean clone."""
    run_by_ci = {
        f"make {target}"
        for line in COMMAND_OF_CI.findall((CHECKOUT / ".ci" / "run").read_text("utf-8"))
        for target in line.split()[1:]
    }
    for command in filter(None, map(str.strip, block.text.splitlines())):
        if shlex.split(command, comments=True)[:1] == ["make"]:
            assert command in run_by_ci
        else:
            run(Block("sh", command, block.output), tmp_path, environment)


def test_the_examples_for_a_framework_run_in_its_environment() -> None:
    """Each framework that a page needs has one, with a test that runs its pages."""
    named = {framework_of(page) for page in PAGES} - {None}
    folder = CHECKOUT / "tests" / "frameworks"

    assert [one for one in named if not (folder / f"{one}.txt").exists()] == []
    assert [
        one
        for one in named
        if f'pages.blocks("{one}")' not in (folder / f"test_{one}.py").read_text("utf-8")
    ] == []


LINK = re.compile(r"\]\((?!\w+:)([^)#]*)(?:#([^)]+))?\)")


@each("page", PAGES)
def test_the_links_of_the_documentation_lead_somewhere(page: Path) -> None:
    """To a file, and to a heading in it by the address that GitHub gives it."""
    links = LINK.findall(FENCE.sub("", page.read_text("utf-8")))
    targets = [(page.parent / link if link else page, heading) for link, heading in links]

    assert [str(path) for path, _ in targets if not path.exists()] == []
    assert [at for path, at in targets if at and at not in anchors(path)] == []


def anchors(page: Path) -> set[str]:
    """Return the addresses of a page's headings."""
    text = FENCE.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    own = re.findall(r"""<a id="([\w-]+)">""", text)
    return {*own} | {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


def test_what_the_package_can_say_of_itself_is_what_the_pages_say() -> None:
    """Signatures, settings, errors, lines of an export, the models' demands: as in the code."""
    ran = subprocess.run(
        [sys.executable, str(CHECKOUT / "tools" / "make_reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, f"run python tools/make_reference.py; it rewrites {ran.stdout}"


@each("model", ["claude-opus-4-8", "claude-opus-4-6", "claude-haiku-4-5"])
@each("provider, api", [("anthropic", "anthropic.messages"), ("aws", "bedrock.converse")])
def test_the_first_row_of_the_demands_that_matches_a_model_is_its_contract(
    provider: str, api: str, model: str
) -> None:
    """Names overlap: what thinks adaptively stands before what has a name like it."""
    rows = re.findall(
        rf"^\| `{provider}` \| `{api}` \| (.*?) \| .*? \| (.*?) \|",
        (CHECKOUT / "docs/howto/choose-a-policy.md").read_text("utf-8"),
        re.MULTILINE,
    )
    said = (
        missing
        for models, missing in rows
        if models == "all others" or any(fnmatchcase(model, p) for p in models.split("`"))
    )

    refuses = contract_lookup.find_contract(provider, model, api).returning.refusal is not None
    assert next(said) == ("refused" if refuses else "worse answers")


def test_a_field_has_the_type_that_a_reader_would_write() -> None:
    """Python's own wrapping of a name that it has not looked up yet is not shown."""
    text = (CHECKOUT / "docs/reference/python.md").read_text("utf-8")

    assert "- `.tokens: int`" in text
    assert "ForwardRef" not in text


@each("page", PAGES)
def test_a_page_says_each_thing_once(page: Path) -> None:
    """No two parts of a page have one heading, which would also be one address."""
    headings = re.findall(r"^#+ .*$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)

    assert sorted(set(headings)) == sorted(headings)


TABLES = (
    selection_values.WarningCode,
    compaction_plan.Reason,
    compaction_plan.Action,
    records.ProblemCode,
)


def test_every_code_that_a_program_may_meet_is_explained() -> None:
    """The page that says what they mean has each, and in its tables no other."""
    page = (CHECKOUT / "docs/reference/warnings.md").read_text("utf-8")
    tables = {
        word
        for cell in re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", cell)
    }
    listed = {word for words in TABLES for word in get_args(words)}
    beside = {
        word
        for words in (selection_values.VerdictRule, budget.BudgetState)
        for word in get_args(words)
    }

    assert tables == listed
    assert beside <= set(re.findall(r"`(\w+)`", page))


def test_every_page_is_found_from_the_index() -> None:
    """The index names each page of the documentation."""
    index = CHECKOUT / "docs" / "index.md"
    named = {
        (index.parent / link).resolve()
        for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", index.read_text("utf-8"))
    }

    pages = (CHECKOUT / "docs").rglob("*.md")
    assert [name(page) for page in pages if page not in {*named, index}] == []


def test_every_page_has_a_place_in_the_menu() -> None:
    """The table of the site's pages names each, with a line about it."""
    listed = (CHECKOUT / "docs" / "llms.txt").read_text("utf-8")

    assert "## More" not in listed


def test_every_picture_says_in_words_what_it_shows() -> None:
    """In its own title and description, and it is on a page."""
    pictures = sorted((CHECKOUT / "docs" / "pictures").glob("*.svg"))
    shown = "".join(page.read_text("utf-8") for page in PAGES)
    assert pictures
    for picture in pictures:
        root = ElementTree.fromstring(picture.read_text("utf-8"))
        words = [root.findtext(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc")]

        assert all(words), picture.name
        assert f"pictures/{picture.name})" in shown, picture.name
