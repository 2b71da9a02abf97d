"""The classes that verbs return, for annotations: you never make one yourself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reasoning_store import load_when_used

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
    "Finding",
    "Following",
    "Hit",
    "Holder",
    "Imported",
    "ImportedConversation",
    "ImportedHistory",
    "Owner",
    "OwnerSettings",
    "Page",
    "Place",
    "Problem",
    "Profile",
    "Profiles",
    "Range",
    "Recovery",
    "Report",
    "ReportRow",
    "RequestSettings",
    "RequestWarning",
    "Resolved",
    "RestoredReply",
    "Role",
    "Run",
    "Selection",
    "SessionSettings",
    "Skipped",
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
    "Withheld",
]

if TYPE_CHECKING:
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
    from reasoning_store.diagnosis import Finding
    from reasoning_store.egress.budget import Budget
    from reasoning_store.egress.compaction_plan import Range, Step
    from reasoning_store.egress.refusals import Explanation
    from reasoning_store.egress.request import RequestSettings
    from reasoning_store.egress.request_places import Place
    from reasoning_store.egress.selection_values import RequestWarning, Selection, Verdict
    from reasoning_store.egress.token_counts import TokenCount, TokensByKind
    from reasoning_store.egress.usage import ContextUsage
    from reasoning_store.egress.what_if import Alternative, WhatIf
    from reasoning_store.ingress.tags import Run, Split
    from reasoning_store.kept_histories import (
        ImportedConversation,
        ImportedHistory,
        Report,
        Skipped,
    )
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
    from reasoning_store.sessions.recovery import Recovery
    from reasoning_store.sessions.settings import OwnerSettings, Profile, Profiles, SessionSettings
    from reasoning_store.stored_values import Branch, Compaction, Stored, Version, Withheld
    from reasoning_store.wire.contract_tables import Contracts
    from reasoning_store.wire.registry import AdapterRegistry

_HOMES = {
    "aio.following": "AsyncFollowing",
    "aio.session": "AsyncSessionSettings",
    "aio.store": "AsyncClientConversation AsyncOwner AsyncOwnerSettings AsyncProfiles",
    "conversation.blocks": "Role Status",
    "conversation.identity": "Asked",
    "conversation.settings": "Resolved",
    "conversation.validation": "Holder",
    "diagnosis": "Finding",
    "egress.budget": "Budget",
    "egress.compaction_plan": "Range Step",
    "egress.refusals": "Explanation",
    "egress.request_places": "Place",
    "egress.request": "RequestSettings",
    "egress.token_counts": "TokenCount TokensByKind",
    "egress.usage": "ContextUsage",
    "egress.selection_values": "RequestWarning Selection Verdict",
    "egress.what_if": "Alternative WhatIf",
    "ingress.tags": "Run Split",
    "kept_histories": "ImportedConversation ImportedHistory Report Skipped",
    "ledger.records": "BackedUp Deleted Erased Imported Page Problem ReportRow Verified",
    "owner": "Owner",
    "recording.following": "Following",
    "search_results": "Hit Thought",
    "sessions.identified": "ClientConversation RestoredReply",
    "sessions.recovery": "Recovery",
    "sessions.settings": "OwnerSettings Profile Profiles SessionSettings",
    "stored_values": "Branch Compaction Stored Version Withheld",
    "wire.contract_tables": "Contracts",
    "wire.registry": "AdapterRegistry",
}

if not TYPE_CHECKING:  # to a type checker every name would be one of ours then
    __getattr__ = load_when_used(__name__, _HOMES)
