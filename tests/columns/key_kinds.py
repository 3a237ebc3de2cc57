"""Types of keys with values of them, among them such as are easily confused."""

from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = st.text(max_size=20) | st.sampled_from(["", "a", "a\0", "abcdefgh", "abcdefgh\0", "abcdefghi"])
DOUBLES = st.floats() | st.sampled_from([0.0, -0.0, float("nan"), 1.0])
STRUCT = pa.struct([("d", pa.float64()), ("n", pa.list_(pa.float64()))])
KINDS = {
    "text": (pa.string(), st.none() | TEXTS),
    "large text": (pa.large_string(), st.none() | TEXTS),
    "bytes": (pa.binary(), st.none() | st.binary(max_size=20)),
    "long": (pa.int64(), st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "bool": (pa.bool_(), st.none() | st.booleans()),
    "double": (pa.float64(), st.none() | DOUBLES),
    "float": (pa.float32(), st.floats(width=32)),
    "date": (pa.date32(), st.none() | st.dates()),
    "timestamp": (pa.timestamp("us"), st.none() | st.datetimes()),
    "time": (pa.time64("us"), st.none() | st.times()),
    "decimal": (pa.decimal128(10, 2), st.none() | st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2))),
    "doubles": (pa.list_(pa.float64()), st.none() | st.lists(st.none() | DOUBLES, max_size=2)),
    "struct": (
        STRUCT,
        st.none() | st.fixed_dictionaries({"d": st.none() | DOUBLES, "n": st.lists(DOUBLES, max_size=1)}),
    ),
    "list": (pa.list_(pa.int64()), st.none() | st.lists(st.integers(-2, 2), max_size=3)),
}
