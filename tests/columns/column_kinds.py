"""Columns of all types that aggregates read, and a comparison of results."""

import math

import pyarrow as pa
from hypothesis import strategies as st

from ekorn.functions.column_aggregates import Max, Min

NUMBERS = st.integers(-(2**40), 2**40)
COLUMNS = {
    "long": (pa.int64(), st.none() | NUMBERS),
    "long without nulls": (pa.int64(), NUMBERS),
    "byte": (pa.int8(), st.none() | st.integers(-128, 127)),
    "double": (pa.float64(), st.none() | st.floats()),
    "float": (pa.float32(), st.floats(width=32)),
    "bool": (pa.bool_(), st.none() | st.booleans()),
    "date": (pa.date32(), st.none() | st.dates()),
    "timestamp": (pa.timestamp("us"), st.none() | st.datetimes()),
    "text": (pa.string(), st.none() | st.text(max_size=3)),
    "decimal": (pa.decimal128(6, 2), st.none() | st.decimals(-9999, 9999, places=2)),
}


def alike(aggregate):
    """Return a comparison of results: floats to the last bit. Of the zeros, which are equal, any may be an extreme."""

    def same(one, other):
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(same, one, other))
        if not isinstance(one, float) or not isinstance(other, float):
            return one == other
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and (isinstance(aggregate, Min | Max) or math.copysign(1, one) == math.copysign(1, other))

    return same
