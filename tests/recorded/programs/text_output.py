"""Records as lines of text: print and file sinks."""

import datetime
from decimal import Decimal

from pyflink.common import Encoder, Row, RowKind, Types
from pyflink.datastream.connectors.file_system import FileSink
from tests.recorded.family import recorded


@recorded(mode="BATCH", result="files")
def file_batch(env, directory):
    """A file sink in BATCH mode."""
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    (env.from_collection([("b", 1), ("a", 2), ("b", 3)]).key_by(lambda x: x[0]).sum(1)
     .map(lambda x: f"{x[0]} {x[1]}", Types.STRING()).sink_to(sink))


@recorded(parallelism=2, ordered=False, result="files")
def file_two_subtasks(env, directory):
    """A file sink at parallelism 2."""
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    env.from_collection([f"line {n}" for n in range(10)], Types.STRING()).sink_to(sink)


@recorded(ordered=False, result="files")
def file_typed_row(env, directory):
    """A file sink of typed rows."""
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    env.from_collection([(1, "a"), (2, None)], types).sink_to(sink)


@recorded(result="files")
def file_typed_string(env, directory):
    """A file sink of strings, in order."""
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    env.from_collection(["b", "a", "", "é"], Types.STRING()).map(lambda x: x + "!", Types.STRING()).sink_to(sink)


@recorded(ordered=False, result="files")
def file_typed_tuple(env, directory):
    """A file sink of typed tuples."""
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    types = Types.TUPLE([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE()])
    env.from_collection([(1, "a", True, 1e10), (2, "b c", False, 0.5)], types).sink_to(sink)


@recorded(
    ordered=False,
    result="files",
    quirk="Untyped records are byte arrays to the sink, and Java writes their identity.",
)
def file_untyped(env, directory):
    """A file sink with the simple string encoder, of untyped records."""
    sink = FileSink.for_row_format(directory, Encoder.simple_string_encoder()).build()
    env.from_collection([("a", 1), "text"]).map(lambda x: x).sink_to(sink)


@recorded(result="stdout")
def print_identifier(env):
    """print with an identifier."""
    env.from_collection([1, 2]).map(lambda x: x).print("id")


@recorded(result="stdout")
def print_keyed(env):
    """print of a keyed stream shows the values; its identifier is lost."""
    env.from_collection([("a", 1)]).key_by(lambda x: x[0]).print("id")


@recorded(result="stdout")
def print_reduce(env):
    """print behind a rolling aggregate."""
    env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(lambda x: x[0]).sum(1).print()


@recorded(parallelism=2, ordered=False, result="stdout")
def print_two_subtasks(env):
    """print at parallelism 2 names the subtask."""
    env.from_collection([0, 1]).broadcast().map(lambda x: x).print()


@recorded(parallelism=2, ordered=False, result="stdout")
def print_two_subtasks_identifier(env):
    """print at parallelism 2 with an identifier."""
    env.from_collection([0, 1]).broadcast().map(lambda x: x).print("id")


@recorded(result="stdout")
def print_typed_basic(env):
    """print of typed plain values."""
    values = [1.0, 0.1, 1e7, 12345678.0, 1e-3, 1e-4, -0.0, float("nan"), float("inf")]
    env.from_collection(values, Types.DOUBLE()).print()


@recorded(result="stdout")
def print_typed_float(env):
    """print of FLOAT values."""
    env.from_collection([1.1, 0.1, 1e7, 16777217.0, 1e-4, 3.4e38], Types.FLOAT()).print()


@recorded(result="stdout")
def print_typed_row(env):
    """print of typed rows."""
    types = Types.ROW([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE(), Types.LIST(Types.INT())])
    values = [Row(1, "a", True, 0.5, [1, 2]), Row.of_kind(RowKind.DELETE, None, None, False, 1e10, [])]
    env.from_collection(values, types).map(lambda row: row, types).print()


@recorded(result="stdout")
def print_typed_row_named(env):
    """print of typed rows with names."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    env.from_collection([(1, "a"), (2, None)], types).print()


@recorded(result="stdout")
def print_typed_string(env):
    """print of strings with line breaks and other scripts."""
    env.from_collection(["a", "", "two\nlines", "é你😀"], Types.STRING()).print()


@recorded(result="stdout")
def print_typed_times(env):
    """print of dates, times and decimals."""
    types = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BIG_DEC()])
    date, time, stamp = datetime.date, datetime.time, datetime.datetime
    values = [(date(2024, 2, 29), time(1, 2, 3), stamp(2024, 2, 29, 1, 2, 3), Decimal("1E+3")),
              (date(1970, 1, 1), time(0, 0), stamp(2024, 1, 1, 1, 2, 3, 456700), Decimal("1.10"))]
    env.from_collection(values, types).print()


@recorded(result="stdout")
def print_typed_tuple(env):
    """print of typed tuples."""
    types = Types.TUPLE([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE(), Types.FLOAT(),
                         Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT())])
    values = [(1, "a", True, 0.5, 1.1, [1, 2], {"k": 1}), (2, "b c", False, 1e10, 1e-5, [], {})]
    env.from_collection(values, types).print()


@recorded(result="stdout")
def print_untyped(env):
    """print writes str() of untyped records."""
    (env.from_collection([1, 1.0, "text", ("a", 1), [1, "b"], {"k": 1}, Row(1, "a"), Row(id=1), True])
     .map(lambda x: x).print())


@recorded(result="stdout", quirk="Bytes are handed on as the text, which they are not.")
def print_untyped_bytes(env):
    """print of untyped bytes."""
    env.from_collection([b"bytes"]).map(lambda x: x).print()


@recorded(result="stdout")
def print_untyped_source(env):
    """print directly behind an untyped collection."""
    env.from_collection([1, "text", ("a", 1), None]).print()
