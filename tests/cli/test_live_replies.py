"""The commands that follow and stop a reply of another process."""

from __future__ import annotations

from pathlib import Path

import reasoning_store as rs
from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here
from tests.faces.recorder import Recorder


def test_show_follows_a_reply_to_its_end(here: Here) -> None:
    """The conversation first, then the reply as it arrives."""
    with rs.Store(f"sqlite:///{Path('chat.db').absolute()}") as store:
        recorder = Recorder(store.session("chat-42"))
        recorder.send("<think>slowly</think>one")
        recorder.end_when_followed()
        ran = here("show chat-42 --follow --last 1")

    assert ran.code == Exit.DONE
    assert ran.out.endswith("[...] assistant\n  | slowly\n  one\n")
    assert here("show chat-42 --follow --json").code == Exit.USAGE


def test_stop_ends_a_reply_and_says_whether_there_was_one(here: Here) -> None:
    """It is stored with the reason."""
    with rs.Store(f"sqlite:///{Path('chat.db').absolute()}") as store:
        recorder = Recorder(store.session("chat-42"))
        recorder.send("one")
        ran = here("stop chat-42 --reason late")
        list(store.session("chat-42").follow())  # to its end
        recorder.end()
        (last,) = store.session("chat-42").history(limit=1)

    assert ran.out == "stopped\n"
    assert last.annotations["stopReason"] == "late"
    assert not here("--json stop chat-42").data["stopped"]
