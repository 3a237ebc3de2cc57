"""Records that hypothesis makes for the models."""

from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "b", "c", "d"]) | st.sampled_from([-2, -1, 0, 1, 1 << 70]) | st.just((1, "x"))
RECORDS = st.lists(st.tuples(KEYS, st.integers(-5, 20)), max_size=30) | st.just([("a", 1)] * 40)  # the last is skew
