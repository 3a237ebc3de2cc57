"""Columns of every type, and values of each."""

import datetime
import json

from hypothesis import strategies as st

from ekorn.common import Row
from ekorn.table import DataTypes
from ekorn.types.time import Instant

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WIDE = DataTypes.ROW(
    [
        DataTypes.FIELD("flag", DataTypes.BOOLEAN()),
        DataTypes.FIELD("tiny", DataTypes.TINYINT()),
        DataTypes.FIELD("int", DataTypes.INT()),
        DataTypes.FIELD("real", DataTypes.FLOAT()),
        DataTypes.FIELD("double", DataTypes.DOUBLE()),
        DataTypes.FIELD("price", DataTypes.DECIMAL(12, 3)),
        DataTypes.FIELD("day", DataTypes.DATE()),
        DataTypes.FIELD("clock", DataTypes.TIME(3)),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
        DataTypes.FIELD("fine", DataTypes.TIMESTAMP(6)),
        DataTypes.FIELD("instant", DataTypes.TIMESTAMP_LTZ(6)),
        DataTypes.FIELD("data", DataTypes.BYTES()),
        DataTypes.FIELD("days", DataTypes.ARRAY(DataTypes.DATE())),
        DataTypes.FIELD(
            "inner",
            DataTypes.ROW(
                [
                    DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
                    DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
                ]
            ),
        ),
    ]
)
WITH_MAP = DataTypes.ROW([*WIDE, DataTypes.FIELD("map", DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()))])

MILLIS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
VALUES = {
    "flag": st.booleans(),
    "tiny": st.integers(-128, 127),
    "int": st.integers(-(2**31), 2**31 - 1),
    "real": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "price": st.decimals(-(10**8), 10**8, places=3),
    "day": st.dates(),
    "clock": st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    "at": MILLIS,
    "fine": st.datetimes(),
    "instant": st.builds(
        lambda seconds, micros: Instant(seconds, micros * 1000), st.integers(0, 2**33), st.integers(0, 999_999)
    ),
    "data": st.binary(max_size=5),
    "days": st.lists(st.none() | st.dates(), max_size=3),
    "inner": st.builds(Row, at=st.none() | MILLIS, tags=st.none() | st.lists(st.none() | TEXTS, max_size=2)),
    "map": st.dictionaries(TEXTS, st.none() | st.integers(0, 9), max_size=2),
}


AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "customer", "type": ["null", "string"]},
            {"name": "amount", "type": "long"},
            {"name": "real", "type": "float"},
            {"name": "data", "type": ["null", "bytes"]},
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "counts", "type": {"type": "map", "values": "int"}},
            {
                "name": "inner",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "Inner",
                        "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
                    },
                ],
            },
        ],
    }
)
AVRO_ROWS = st.builds(
    Row,
    customer=st.none() | TEXTS,
    amount=st.integers(-(2**63), 2**63 - 1),
    real=VALUES["real"],
    data=st.none() | st.binary(max_size=5),
    day=st.none() | st.dates(),
    at=st.none() | MILLIS,
    kind=st.sampled_from("AB"),
    tags=st.lists(TEXTS, max_size=2),
    counts=st.dictionaries(TEXTS, st.integers(0, 9), max_size=2),
    inner=st.none() | st.builds(Row, at=st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))),
)
