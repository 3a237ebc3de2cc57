"""Declared composite types: rows, tuples, lists, arrays, maps and pickled objects."""

from pyflink.common import Row, RowKind, Types
from tests.recorded.family import recorded


@recorded()
def type_arrays_seen(env):
    """Arrays as the next function sees them behind an exchange."""
    types = Types.TUPLE([Types.PRIMITIVE_ARRAY(Types.INT()), Types.PRIMITIVE_ARRAY(Types.DOUBLE()),
                         Types.BASIC_ARRAY(Types.STRING()), Types.OBJECT_ARRAY(Types.TUPLE([Types.INT()]))])
    return (env.from_collection([1]).map(lambda x: ([1, 2], [0.5], ["a", "b"], [(1,), (2,)]), types)
            .rebalance().map(lambda x: x))


@recorded()
def type_basic_array(env):
    """BASIC_ARRAY as the output of a function."""
    return env.from_collection([1]).map(lambda x: ["a", "b"], Types.BASIC_ARRAY(Types.STRING()))


@recorded()
def type_list(env):
    """LIST as the output of a function."""
    return env.from_collection([0, 2]).map(lambda n: list(range(n)), Types.LIST(Types.INT()))


@recorded()
def type_list_seen(env):
    """LIST as the next function sees it behind an exchange."""
    return (env.from_collection([[], [1], [2, 3]]).map(lambda x: x, Types.LIST(Types.LONG()))
            .rebalance().map(lambda x: x))


@recorded()
def type_list_with_none(env):
    """None in a LIST."""
    return env.from_collection([1]).map(lambda x: ["a", None], Types.LIST(Types.STRING()))


@recorded()
def type_map(env):
    """MAP as the output of a function."""
    return env.from_collection([0, 1]).map(lambda n: {"k": n} if n else {}, Types.MAP(Types.STRING(), Types.INT()))


@recorded()
def type_map_seen(env):
    """MAP with several entries and a None value, behind an exchange."""
    types = Types.MAP(Types.STRING(), Types.INT())
    return (env.from_collection([1]).map(lambda n: {"b": 1, "a": None, "c": 3}, types)
            .rebalance().map(lambda x: (type(x).__name__, sorted(x.items()))))


@recorded()
def type_object_array(env):
    """OBJECT_ARRAY as the output of a function."""
    types = Types.OBJECT_ARRAY(Types.TUPLE([Types.INT(), Types.STRING()]))
    return env.from_collection([1]).map(lambda x: [(1, "a"), (2, "b")], types)


@recorded()
def type_pickled(env):
    """PICKLED_BYTE_ARRAY is what an omitted type means."""
    return env.from_collection([1]).map(lambda x: {"any": (x, None)}, Types.PICKLED_BYTE_ARRAY())


@recorded(quirk="The field is collected as its pickled bytes.")
def type_pickled_inside(env):
    """A pickled field inside a TUPLE, collected."""
    types = Types.TUPLE([Types.INT(), Types.PICKLED_BYTE_ARRAY()])
    return env.from_collection([1]).map(lambda x: (x, {"any": [x, None]}), types)


@recorded()
def type_pickled_inside_seen(env):
    """A pickled field inside a TUPLE, behind an exchange."""
    types = Types.TUPLE([Types.INT(), Types.PICKLED_BYTE_ARRAY()])
    return (env.from_collection([1]).map(lambda x: (x, {"any": [x, None]}), types)
            .rebalance().map(lambda x: x))


@recorded()
def type_primitive_array(env):
    """PRIMITIVE_ARRAY as the output of a function."""
    return env.from_collection([1]).map(lambda x: [1, 2], Types.PRIMITIVE_ARRAY(Types.INT()))


@recorded()
def type_primitive_array_of_bytes(env):
    """PRIMITIVE_ARRAY of BYTE holds bytes."""
    return (env.from_collection([1]).map(lambda x: b"\x01\xff", Types.PRIMITIVE_ARRAY(Types.BYTE()))
            .rebalance().map(lambda x: x))


@recorded()
def type_row(env):
    """ROW as the output of a function; its fields get the names f0, f1."""
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a"), Types.ROW([Types.INT(), Types.STRING()]))


@recorded()
def type_row_chained(env):
    """A row between chained functions is the object itself."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1]).map(lambda x: Row(x, "a"), types).map(lambda row: (row, repr(row)))


@recorded()
def type_row_from_dict(env):
    """A dict where a ROW is declared."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: {"id": x, "name": "a"}, types)


@recorded()
def type_row_from_tuple(env):
    """A tuple where a ROW is declared."""
    return env.from_collection([1, 2]).map(lambda x: (x, "a"), Types.ROW([Types.INT(), Types.STRING()]))


@recorded()
def type_row_in_row_collected(env):
    """A row inside a row, collected."""
    types = Types.ROW([Types.INT(), Types.ROW([Types.INT()])])
    return env.from_collection([Row(1, Row(2))]).map(lambda row: row, types)


@recorded(quirk="The bridge cannot read it; between functions it works.")
def type_row_in_row_none_collected(env):
    """None for a row inside a row, collected."""
    types = Types.ROW([Types.INT(), Types.ROW([Types.INT()])])
    return env.from_collection([Row(1, None)]).map(lambda row: row, types)


@recorded()
def type_row_in_row_with_none_collected(env):
    """None inside a row inside a row, collected."""
    types = Types.ROW([Types.INT(), Types.ROW([Types.INT()])])
    return env.from_collection([Row(1, Row(None))]).map(lambda row: row, types)


@recorded()
def type_row_kinds(env):
    """Row kinds travel with the rows."""
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = [Row.of_kind(kind, n) for n, kind in enumerate(kinds)]
    return env.from_collection(rows).map(lambda row: row, Types.ROW([Types.INT()]))


@recorded()
def type_row_kinds_seen(env):
    """Row kinds as the next function sees them behind an exchange."""
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = [Row.of_kind(kind, n) for n, kind in enumerate(kinds)]
    return (env.from_collection(rows).map(lambda row: row, Types.ROW([Types.INT()]))
            .rebalance().map(lambda row: (str(row.get_row_kind()), row[0])))


@recorded()
def type_row_named(env):
    """ROW_NAMED gives its names to rows built without any."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a"), types)


@recorded()
def type_row_named_seen(env):
    """ROW_NAMED as the next function sees it behind an exchange."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    rows = env.from_collection([1, 2]).map(lambda x: Row(x, "a"), types)
    return rows.rebalance().map(lambda row: (row, repr(row), row[0], row.id, row["name"], row.as_dict()))


@recorded()
def type_row_seen(env):
    """ROW as the next function sees it behind an exchange."""
    rows = env.from_collection([1, 2]).map(lambda x: Row(x, "a"), Types.ROW([Types.INT(), Types.STRING()]))
    return rows.rebalance().map(lambda row: (row, repr(row), row[0], row.f1, row["f1"], len(row), list(row)))


@recorded()
def type_row_too_long(env):
    """A row with more fields than declared."""
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a", 3), Types.ROW([Types.INT(), Types.STRING()]))


@recorded()
def type_row_untyped(env):
    """Rows without a declared type travel pickled and keep names and kind."""
    rows = [Row(1, "a"), Row(id=1, name="a"), Row.of_kind(RowKind.DELETE, 1), Row()]
    return env.from_collection(rows).map(lambda row: row)


@recorded()
def type_row_with_none(env):
    """None in the fields of a ROW, and a row inside, behind an exchange."""
    types = Types.ROW([Types.INT(), Types.STRING(), Types.ROW([Types.INT()])])
    rows = [Row(None, "a", Row(1)), Row(1, None, None), Row(2, "b", Row(None))]
    return env.from_collection(rows).map(lambda row: row, types).rebalance().map(lambda row: row)


@recorded()
def type_row_with_none_collected(env):
    """None in the fields of a ROW, collected."""
    types = Types.ROW([Types.INT(), Types.STRING()])
    return env.from_collection([Row(None, "a"), Row(1, None)]).map(lambda row: row, types)


@recorded()
def type_row_with_own_names(env):
    """A row built with names in another order than declared."""
    types = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: Row(name="a", id=x), types)


@recorded()
def type_tuple(env):
    """TUPLE as the output of a function, with a tuple inside."""
    types = Types.TUPLE([Types.INT(), Types.TUPLE([Types.STRING(), Types.DOUBLE()]), Types.BOOLEAN()])
    return env.from_collection([1, 2]).map(lambda x: (x, ("s", x / 2), x == 1), types)


@recorded()
def type_tuple_for_list(env):
    """A tuple where a LIST is declared."""
    return env.from_collection([(2, 3)]).map(lambda x: x, Types.LIST(Types.LONG()))


@recorded()
def type_tuple_from_list(env):
    """A list where a TUPLE is declared."""
    types = Types.TUPLE([Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: [x, "a"], types)


@recorded()
def type_tuple_from_row(env):
    """A row where a TUPLE is declared."""
    types = Types.TUPLE([Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: Row(x, "a"), types)


@recorded()
def type_tuple_too_long(env):
    """A tuple with more fields than declared."""
    return env.from_collection([1, 2]).map(lambda x: (x, "a", "more"), Types.TUPLE([Types.INT(), Types.STRING()]))


@recorded()
def type_tuple_with_none(env):
    """None in a field of a TUPLE."""
    types = Types.TUPLE([Types.INT(), Types.STRING()])
    return env.from_collection([1, 2]).map(lambda x: (None, "a") if x == 1 else (x, None), types)


@recorded()
def type_tuple_with_none_seen(env):
    """None in a field of a TUPLE, behind an exchange."""
    types = Types.TUPLE([Types.INT(), Types.STRING()])
    return (env.from_collection([1, 2]).map(lambda x: (None, "a") if x == 1 else (x, None), types)
            .rebalance().map(lambda x: x))
