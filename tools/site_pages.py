"""The pages of the documentation by task, with a line about each.

The table is the site's navigation, the list on its first page, and `llms.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "explanation/what-is-a-reasoning-block.md": "ninety seconds",
        "tutorial.md": "twenty minutes, no key and no network",
    },
    "Use it": {
        "howto/read-a-stream.md": "chunks, thoughts and answers, without a store",
        "howto/stop-and-follow.md": "from any process",
        "howto/choose-a-policy.md": "the thinking that each request carries",
        "howto/edit-and-retry.md": "branches",
        "howto/compress-a-conversation.md": "strip, clear, summarize",
        "howto/recover-a-refused-conversation.md": "one refused block, left out with undo",
        "howto/search.md": "by words, in any script",
        "howto/show-and-watch.md": "for a page or a terminal; lists, profiles, budgets, reports",
        "howto/inspect.md": "a page with the next request, and what each setting would change",
        "howto/many-users.md": "owners, settings, budgets",
        "howto/async.md": "`AsyncStore`, awaited",
        "howto/attach-files.md": "images, sound, documents",
        "howto/mask-secrets.md": "before anything is written",
        "howto/keep-a-client.md": "one HTTP client puts it back",
        "howto/serve.md": "a gateway for clients in any language; OpenAI's Conversations API",
        "howto/connect-a-client.md": "the lines for SDKs, agents and chat pages",
        "howto/add-a-model.md": "a private gateway, next week's model",
        "howto/test-your-application.md": "streams and refusals without a provider",
    },
    "Use it with an SDK": {
        "howto/sdk/openai-chat.md": "and every server that speaks the same protocol",
        "howto/sdk/openai-responses.md": "encrypted reasoning, with a tool loop",
        "howto/sdk/anthropic.md": "signed thinking, with a tool loop",
        "howto/sdk/google-genai.md": "thought signatures, with a tool loop",
        "howto/sdk/ollama.md": "local models",
        "howto/sdk/mistral.md": "thinking in the content",
        "howto/sdk/bedrock.md": "Converse",
        "howto/sdk/cohere.md": "thinking in the content",
    },
    "Use it with a framework": {
        "howto/frameworks/langchain.md": "agents, and message histories",
        "howto/frameworks/google-adk.md": "a session service",
        "howto/frameworks/llama-index.md": "a chat store for `Memory`",
        "howto/frameworks/agent-framework.md": "a history provider",
        "howto/frameworks/openai-agents.md": "sessions, and a filter of the input",
        "howto/frameworks/pydantic-ai.md": "a conversation store, and a capability",
    },
    "Move to it": {
        "howto/coming-from/openai-agents.md": "its sessions",
        "howto/coming-from/langchain.md": "its chat history",
        "howto/coming-from/llama-index.md": "its chat store",
        "howto/coming-from/pydantic-ai.md": "its message history",
        "howto/import-a-history.md": "files of other programs, and whole folders",
        "howto/import-formats.md": "the files and fields of each program",
    },
    "Keep it": {
        "howto/backup-and-erase.md": "also delete a user's data, export and import",
        "howto/postgresql.md": "roles, a move from SQLite, a standby, PgBouncer, Citus",
        "howto/schema.md": "SQLite upgrades itself, PostgreSQL by command",
        "howto/recipes.md": "sqlite3, jq, Datasette",
    },
    "Understand": {
        "explanation/storing-and-sending.md": "two lives of a thought",
        "explanation/turn-and-floor.md": "the thinking that a provider demands",
        "explanation/counting.md": "the tokens of the next request",
        "explanation/prompt-cache.md": "the price of a changed beginning",
        "explanation/durability.md": "killed processes, full disks, power cuts",
        "explanation/scale.md": "from one file to a million owners",
        "explanation/how-it-works.md": "three calls through the modules",
        "benchmarks.md": "figures, then the method",
    },
    "Reference": {
        "reference/troubleshooting.md": "a provider's error text, its cause, its remedy",
        "reference/python.md": "every public name",
        "reference/command-line.md": "every command",
        "reference/settings.md": "every key",
        "reference/errors.md": "every exception, with its hint",
        "reference/warnings.md": "every code of a warning, a step, a problem",
        "reference/exit-codes.md": "of the command line",
        "reference/schema.md": "every table and column",
        "reference/export-format.md": "lines of JSON",
        "reference/rules.md": "the rules that have ids",
    },
}
"""Every page but the first, in the order of the menu."""


def sections() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each section with its pages; those that no section names come last."""
    listed = {name for names in SECTIONS.values() for name in names}
    there = {path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    for title, about in SECTIONS.items():
        yield title, {name: line for name, line in about.items() if name in there}
    if rest := sorted(there - listed - {"index.md"}):
        yield "More", dict.fromkeys(rest, "")


def list_of_pages() -> str:
    """Return the sections as lists of links."""
    return "\n\n".join(
        f"## {title}\n\n" + "\n".join(_line(name, line) for name, line in pages.items())
        for title, pages in sections()
    )


def llms_txt() -> str:
    """Return the list of pages for a program that reads them."""
    about = "Keep every thought, send only what you choose, and see it before you send it."
    return f"# reasoning-store\n\n> {about}\n\n{list_of_pages()}\n"


def _line(name: str, about: str) -> str:
    lines = (DOCS / name).read_text("utf-8").splitlines()
    title = next(line.removeprefix("# ") for line in lines if line.startswith("# "))
    return f"- [{title}]({name})" + (f": {about}" if about else "")
