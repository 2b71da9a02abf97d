"""The classes that verbs return, for annotations: you never make one yourself."""

from __future__ import annotations

from reasoning_store.aio.following import AsyncFollowing
from reasoning_store.aio.session import AsyncSessionSettings
from reasoning_store.aio.store import (
    AsyncClientConversation,
    AsyncOwner,
    AsyncOwnerSettings,
    AsyncProfiles,
)
from reasoning_store.conversation.blocks import Role, Status
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.settings import Resolved
from reasoning_store.conversation.validation import Holder
from reasoning_store.egress.budget import Budget
from reasoning_store.egress.compaction_plan import Range, Step
from reasoning_store.egress.refusals import Explanation
from reasoning_store.egress.request import RequestSettings
from reasoning_store.egress.request_places import Place
from reasoning_store.egress.token_counts import TokenCount, TokensByKind
from reasoning_store.egress.usage import ContextUsage
from reasoning_store.egress.verdicts import RequestWarning, Selection, Verdict
from reasoning_store.egress.what_if import Alternative, WhatIf
from reasoning_store.ingress.tags import Run, Split
from reasoning_store.ledger.records import (
    BackedUp,
    Deleted,
    Erased,
    Imported,
    Page,
    Problem,
    ReportRow,
    Verified,
)
from reasoning_store.owner import Owner
from reasoning_store.recording.following import Following
from reasoning_store.search_results import Hit, Thought
from reasoning_store.sessions.identified import ClientConversation, RestoredReply
from reasoning_store.sessions.settings import OwnerSettings, Profile, Profiles, SessionSettings
from reasoning_store.stored_values import Branch, Compaction, Stored, Version
from reasoning_store.wire.contract_tables import Contracts
from reasoning_store.wire.registry import AdapterRegistry

__all__ = [
    "AdapterRegistry",
    "Alternative",
    "Asked",
    "AsyncClientConversation",
    "AsyncFollowing",
    "AsyncOwner",
    "AsyncOwnerSettings",
    "AsyncProfiles",
    "AsyncSessionSettings",
    "BackedUp",
    "Branch",
    "Budget",
    "ClientConversation",
    "Compaction",
    "ContextUsage",
    "Contracts",
    "Deleted",
    "Erased",
    "Explanation",
    "Following",
    "Hit",
    "Holder",
    "Imported",
    "Owner",
    "OwnerSettings",
    "Page",
    "Place",
    "Problem",
    "Profile",
    "Profiles",
    "Range",
    "ReportRow",
    "RequestSettings",
    "RequestWarning",
    "Resolved",
    "RestoredReply",
    "Role",
    "Run",
    "Selection",
    "SessionSettings",
    "Split",
    "Status",
    "Step",
    "Stored",
    "Thought",
    "TokenCount",
    "TokensByKind",
    "Verdict",
    "Verified",
    "Version",
    "WhatIf",
]
