"""Declared basic types: which values fit, and what becomes of the values that do not."""

import datetime
from decimal import Decimal

from pyflink.common import Instant, Types
from tests.recorded.family import recorded


@recorded()
def type_big_dec(env):
    """BIG_DEC collected keeps digits and scale."""
    values = ["0", "1.10", "1E-30", "12345678901234567890123.456"]
    return env.from_collection(values).map(Decimal, Types.BIG_DEC())


@recorded(quirk="The exponent is written out, though not between functions.")
def type_big_dec_exponent(env):
    """BIG_DEC with a positive exponent, collected."""
    return env.from_collection(["-1E+3"]).map(Decimal, Types.BIG_DEC())


@recorded()
def type_big_dec_seen(env):
    """BIG_DEC as the next function sees it behind an exchange."""
    values = ["0", "1.10", "-1E+3", "1E-30", "12345678901234567890123.456"]
    return env.from_collection(values).map(Decimal, Types.BIG_DEC()).rebalance().map(lambda x: x)


@recorded(quirk="BIG_INT does not work as an output type: it is written as 64 bits and read as something else.")
def type_big_int(env):
    """BIG_INT as the output of a function."""
    return env.from_collection([0, -1, 2 ** 62]).map(lambda x: x, Types.BIG_INT())


@recorded(quirk="BIG_INT does not work as an output type.")
def type_big_int_too_large(env):
    """BIG_INT beyond 64 bits as the output of a function."""
    return env.from_collection([2 ** 100]).map(lambda x: x, Types.BIG_INT())


@recorded()
def type_bool_for_int(env):
    """A bool where INT is declared."""
    return env.from_collection([True]).map(lambda x: x, Types.INT())


@recorded()
def type_boolean(env):
    """BOOLEAN as the output of a function."""
    return env.from_collection([True, False]).map(lambda x: x, Types.BOOLEAN())


@recorded()
def type_boolean_from_int(env):
    """Integers for a BOOLEAN."""
    return env.from_collection([0, 1, 2]).map(lambda x: x, Types.BOOLEAN())


@recorded()
def type_boolean_from_string(env):
    """A string for a BOOLEAN."""
    return env.from_collection(["true"]).map(lambda x: x, Types.BOOLEAN())


@recorded()
def type_byte(env):
    """BYTE as the output of a function."""
    return env.from_collection([0, -128, 127]).map(lambda x: x, Types.BYTE())


@recorded()
def type_byte_too_large(env):
    """An integer that does not fit BYTE."""
    return env.from_collection([128, 300]).map(lambda x: x, Types.BYTE())


@recorded()
def type_bytes_for_string(env):
    """Bytes where STRING is declared."""
    return env.from_collection([b"a"]).map(lambda x: x, Types.STRING())


@recorded(quirk="Every character is lost.")
def type_char(env):
    """CHAR collected."""
    return env.from_collection(["a", "é", "你"]).map(lambda x: x, Types.CHAR())


@recorded(quirk="As in type_char.")
def type_char_of_two(env):
    """Two characters for a CHAR."""
    return env.from_collection(["ab"]).map(lambda x: x, Types.CHAR())


@recorded(quirk="Characters are written in one form and read in another.")
def type_char_seen(env):
    """CHAR as the next function sees it behind an exchange."""
    return env.from_collection(["a", "é"]).map(lambda x: x, Types.CHAR()).rebalance().map(lambda x: x)


@recorded()
def type_decimal_for_double(env):
    """A Decimal where DOUBLE is declared."""
    return env.from_collection(["1.5"]).map(Decimal, Types.DOUBLE())


@recorded()
def type_double(env):
    """DOUBLE as the output of a function."""
    values = [1.1, -0.0, float("nan"), float("inf"), 5e-324, 1e308]
    return env.from_collection(values).map(lambda x: x, Types.DOUBLE())


@recorded()
def type_float(env):
    """FLOAT collected: the shortest digits that give the same 32-bit number."""
    values = [1.1, -0.0, 16777217.0, 0.1, 1e10, 1e-45, 3.4028234663852886e38]
    return env.from_collection(values).map(lambda x: x, Types.FLOAT())


@recorded()
def type_float_for_int(env):
    """A float where INT is declared."""
    return env.from_collection([1.0, 2.7]).map(lambda x: x, Types.INT())


@recorded()
def type_float_for_long(env):
    """A float where LONG is declared."""
    return env.from_collection([1.0, 2.7]).map(lambda x: x, Types.LONG())


@recorded(quirk="FLOATs are collected by reading their text as a literal, which nan is not.")
def type_float_nan_collected(env):
    """FLOAT nan collected."""
    return env.from_collection([float("nan")]).map(lambda x: x, Types.FLOAT())


@recorded()
def type_float_seen(env):
    """FLOAT as the next function sees it behind an exchange."""
    values = [1.1, -0.0, 16777217.0, float("nan"), float("inf"), 1e-45, 3]
    return env.from_collection(values).map(lambda x: x, Types.FLOAT()).rebalance().map(lambda x: x)


@recorded()
def type_float_too_large(env):
    """A number beyond FLOAT."""
    return env.from_collection([1e300]).map(lambda x: x, Types.FLOAT()).rebalance().map(lambda x: x)


@recorded()
def type_instant(env):
    """INSTANT as the output of a function."""
    return (env.from_collection([0, 1500, -1]).map(Instant.of_epoch_milli, Types.INSTANT())
            .rebalance().map(lambda instant: (instant.seconds, instant.nanos)))


@recorded(quirk="The bridge cannot pickle an instant.")
def type_instant_collected(env):
    """INSTANT collected."""
    return env.from_collection([0, 1500]).map(Instant.of_epoch_milli, Types.INSTANT())


@recorded()
def type_int(env):
    """INT as the output of a function."""
    return env.from_collection([0, -2 ** 31, 2 ** 31 - 1]).map(lambda x: x, Types.INT())


@recorded()
def type_int_for_double(env):
    """An int where DOUBLE is declared, seen behind an exchange."""
    return env.from_collection([1, 2 ** 60]).map(lambda x: x, Types.DOUBLE()).rebalance().map(lambda x: x)


@recorded()
def type_int_for_double_chained(env):
    """An int where DOUBLE is declared, seen by a chained function, is not converted."""
    return env.from_collection([1]).map(lambda x: x, Types.DOUBLE()).map(lambda x: x)


@recorded()
def type_int_for_double_collected(env):
    """An int where DOUBLE is declared, collected."""
    return env.from_collection([1]).map(lambda x: x, Types.DOUBLE())


@recorded()
def type_int_for_string(env):
    """An int where STRING is declared."""
    return env.from_collection([1]).map(lambda x: x, Types.STRING())


@recorded()
def type_int_too_large(env):
    """An integer that does not fit INT."""
    return env.from_collection([2 ** 31]).map(lambda x: x, Types.INT())


@recorded()
def type_long(env):
    """LONG as the output of a function."""
    return env.from_collection([0, -2 ** 63, 2 ** 63 - 1]).map(lambda x: x, Types.LONG())


@recorded()
def type_long_too_large(env):
    """An integer that does not fit LONG."""
    return env.from_collection([2 ** 63]).map(lambda x: x, Types.LONG())


@recorded()
def type_misfit_chained(env):
    """A value that does not fit its declared type passes between chained functions."""
    return env.from_collection([1]).map(lambda x: "text", Types.INT()).map(lambda x: (x,))


@recorded()
def type_none_for_int(env):
    """None where INT is declared."""
    return env.from_collection([1]).map(lambda x: None, Types.INT())


@recorded(quirk="The collecting iterator takes the null for its end; later records are lost.")
def type_none_for_string(env):
    """None where STRING is declared."""
    return env.from_collection(["a", None, "b"]).map(lambda x: x, Types.STRING())


@recorded()
def type_none_for_string_seen(env):
    """None where STRING is declared, behind an exchange."""
    return (env.from_collection(["a", None, "b"]).map(lambda x: x, Types.STRING())
            .rebalance().map(repr))


@recorded()
def type_none_for_tuple(env):
    """None where TUPLE is declared."""
    return env.from_collection([1]).map(lambda x: None, Types.TUPLE([Types.INT()]))


@recorded()
def type_short(env):
    """SHORT as the output of a function."""
    return env.from_collection([0, -2 ** 15, 2 ** 15 - 1]).map(lambda x: x, Types.SHORT())


@recorded()
def type_short_too_large(env):
    """An integer that does not fit SHORT."""
    return env.from_collection([2 ** 15, 70000]).map(lambda x: x, Types.SHORT())


@recorded()
def type_sql_date(env):
    """SQL_DATE as the output of a function."""
    dates = [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(1900, 1, 1)]
    return env.from_collection(dates).map(lambda x: x, Types.SQL_DATE())


@recorded(quirk="Java's old calendar shifts the day.")
def type_sql_date_ancient(env):
    """SQL_DATE long before 1582, collected."""
    return env.from_collection([datetime.date(1, 1, 1)]).map(lambda x: x, Types.SQL_DATE())


@recorded()
def type_sql_time(env):
    """SQL_TIME as the output of a function."""
    times = [datetime.time(0, 0, 0), datetime.time(23, 59, 59), datetime.time(1, 2, 3)]
    return env.from_collection(times).map(lambda x: x, Types.SQL_TIME())


@recorded(quirk="The fraction is lost on collecting; between functions milliseconds are kept.")
def type_sql_time_fraction(env):
    """SQL_TIME with fractions of a second, collected."""
    return env.from_collection([datetime.time(1, 2, 3, 456789)]).map(lambda x: x, Types.SQL_TIME())


@recorded(quirk="The bridge returns bytes where a timestamp is expected.")
def type_sql_timestamp(env):
    """SQL_TIMESTAMP as the output of a function, collected."""
    return env.from_collection([datetime.datetime(1970, 1, 1)]).map(lambda x: x, Types.SQL_TIMESTAMP())


@recorded()
def type_sql_timestamp_seen(env):
    """SQL_TIMESTAMP as the next function sees it behind an exchange: to the millisecond."""
    stamps = [datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 456789),
              datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)]
    return env.from_collection(stamps).map(lambda x: x, Types.SQL_TIMESTAMP()).rebalance().map(lambda x: x)


@recorded()
def type_string(env):
    """STRING as the output of a function."""
    values = ["", "a", "é你😀", "\x00\n", "'\""]
    return env.from_collection(values).map(lambda x: x, Types.STRING()).rebalance().map(lambda x: x, Types.STRING())


@recorded()
def type_string_for_double(env):
    """A string where DOUBLE is declared."""
    return env.from_collection(["1.5"]).map(lambda x: x, Types.DOUBLE())


@recorded()
def type_string_for_int(env):
    """A string where INT is declared."""
    return env.from_collection(["1"]).map(lambda x: x, Types.INT())


@recorded()
def type_times_seen(env):
    """Dates and times as the next function sees them behind an exchange."""
    values = [(datetime.date(2024, 2, 29), datetime.time(1, 2, 3, 456789),
               datetime.datetime(2024, 2, 29, 1, 2, 3, 456789), Instant(1, 5))]
    types = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.INSTANT()])
    return env.from_collection(values).map(lambda x: x, types).rebalance().map(lambda x: x)
