"""What happens to a session in which things are erased, in any order that Hypothesis thinks of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from .histories import answering, calling, entries

Step = tuple[str, int, Any]
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.integers(0, 3),
            st.lists(
                entries() | st.sampled_from([calling("a"), calling("a", "b"), answering("a")]),
                min_size=1,
                max_size=4,
            ),
        ),
        st.tuples(st.just("fork"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("erase"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("reasoning"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("all reasoning"), st.just(0), st.just(0)),
    ),
    min_size=2,
    max_size=9,
)


def found(path: Path, name: str) -> dict[str, int]:
    """In which files of a database a name can still be read, and how often."""
    return {
        file.name: count
        for file in path.parent.iterdir()
        if file.name.startswith(path.name)
        for count in [file.read_bytes().count(f"<{name}>".encode())]
        if count
    }
