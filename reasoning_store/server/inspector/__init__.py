"""The inspector: pages that show a conversation and its next request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from reasoning_store.server.options import ServerOptions


def routes(options: ServerOptions) -> list[BaseRoute]:
    """Return the routes of the pages. ``request_owner`` gives a page its owner's sessions."""
    return []


def page_path(session_id: str | None = None) -> str:
    """Return the path of a session's page, or of the list of sessions."""
    return "/"
