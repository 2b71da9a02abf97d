"""Google's Agent Development Kit on the store: a session service.

from reasoning_store.integrations.google_adk import StoredSessionService
"""

from __future__ import annotations

from reasoning_store.integrations.store_access import explain_import

try:
    from reasoning_store.integrations.google_adk.events import read_event, write_event
    from reasoning_store.integrations.google_adk.session_service import StoredSessionService
except ImportError as error:
    raise explain_import(error, "google.adk", extra="google-adk") from None

__all__ = ["StoredSessionService", "read_event", "write_event"]
