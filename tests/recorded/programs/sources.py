"""Collections and number sequences as sources, typed and untyped."""

import datetime
from decimal import Decimal

from pyflink.common import Row, RowKind, Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from tests.recorded.family import recorded


@recorded()
def number_sequence(env):
    """A number sequence includes both ends."""
    return env.from_source(NumberSequenceSource(-1, 3), WatermarkStrategy.no_watermarks(), "numbers")


@recorded(parallelism=2, ordered=False)
def number_sequence_mapped(env):
    """A number sequence read by two subtasks."""
    source = NumberSequenceSource(1, 10)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    return numbers.map(lambda x: x * x)


@recorded(quirk="The number is silently replaced by another.")
def source_big_int(env):
    """A collection of BIG_INT with a number beyond 64 bits."""
    return env.from_collection([2 ** 100], Types.BIG_INT()).map(lambda x: x)


@recorded(quirk="The bridge reads the number as a long and cannot make a BIG_INT of it.")
def source_big_int_small(env):
    """A collection of BIG_INT with a number that fits 64 bits."""
    return env.from_collection([2 ** 40], Types.BIG_INT()).map(lambda x: x)


@recorded()
def source_bool_for_int(env):
    """Bools in a collection of INT."""
    return env.from_collection([True, 2], Types.INT()).map(lambda x: x)


@recorded()
def source_containers(env):
    """A collection of lists and maps."""
    types = Types.TUPLE([Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.DOUBLE()),
                         Types.BASIC_ARRAY(Types.STRING()), Types.PRIMITIVE_ARRAY(Types.INT())])
    return env.from_collection([([1, 2], {"a": 0.5}, ["x"], [3])], types).map(lambda x: x)


@recorded()
def source_decimals(env):
    """A collection of decimals."""
    values = [(Decimal("1.10"), 1), (Decimal("-0.001"), 2)]
    return env.from_collection(values, Types.TUPLE([Types.BIG_DEC(), Types.INT()])).map(lambda x: x)


@recorded()
def source_float_for_int(env):
    """Floats in a collection of INT."""
    return env.from_collection([1.0, 2.7, -2.7], Types.INT()).map(lambda x: x)


@recorded()
def source_int_for_double(env):
    """Ints in a collection of DOUBLE."""
    return env.from_collection([1, 2], Types.DOUBLE()).map(lambda x: x)


@recorded()
def source_int_for_string(env):
    """An int in a collection of STRING."""
    return env.from_collection([1], Types.STRING()).map(lambda x: x)


@recorded()
def source_none_for_int(env):
    """None in a collection of INT."""
    return env.from_collection([None], Types.INT()).map(repr)


@recorded()
def source_rows(env):
    """A collection of ROW_NAMED given as tuples, lists, rows and dicts."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    values = [(1, "tuple"), [2, "list"], Row(3, "row"), Row(id=4, name="named row"), {"id": 5, "name": "dict"}]
    return env.from_collection(values, types).map(lambda row: row)


@recorded()
def source_rows_reordered(env):
    """A named row whose names come in another order than the declared ones."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([Row(name="a", id=1)], types).map(lambda row: row)


@recorded()
def source_rows_too_short(env):
    """A tuple with fewer fields than the ROW."""
    return env.from_collection([(1,)], Types.ROW([Types.INT(), Types.STRING()])).map(lambda row: row)


@recorded()
def source_rows_with_none(env):
    """None in the fields of a collection of ROW and kinds."""
    values = [(None, "a"), (1, None), Row.of_kind(RowKind.DELETE, 2, "b")]
    return env.from_collection(values, Types.ROW([Types.INT(), Types.STRING()])).map(lambda row: row)


@recorded()
def source_string_for_int(env):
    """A string in a collection of INT."""
    return env.from_collection(["1"], Types.INT()).map(lambda x: x)


@recorded()
def source_times(env):
    """A collection of dates and times."""
    types = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()])
    values = [(datetime.date(2024, 2, 29), datetime.time(1, 2, 3), datetime.datetime(2024, 2, 29, 1, 2, 3, 456789))]
    return env.from_collection(values, types).map(lambda x: x)


@recorded()
def source_tuples_with_none(env):
    """None in the fields of a collection of TUPLE."""
    values = [(None, "a"), (1, None)]
    return env.from_collection(values, Types.TUPLE([Types.INT(), Types.STRING()])).map(lambda pair: pair)


@recorded(quirk="The bridge reads a character as a string and cannot make a CHAR of it.")
def source_typed_char(env):
    """A collection of CHAR."""
    return env.from_collection(["a"], Types.CHAR()).map(lambda x: x)


@recorded()
def source_typed_collected(env):
    """A typed collection, collected without a function."""
    types = Types.TUPLE([Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(),
                         Types.STRING(), Types.BOOLEAN()])
    values = [(1, 2, 3, 4, 1.1, 2.2, "s", True), (300, 43878, 2 ** 31, 2 ** 40, 16777217.0, 1e300, "", False)]
    return env.from_collection(values, types)


@recorded()
def source_typed_int(env):
    """A collection of INT at the top level, with numbers that do not fit."""
    return env.from_collection([1, 2 ** 31, -2 ** 31 - 1, 2 ** 32], Types.INT()).map(lambda x: x)


@recorded()
def source_typed_long_too_large(env):
    """A collection with a number beyond LONG."""
    return env.from_collection([2 ** 63], Types.LONG()).map(lambda x: x)


@recorded()
def source_typed_seen(env):
    """A typed collection as a function sees it: narrowed to the declared types."""
    types = Types.TUPLE([Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(),
                         Types.STRING(), Types.BOOLEAN()])
    values = [(1, 2, 3, 4, 1.1, 2.2, "s", True), (300, 43878, 2 ** 31, 2 ** 40, 16777217.0, 1e300, "", False)]
    return env.from_collection(values, types).map(lambda x: x)
