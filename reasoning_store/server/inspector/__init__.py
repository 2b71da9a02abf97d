"""The inspector: pages that show a conversation and its next request."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote_plus

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from reasoning_store.server.options import ServerOptions


def routes(options: ServerOptions) -> list[BaseRoute]:
    """Return the routes of the pages. ``request_owner`` gives a page its owner's sessions."""
    from reasoning_store.server.access import request_owner
    from reasoning_store.server.inspector.endpoints import make_routes

    return make_routes(request_owner)


def page_path(session_id: str | None = None) -> str:
    """Return the path of a session's page, or of the list of sessions."""
    return "/" if session_id is None else f"/session?id={quote_plus(session_id)}"
