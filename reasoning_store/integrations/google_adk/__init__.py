"""Google's Agent Development Kit on the store: a session service.

from reasoning_store.integrations.google_adk import StoredSessionService
"""

from __future__ import annotations

import reasoning_store as rs

try:
    from reasoning_store.integrations.google_adk.events import read_event, write_event
    from reasoning_store.integrations.google_adk.session_service import StoredSessionService
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "google":
        raise
    raise rs.MissingExtra("google-adk is not installed", extra="google-adk") from None

__all__ = ["StoredSessionService", "read_event", "write_event"]
