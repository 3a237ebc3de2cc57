"""The order in which a keyed operator of a BATCH job receives its keys."""

import datetime

from pyflink.common import Types
from tests.recorded.family import recorded


@recorded(mode="BATCH")
def batch_order_bool_typed(env):
    """The order of keys of type BOOLEAN."""
    return env.from_collection([True, False, True]).key_by(lambda x: x, Types.BOOLEAN()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_date_typed(env):
    """The order of keys of type SQL_DATE."""
    days = [(2024, 1, 1), (1969, 12, 31), (1970, 1, 1), (2020, 5, 5)]
    keys = [datetime.date(*day) for day in days]
    return env.from_collection(keys).key_by(lambda x: x, Types.SQL_DATE()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_double_typed(env):
    """The order of keys of type DOUBLE."""
    keys = [1.5, 0.0, -1.5, 2.0, -2.0, 100.0, -0.0, float("inf"), float("-inf"), 1e-9]
    return env.from_collection(keys).key_by(lambda x: x, Types.DOUBLE()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_float(env):
    """The order of untyped float keys."""
    keys = [1.5, 0.0, -1.5, 2.0, -2.0, 100.0, -0.0, float("inf"), float("-inf"), 1e-9]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_int(env):
    """The order of untyped int keys."""
    keys = [5, 1, 0, -1, 10, 300, -300, 255, 256, 65535, 65536, 2 ** 31, -2 ** 31, 2 ** 40, -2 ** 40, 2 ** 63, 2, -2]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_int_typed(env):
    """The order of keys of type INT."""
    keys = [5, 1, 0, -1, 10, 300, -300, 255, 256, 65535, 65536, 2 ** 31 - 1, -2 ** 31, 2, -2]
    return env.from_collection(keys).key_by(lambda x: x, Types.INT()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_long_typed(env):
    """The order of keys of type LONG."""
    keys = [5, 1, 0, -1, 10, 300, -300, 2 ** 40, -2 ** 40, 2 ** 63 - 1, -2 ** 63, 2, -2]
    return env.from_collection(keys).key_by(lambda x: x, Types.LONG()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_many(env):
    """The order of more str keys than fit one length: user_0 to user_29."""
    keys = [f"user_{i * 7 % 30}" for i in range(30)]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_many_typed(env):
    """The same keys with the type STRING."""
    keys = [f"user_{i * 7 % 30}" for i in range(30)]
    return env.from_collection(keys).key_by(lambda x: x, Types.STRING()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_mixed(env):
    """The order of untyped keys of several types."""
    keys = ["a", 1, 1.0, True, False, (1,), b"a", "b", 0, -1, "", 300]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_short_typed(env):
    """The order of keys of type SHORT."""
    keys = [5, 1, 0, -1, 10, 300, -300, 255, 256, 2, -2]
    return env.from_collection(keys).key_by(lambda x: x, Types.SHORT()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_str(env):
    """The order of untyped str keys of several lengths."""
    keys = ["b", "a", "ccc", "aa", "", "B", "bb", "ab", "é", "z", "aaa", "abcdefghij", "你"]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_str_typed(env):
    """The order of keys of type STRING."""
    keys = ["b", "a", "ccc", "aa", "", "B", "bb", "ab", "é", "z", "aaa", "abcdefghij", "你", "😀"]
    return env.from_collection(keys).key_by(lambda x: x, Types.STRING()).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_tuple(env):
    """The order of untyped tuple keys."""
    keys = [("b", 1), ("a", 2), ("a", 1), ("aa", 1), ("a", -1), ("", 9), ("a", 300), ("a",), ("a", 1, 1)]
    return env.from_collection(keys).key_by(lambda x: x).reduce(lambda a, b: a)


@recorded(mode="BATCH")
def batch_order_tuple_typed(env):
    """The order of keys of a TUPLE type."""
    keys = [("b", 1), ("a", 2), ("a", 1), ("aa", 1), ("a", -1), ("", 9), ("a", 300), ("c", 0)]
    keyed = env.from_collection(keys).key_by(lambda x: x, Types.TUPLE([Types.STRING(), Types.INT()]))
    return keyed.reduce(lambda a, b: a)
