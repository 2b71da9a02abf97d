"""What happens to a session in which things are erased, in any order that Hypothesis thinks of."""

from __future__ import annotations

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
