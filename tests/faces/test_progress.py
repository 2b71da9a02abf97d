"""How far ``verify`` and ``export_lines`` are, for a bar with a percentage."""

from __future__ import annotations

import reasoning_store as rs


def check_shares(shares: list[float], count: int) -> None:
    """Hold that one share a session rises from near 0 to near 1."""
    assert len(shares) == count
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5 < shares[-1] < 1


def test_verify_and_export_tell_the_share_that_is_done() -> None:
    """Once a session; an owner's export, too."""
    verified: list[float] = []
    exported: list[float] = []
    of_owner: list[float] = []
    with rs.Store("sqlite://") as store:
        for number in range(40):
            store.session(f"chat-{number}", create=True)
        store.verify(progress=verified.append)
        list(store.export_lines(progress=exported.append))
        list(store.for_owner("").export_lines(progress=of_owner.append))

    for shares in (verified, exported, of_owner):
        check_shares(shares, 40)
