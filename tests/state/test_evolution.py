"""State whose declared type changed between a checkpoint and its restore."""

import re
import sys
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import ManualClock, Row, Time, Types
from ekorn.errors import CorruptFileError, StateError, StateMigrationError
from ekorn.functions.record_functions import AggregateFunction
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.canonical_format import decode_file
from ekorn.state.evolution.converters import converter
from ekorn.state.evolution.restore_checks import check_keys
from ekorn.state.evolution.type_descriptions import Incompatible
from ekorn.state.operator_state import OperatorStates
from ekorn.state.operator_state_files import redistribute
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import BACKENDS, EVERYTHING
from tests.state.evolving import MODULE, Target, evolve, program, restored, snapshot_of

ROW = Types.ROW_NAMED
PERSON = ROW(["name", "age"], [Types.STRING(), Types.INT()])


@pytest.fixture(autouse=True)
def no_program_stays_behind():
    yield
    sys.modules.pop(MODULE, None)


# --------------------------------------------------------------------------------------------- types that are declared

CHANGES = {
    "the same": (PERSON, Row(name="a", age=1), PERSON, Row(name="a", age=1)),
    "a field more": (
        PERSON,
        Row(name="a", age=1),
        ROW(["name", "age", "city"], [Types.STRING(), Types.INT(), Types.STRING()]),
        Row(name="a", age=1, city=None),
    ),
    "a field less": (PERSON, Row(name="a", age=1), ROW(["age"], [Types.INT()]), Row(age=1)),
    "another order": (
        PERSON,
        Row(name="a", age=1),
        ROW(["age", "name"], [Types.INT(), Types.STRING()]),
        Row(age=1, name="a"),
    ),
    "a row that was written without names": (
        PERSON,
        Row("a", 1),
        ROW(["age", "name"], [Types.INT(), Types.STRING()]),
        Row(age=1, name="a"),
    ),
    "a row whose names were in another order": (
        PERSON,
        Row(age=1, name="a"),
        ROW(["name", "age", "x"], [Types.STRING(), Types.INT(), Types.INT()]),
        Row(name="a", age=1, x=None),
    ),
    "a renamed field": (PERSON, Row(name="a", age=1), ROW(["nick"], [Types.STRING()]), Row(nick=None)),
    "a field without a value": (
        PERSON,
        Row(name="a", age=None),
        ROW(["name", "age"], [Types.STRING(), Types.DOUBLE()]),
        Row(name="a", age=None),
    ),
    "rows without names": (
        Types.ROW([Types.INT()]),
        Row(1),
        Types.ROW([Types.LONG(), Types.STRING()]),
        Row(f0=1, f1=None),
    ),
    "a row in a row": (
        ROW(["who"], [PERSON]),
        Row(who=Row(name="a", age=1)),
        ROW(["who"], [ROW(["age", "tall"], [Types.DOUBLE(), Types.BOOLEAN()])]),
        Row(who=Row(age=1.0, tall=None)),
    ),
    "rows in a list in a map": (
        Types.MAP(Types.STRING(), Types.LIST(PERSON)),
        {"x": [Row(name="a", age=1)], "y": []},
        Types.MAP(Types.STRING(), Types.LIST(ROW(["name"], [Types.STRING()]))),
        {"x": [Row(name="a")], "y": []},
    ),
    "a map with no value": (
        Types.MAP(Types.STRING(), Types.INT()),
        {"x": None, "y": 2},
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        {"x": None, "y": 2.0},
    ),
    "an array with no element": (
        Types.OBJECT_ARRAY(Types.INT()),
        [1, None],
        Types.BASIC_ARRAY(Types.DOUBLE()),
        [1.0, None],
    ),
    "a tuple with a wider field": (
        Types.TUPLE([Types.STRING(), Types.INT()]),
        ("a", 1),
        Types.TUPLE([Types.STRING(), Types.DOUBLE()]),
        ("a", 1.0),
    ),
    "INT to LONG": (Types.INT(), 2**31 - 1, Types.LONG(), 2**31 - 1),
    "BYTE to BIG_INT": (Types.BYTE(), -128, Types.BIG_INT(), -128),
    "LONG to DOUBLE": (Types.LONG(), 3, Types.DOUBLE(), 3.0),
    "INT to FLOAT": (Types.INT(), 3, Types.FLOAT(), 3.0),
    "LONG to BIG_DEC": (Types.LONG(), 3, Types.BIG_DEC(), Decimal(3)),
    "FLOAT to DOUBLE": (Types.FLOAT(), 0.5, Types.DOUBLE(), 0.5),
    "CHAR to STRING": (Types.CHAR(), "x", Types.STRING(), "x"),
    "a type where there was none": (None, Row(name="a", age=1), PERSON, Row(name="a", age=1)),
    "no type where there was one": (PERSON, Row(name="a", age=1), None, Row(name="a", age=1)),
    "a primitive array": (
        Types.PRIMITIVE_ARRAY(Types.INT()),
        [1, 2],
        Types.PRIMITIVE_ARRAY(Types.DOUBLE()),
        [1.0, 2.0],
    ),
}


@pytest.mark.parametrize("backend", ["heap", "rocksdb"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_type_may_change_like_this(change, backend):
    old_type, value, new_type, expected = CHANGES[change]
    found = evolve(old_type, value, new_type, backend)
    assert found == expected
    assert repr(found) == repr(expected)  # not ==, because 1 == 1.0


REFUSED = {
    "narrower": (Types.LONG(), 1, Types.INT(), "was LONG and is INT"),
    "a number that was text": (Types.STRING(), "1", Types.INT(), "was STRING and is INT"),
    "text that was a number": (Types.INT(), 1, Types.STRING(), "was INT and is STRING"),
    "a fraction that is to be whole": (Types.DOUBLE(), 1.5, Types.LONG(), "was DOUBLE and is LONG"),
    "a double to be shorter": (Types.DOUBLE(), 1.5, Types.FLOAT(), "was DOUBLE and is FLOAT"),
    "any size to a double": (Types.BIG_INT(), 1, Types.DOUBLE(), "was BIG_INT and is DOUBLE"),
    "a truth that is to be a number": (Types.BOOLEAN(), True, Types.INT(), "was BOOLEAN and is INT"),
    "a field of a row": (
        PERSON,
        Row(name="a", age=1),
        ROW(["name", "age"], [Types.STRING(), Types.STRING()]),
        "age: was INT and is STRING",
    ),
    "a field deep inside": (
        ROW(["who"], [Types.LIST(PERSON)]),
        Row(who=[]),
        ROW(["who"], [Types.LIST(ROW(["age"], [Types.BOOLEAN()]))]),
        "who.an element.age: was INT and is BOOLEAN",
    ),
    "a longer tuple": (
        Types.TUPLE([Types.INT()]),
        (1,),
        Types.TUPLE([Types.INT(), Types.INT()]),
        "was TUPLE(INT) and is TUPLE(INT, INT): fields of a tuple have no names",
    ),
    "a field of a tuple": (
        Types.TUPLE([Types.INT(), Types.STRING()]),
        (1, "a"),
        Types.TUPLE([Types.INT(), Types.INT()]),
        "[1]: was STRING and is INT",
    ),
    "the keys of a map": (
        Types.MAP(Types.INT(), Types.INT()),
        {1: 1},
        Types.MAP(Types.LONG(), Types.INT()),
        "was MAP(INT, INT) and is MAP(LONG, INT): the keys of a map cannot change their type",
    ),
    "a list that is to be a map": (
        Types.LIST(Types.INT()),
        [1],
        Types.MAP(Types.INT(), Types.INT()),
        "was LIST(INT) and is MAP(INT, INT)",
    ),
    "a row that is to be a tuple": (
        PERSON,
        Row(name="a", age=1),
        Types.TUPLE([Types.STRING(), Types.INT()]),
        "was ROW(name STRING, age INT) and is TUPLE(STRING, INT)",
    ),
    "an array that may hold no elements": (
        Types.OBJECT_ARRAY(Types.INT()),
        [None],
        Types.LIST(Types.INT()),
        "was ARRAY(INT) and is LIST(INT)",
    ),
    "bytes that are to be numbers": (
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        b"1",
        Types.PRIMITIVE_ARRAY(Types.INT()),
        "was PRIMITIVE_ARRAY(BYTE) and is PRIMITIVE_ARRAY(INT)",
    ),
    "a value without a type that does not fit": (
        None,
        ["text"],
        Types.LIST(Types.INT()),
        "state 'state' is declared as ListTypeInfo<Integer> and cannot hold ['text']",
    ),
}


@pytest.mark.parametrize("change", REFUSED)
def test_a_type_may_not_change_like_this(change):
    old_type, value, new_type, reason = REFUSED[change]
    with pytest.raises(StateMigrationError, match=re.escape(reason)) as refused:
        evolve(old_type, value, new_type)
    assert "state 'state' of operator 'count' (uid 'u1', id 0ab)" in str(refused.value)
    assert "rename the state to start it empty" in str(refused.value)


def test_a_refused_change_is_refused_where_a_subtask_has_no_entries_too():
    before = BACKENDS["heap"]()
    before.state(ValueStateDescriptor("state", Types.LONG()))
    with pytest.raises(StateMigrationError, match="was LONG and is INT"):
        restored(snapshot_of(before)).state(ValueStateDescriptor("state", Types.INT()))


FIELDS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["INT", "LONG", "STRING", "DOUBLE"]), min_size=1)
EXAMPLES = {"INT": 1, "LONG": 2**40, "STRING": "s", "DOUBLE": 0.5}
WIDER = {("INT", "LONG"), ("INT", "DOUBLE"), ("LONG", "DOUBLE")}


@given(FIELDS, FIELDS)
def test_any_change_of_a_row_keeps_what_can_be_kept_or_says_why_not(before, after):
    row = Row(**{name: EXAMPLES[word] for name, word in before.items()})
    old, new = ({"row": [[name, word] for name, word in fields.items()]} for fields in (before, after))
    clashes = [
        name
        for name in after
        if name in before and before[name] != after[name] and (before[name], after[name]) not in WIDER
    ]
    if clashes:
        with pytest.raises(Incompatible, match=f"^{clashes[0]}: was {before[clashes[0]]} and is {after[clashes[0]]}$"):
            converter(old, new)
        return
    convert = converter(old, new)
    found = row if convert is None else convert(row)
    assert list(found._fields) == list(after)
    assert list(found) == [None if name not in before else EXAMPLES[before[name]] for name in after]


# -------------------------------------------------------------------------------------------------- every kind of state


class Sum(AggregateFunction):
    def create_accumulator(self):
        return Row(total=0)

    def add(self, value, accumulator):
        return Row(total=accumulator[0] + value)

    def get_result(self, accumulator):
        return tuple(accumulator)

    def merge(self, a, b):
        raise AssertionError("not merged here")


def descriptors(row_type, ttl):
    made = {
        "value": ValueStateDescriptor("value", row_type),
        "list": ListStateDescriptor("list", row_type),
        "map": MapStateDescriptor("map", Types.STRING(), row_type),
        "reducing": ReducingStateDescriptor("reducing", lambda a, b: b, row_type),
        "aggregating": AggregatingStateDescriptor("aggregating", Sum(), row_type),
        "folding": FoldingStateDescriptor("folding", Row(total=0), lambda a, v: Row(total=v), row_type),
    }
    if ttl:
        for descriptor in made.values():
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    return made


def fill(states, declared):
    states.state(declared["value"]).update(Row(total=1))
    states.state(declared["list"]).update([Row(total=2), Row(total=3)])
    states.state(declared["map"]).put_all({"m": Row(total=4), "n": None})
    states.state(declared["reducing"]).add(Row(total=5))
    states.state(declared["aggregating"]).add(6)
    states.state(declared["folding"]).add(7)


def contents(states, declared):
    return {
        "value": states.state(declared["value"]).value(),
        "list": list(states.state(declared["list"]).get()),
        "map": dict(states.state(declared["map"]).items()),
        "reducing": states.state(declared["reducing"]).get(),
        "aggregating": states.state(declared["aggregating"]).get(),
        "folding": states.state(declared["folding"]).get(),
    }


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(
    "backends",
    [("heap", "heap"), ("rocksdb", "rocksdb"), ("heap", "rocksdb"), ("rocksdb", "heap"), ("rocksdb, cramped",) * 2],
)
def test_every_kind_of_state_takes_part(backends, ttl, windowed):
    old = descriptors(ROW(["total"], [Types.INT()]), ttl)
    new = descriptors(ROW(["total", "note"], [Types.DOUBLE(), Types.STRING()]), ttl)
    clock = ManualClock(1000)
    before = BACKENDS[backends[0]](clock=clock)
    states = before.in_windows("w/") if windowed else before
    before.cell[0], before.window_cell[0] = "key", ("key", (0, 10))
    fill(states, old)
    after = BACKENDS[backends[1]](clock=clock)
    restore, store = snapshot_of(before)
    after.restore(restore, store, EVERYTHING)
    states = after.in_windows("w/") if windowed else after
    after.cell[0], after.window_cell[0] = "key", ("key", (0, 10))

    def row(total):
        return Row(total=total, note=None)

    expected = {
        "value": row(1.0),
        "list": [row(2.0), row(3.0)],
        "map": {"m": row(4.0), "n": None},
        "reducing": row(5.0),
        "aggregating": (6.0, None),
        "folding": row(7.0),
    }
    assert contents(states, new) == expected
    # The next checkpoint holds and describes the converted values.
    again = BACKENDS[backends[1]](clock=clock)
    restore, store = snapshot_of(after)
    again.restore(restore, store, EVERYTHING)
    again.cell[0], again.window_cell[0] = "key", ("key", (0, 10))
    assert contents(again.in_windows("w/") if windowed else again, new) == expected


def test_a_state_that_nobody_asks_for_keeps_its_type_until_somebody_does():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state", Types.INT())).update(1)
    ignored = restored(snapshot_of(before))
    later = restored(snapshot_of(ignored))
    later.cell[0] = "key"
    assert later.state(ValueStateDescriptor("state", Types.DOUBLE())).value() == 1.0


def test_a_state_that_is_asked_for_late_is_converted_in_the_next_incremental_checkpoint_too():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state", Types.INT())).update(1)
    after = restored(snapshot_of(before))
    snapshot_of(after)
    after.snapshot_completed(1)
    after.state(ValueStateDescriptor("state", Types.DOUBLE()))
    store = MemoryFiles()
    files = after.snapshot(2).write(Target(store)).files
    assert [chunk.values for chunk in decode_file(store, files[-1])] == [[1.0]]


def test_operator_state_takes_part():
    old, new = PERSON, ROW(["age", "city"], [Types.LONG(), Types.STRING()])
    states = OperatorStates()
    states.get_list_state(ListStateDescriptor("split", old)).add(Row(name="a", age=1))
    states.get_union_list_state(ListStateDescriptor("union", old)).add(Row(name="b", age=2))
    states.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), old)).put("r", Row(name="c", age=3))
    again = OperatorStates(redistribute([states.snapshot()], 1, 0), states.infos(), "'sink'")
    assert list(again.get_list_state(ListStateDescriptor("split", new)).get()) == [Row(age=1, city=None)]
    assert list(again.get_union_list_state(ListStateDescriptor("union", new)).get()) == [Row(age=2, city=None)]
    rules = again.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), new))
    assert dict(rules.items()) == {"r": Row(age=3, city=None)}
    refused = OperatorStates(states.snapshot(), states.infos(), "'sink'")
    with pytest.raises(StateMigrationError, match=r"state 'split' of operator 'sink': age: was INT and is STRING"):
        refused.get_list_state(ListStateDescriptor("split", ROW(["age"], [Types.STRING()])))
    with pytest.raises(StateMigrationError, match="the type of the map's key was STRING and is INT"):
        refused.get_broadcast_state(MapStateDescriptor("rules", Types.INT(), old))
    with pytest.raises(StateMigrationError, match="saved as list-union state and is declared as list-split state"):
        refused.get_list_state(ListStateDescriptor("union", old))


# -------------------------------------------------------------------------------------------------------------- keys


def test_the_declared_type_of_keys_cannot_change():
    before = BACKENDS["heap"]()
    before.key_type = Types.STRING()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state")).update(1)
    restore, _ = saved = snapshot_of(before)
    with pytest.raises(StateMigrationError, match="type of the key was STRING and is LONG; it cannot change"):
        restored(saved, key_type=Types.LONG()).state(ValueStateDescriptor("state"))
    with pytest.raises(StateMigrationError, match="'count': the type of the key was STRING and is LONG"):
        check_keys(restore.states, Types.LONG(), "'count'")
    check_keys(restore.states, None, "'count'")
    check_keys(restore.states, Types.STRING(), "'count'")


@pytest.mark.parametrize("of_map", [False, True])
def test_the_class_of_keys_cannot_change(of_map):
    before = BACKENDS["heap"]()
    key = program("@dataclass(frozen=True)\nclass Key:\n    n: int\n").Key(1)
    before.cell[0] = ("plain", key) if not of_map else "key"
    if of_map:
        before.state(MapStateDescriptor("state")).put(key, 1)
    else:
        before.state(ValueStateDescriptor("state")).update(1)
    restore, _ = snapshot_of(before)
    check_keys(restore.states, None)
    program("@dataclass(frozen=True)\nclass Key:\n    n: int\n    m: int = 0\n")
    with pytest.raises(StateMigrationError, match=f"class of its keys has changed: {MODULE}.Key has other fields"):
        check_keys(restore.states, None, "'count'")
    program("")
    with pytest.raises(StateMigrationError, match=f"{MODULE}.Key is gone: module '{MODULE}' has no 'Key'"):
        check_keys(restore.states, None, "'count'")


# ---------------------------------------------------------------------------------------------------- descriptions


def test_a_description_of_a_newer_release_is_refused_as_such():
    before = BACKENDS["heap"]()
    before.state(ValueStateDescriptor("state", Types.INT()))
    restore, store = snapshot_of(before)
    for schema, found in [('{"version": 2}', "version 2"), ('{"version": 1, "new": 1}', "'new'")]:
        changed = replace(restore, states=(replace(restore.states[0], schema=schema),))
        with pytest.raises(CorruptFileError, match=found):
            restored((changed, store)).state(ValueStateDescriptor("state", Types.INT()))


def test_two_declarations_of_one_state_with_other_fields_are_an_error():
    backend = BACKENDS["heap"]()
    backend.state(ValueStateDescriptor("state", ROW(["a"], [Types.INT()])))
    with pytest.raises(StateError, match="declared twice"):
        backend.state(ValueStateDescriptor("state", ROW(["b"], [Types.INT()])))
