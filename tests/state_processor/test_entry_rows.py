"""Timers, windows and single states as rows of a data source, and savepoints that rows are written to."""

import functools
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, BinaryType, BooleanType, LongType, MapType, StringType, StructType

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream.functions import AggregateFunction, KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import ConfigurationError, StateError
from ekorn.state.snapshots import InFlightFiles, StateFile
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.spark.registration import EkornStateSource
from ekorn.state_processor.writing.replaced_state import check_nothing_in_flight
from tests.state_processor.programs import COUNT, FAR_MS, KEYS, every_kind, numbers, restored, savepoint_of
from tests.state_processor.source_rows import by_states, by_stored_entries, read_rows, rewritten, row_of, write_rows
from tests.state_processor.window_programs import (
    SESSIONS,
    TUMBLING,
    ListSession,
    counted_process,
    evicted_reduce,
    session_process,
    sliced_process,
    timed,
    tumbling_reduce,
)

UID = {"operatorUid": "windows"}


def late_process(env, given=range(COUNT)):
    """Return windows of which some have fired and wait for late records when the savepoint is taken."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
    stream = numbers(env, given, splits=1).map(lambda n: n, Types.LONG()).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by(lambda n: n % KEYS, Types.LONG()).window(TUMBLING).allowed_lateness(1000)
    return windows.process(ListSession()).uid("windows")


def in_any_order(records):
    """Sort records, and the contents of windows in them: rows of several tasks have no order."""
    return sorted(
        repr((r[0], sorted(r[1])) if len(r) == 2 else r) if isinstance(r, tuple) else repr(r) for r in records
    )


@pytest.mark.parametrize(
    ("program", "backend", "target"),
    [
        (every_kind, "hashmap", "rocksdb"),
        (late_process, "hashmap", "rocksdb"),
        (late_process, "rocksdb", "hashmap"),
        (session_process, "hashmap", "rocksdb"),
        (counted_process, "hashmap", "hashmap"),
        (evicted_reduce, "hashmap", "hashmap"),
    ],
)
def test_a_job_goes_on_from_rows_of_each_of_its_states(tmp_path, program, backend, target):
    old = savepoint_of(program, tmp_path, backend=backend, native=True, after=4 if program is every_kind else 8)
    new = by_states(old, tmp_path, "every-kind" if program is every_kind else "windows")
    told = [restored(program, p, tmp_path / n, backend=target, parallelism=1) for p, n in ((old, "a"), (new, "b"))]
    assert told[0] and in_any_order(told[0]) == in_any_order(told[1])


@pytest.mark.parametrize(("program", "backend"), [(sliced_process, "hashmap"), (late_process, "rocksdb")])
def test_a_job_goes_on_from_rows_in_the_stored_form(tmp_path, program, backend):
    old = savepoint_of(program, tmp_path, backend=backend, native=True, after=8)
    new = by_stored_entries(old, tmp_path / "new", "windows")
    assert open_savepoint(new).operator("windows").metadata.parallelism == 8
    told = [restored(program, p, tmp_path / n, backend=backend, parallelism=1) for p, n in ((old, "a"), (new, "b"))]
    assert told[0] and in_any_order(told[0]) == in_any_order(told[1])


def test_the_stored_form_changes_the_number_of_key_groups_unless_windows_are_in_slices(tmp_path):
    old = savepoint_of(every_kind, tmp_path / "every")
    new = rewritten(old, tmp_path / "new", operatorUid="every-kind", storedForm="true", maxParallelism="7")
    assert open_savepoint(new).operator("every-kind").metadata.max_parallelism == 7
    before, now = (sorted(map(repr, read_rows(p, operatorUid="every-kind")[1])) for p in (old, new))
    assert before == now
    sliced = savepoint_of(sliced_process, tmp_path / "sliced", after=8)
    with pytest.raises(StateError, match=r"windows in slices.* of 128 key groups.*set maxParallelism to 128"):
        rewritten(sliced, tmp_path / "other", **UID, storedForm="true", maxParallelism="7")


# ----------------------------------------------------------------------------------------------------------- windows


def changed(old, new, change, **options):
    """Write a savepoint with changed rows of a table."""
    reading = {"flattenCollectionTypes": "false"} if "stateVarName" in options else {}
    if "writeRegisteredTimers" in options:
        reading["readRegisteredTimers"] = "true"
    chosen = {name: value for name, value in options.items() if name != "writeRegisteredTimers"}
    schema, found = read_rows(old, **chosen, **reading)
    write_rows(new, schema, [[row_of(schema, row) for row in change(found)]], baseSavepoint=old, **options)
    return str(new)


def test_windows_have_a_row_with_their_contents_and_whether_they_have_fired(tmp_path):
    path = savepoint_of(late_process, tmp_path, after=8)
    schema, found = read_rows(path, **UID, stateVarName="_window/panes")
    assert schema["value"].dataType.simpleString() == "struct<contents:array<bigint>,has_fired:boolean>"
    fired = {row["namespace"]: row["value"]["has_fired"] for row in found}
    assert fired["(0, 20)"] is True and False in fired.values()
    assert {n for row in found if row["namespace"] == "(0, 20)" for n in row["value"]["contents"]} == set(range(20))


def test_a_changed_window_fires_as_the_row_says(tmp_path):
    path = savepoint_of(tumbling_reduce, tmp_path, after=8)

    def change(found):
        (mine,) = (row for row in found if row["key"] == 3 and row["namespace"] == "(0, 20)")
        others = [row for row in found if row["key"] != 3]
        return [*others, {**mine, "value": {"contents": 1000, "has_fired": False}}]

    new = changed(path, tmp_path / "new", change, **UID, stateVarName="_window/panes")
    _, found = read_rows(new, **UID, stateVarName="_window/panes")
    assert [row["value"]["contents"] for row in found if row["key"] == 3] == [1000], "the other windows of 3 are gone"
    told = restored(tumbling_reduce, new, tmp_path / "on", parallelism=1)
    assert 1000 in told and 1000 not in restored(tumbling_reduce, path, tmp_path / "as it was", parallelism=1)


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def sums(env, assigner, given=()):
    keyed = timed(env, given).key_by(lambda n: n % KEYS, Types.LONG())
    return keyed.window(assigner).aggregate(Sum()).uid("windows")


WINDOW = StructType().add("contents", LongType()).add("has_fired", BooleanType())
SESSION = StructType().add("start_ms", LongType()).add("end_ms", LongType())
SESSION = SESSION.add("contents", LongType()).add("has_fired", BooleanType())


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_windows_are_made_for_an_operator_that_has_none(tmp_path, backend):
    panes = StructType().add("key", LongType()).add("namespace", StringType()).add("value", WINDOW)
    rows = [
        Row(key=1, namespace="(0, 20)", value=Row(100, False)),
        Row(key=2, namespace="(20, 40)", value=Row(7, True)),
    ]
    write_rows(tmp_path / "panes", panes, [[row] for row in rows], **UID, stateVarName="_window/panes")
    told = restored(
        functools.partial(sums, assigner=TUMBLING, given=[1, 22]), str(tmp_path / "panes"), tmp_path, backend=backend
    )
    assert sorted(told) == [29, 101], "the record of the second window makes it fire again"
    sessions = StructType().add("key", LongType()).add("value", ArrayType(SESSION))
    kept = [Row(key=1, value=[Row(0, 8, 50, False), Row(90, 99, 9, False)])]
    write_rows(tmp_path / "sessions", sessions, [kept], **UID, stateVarName="_window/sessions")
    told = restored(
        functools.partial(sums, assigner=SESSIONS, given=[6]), str(tmp_path / "sessions"), tmp_path, backend=backend
    )
    assert sorted(told) == [9, 56]


# ------------------------------------------------------------------------------------------------------------ timers


class Alarms(KeyedProcessFunction):
    """Tells the timers that fire, and what the key remembers."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        self.seen.update(value)
        ctx.timer_service().register_event_time_timer(FAR_MS + value)
        yield from ()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.seen.value()


def alarms(env, given=range(COUNT)):
    return timed(env, given).key_by(lambda n: n % KEYS, Types.LONG()).process(Alarms()).uid("alarms")


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_timers_are_replaced_and_fire_in_the_job_that_starts_from_them(tmp_path, backend):
    path = savepoint_of(alarms, tmp_path, backend=backend, native=True, after=8)

    def change(found):
        assert found
        return [{"key": key, "time_domain": "event", "timestamp_ms": 50 + key, "namespace": None} for key in (1, 7, 1)]

    new = changed(path, tmp_path / "new", change, operatorUid="alarms", writeRegisteredTimers="true")
    _, kept = read_rows(new, operatorUid="alarms")
    seen = {row["key"]: row["seen"] for row in kept}
    assert seen and seen == {row["key"]: row["seen"] for row in read_rows(path, operatorUid="alarms")[1]}
    told = restored(alarms, new, tmp_path / "on", backend=backend)
    position = max(seen.values()) + 1
    expected = [(7, 57), (1, 51), *((n % KEYS, FAR_MS + n) for n in range(position, COUNT))]
    assert sorted(record[:2] for record in told) == sorted(expected) and position < COUNT


TIMERS = StructType().add("key", LongType()).add("time_domain", StringType()).add("timestamp_ms", LongType())


def test_timers_are_made_for_an_operator_that_has_none(tmp_path):
    rows = [Row(key=4, time_domain="event", timestamp_ms=30)]
    write_rows(tmp_path / "new", TIMERS, [rows], operatorUid="alarms", writeRegisteredTimers="true")
    assert restored(functools.partial(alarms, given=()), str(tmp_path / "new"), tmp_path) == [(4, 30, None)]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"time_domain": "watermark"}, "is not a timer: it needs .* the time_domain 'event' or 'processing'"),
        ({"timestamp_ms": None}, "is not a timer"),
        ({"namespace": "(0, 5)"}, "has no windows, so the namespace of its timers is null"),
    ],
)
def test_rows_that_are_no_timers_of_the_operator_are_refused(tmp_path, row, says):
    path = savepoint_of(alarms, tmp_path)
    with pytest.raises(StateError, match=says):
        changed(
            path,
            tmp_path / "new",
            lambda found: [{**found[0], **row}],
            operatorUid="alarms",
            writeRegisteredTimers="true",
        )
    assert not (tmp_path / "new" / "_metadata").exists()


# ---------------------------------------------------------------------------------------------------------- mistakes


@dataclass(frozen=True)
class Place:
    name: str


class KeepMore(KeyedProcessFunction):
    """Keeps values of a class, texts beside numbers, and tuples, all without declared types."""

    def open(self, runtime_context):
        self.states = [runtime_context.get_state(ValueStateDescriptor(name)) for name in ("class", "mixed", "tuple")]

    def process_element(self, value, ctx):
        for state, each in zip(self.states, (Place("a"), value if value % 2 else "b", (value, "c")), strict=True):
            state.update(each)
        yield repr([state.value() for state in self.states])


def keep_more(env, given=range(COUNT)):
    return numbers(env, given).key_by(lambda n: n % KEYS).process(KeepMore()).uid("more")


def test_values_that_would_not_come_back_from_their_columns_are_refused_at_the_call(tmp_path):
    path = savepoint_of(keep_more, tmp_path, after=4)
    for name, shown in (("class", r"Place\(name='a'\)"), ("mixed", "[0-9]+")):
        schema, _ = read_rows(path, operatorUid="more", stateVarName=name)
        with pytest.raises(ConfigurationError, match=rf"from which .*{shown}, .* cannot be restored: .* storedForm"):
            writer(tmp_path / name, schema, operatorUid="more", stateVarName=name, baseSavepoint=path)
    new = rewritten(path, tmp_path / "tuple", operatorUid="more", stateVarName="tuple")
    told = [restored(keep_more, each, tmp_path / n) for each, n in ((path, "a"), (new, "b"))]
    assert told[0] and sorted(told[0]) == sorted(told[1])


def writer(path, columns, **options):
    return EkornStateSource({"path": str(path), **options}).writer(columns, overwrite=False)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return savepoint_of(every_kind, tmp_path_factory.mktemp("every"))


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    return savepoint_of(tumbling_reduce, tmp_path_factory.mktemp("windows"), after=8)


KEYED = StructType().add("key", LongType())


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (KEYED, {"stateVarName": "value"}, "has no column 'value': rows of value state have key, value, and may have"),
        (
            StructType().add("key", LongType()).add("value", StringType()),
            {"stateVarName": "value"},
            "the column 'value' is .*, and the state is declared as LONG: cast the column to BIGINT",
        ),
        (
            StructType().add("key", StringType()).add("value", LongType()),
            {"stateVarName": "value"},
            "the column 'key' is .*, from which 0, a key of the savepoint, cannot be restored",
        ),
        (
            StructType().add("key", LongType()).add("list_element", LongType()),
            {"stateVarName": "list"},
            "rows of single elements have no order: read state 'list' with flattenCollectionTypes false",
        ),
        (
            StructType().add("key", LongType()).add("list_value", LongType()),
            {"stateVarName": "list"},
            "the column 'list_value' is BIGINT, and its values must be arrays",
        ),
        (
            StructType().add("key", LongType()).add("map_value", MapType(LongType(), LongType())),
            {"stateVarName": "map"},
            "the column 'map_value' is BIGINT, and the state is declared as STRING: cast",
        ),
        (
            StructType().add("key", LongType()).add("value", LongType()),
            {"stateVarName": "_timers/event"},
            "'_timers/event' holds timers: write them with writeRegisteredTimers",
        ),
        (
            StructType().add("key", LongType()).add("value", LongType()),
            {"stateVarName": "_window/contents"},
            "the operator has no state '_window/contents', and a new state of the runtime is one of",
        ),
        (
            StructType().add("key", LongType()).add("value", LongType()),
            {"stateVarName": "new", "stateKind": "counting"},
            "state 'new' cannot be of the kind 'counting': it is value or list or",
        ),
        (
            StructType().add("key", LongType()).add("value", LongType()),
            {"stateVarName": "value", "stateKind": "reducing"},
            "state 'value' is of the kind value, not reducing: leave out stateKind",
        ),
        (
            StructType().add("key", LongType()).add("value", LongType()),
            {"stateVarName": "value", "parallelism": "3"},
            "does not use the option parallelism together with baseSavepoint",
        ),
        (
            StructType().add("key", LongType()).add("value", LongType()).add("ttl_ms", StringType()),
            {"stateVarName": "ttl"},
            "the column 'ttl_ms' is .*, and its values must be whole numbers",
        ),
        (KEYED, {"storedForm": "true"}, "has no column 'state': rows of all keyed state have state, entry"),
        (
            StructType().add("state", StringType()).add("entry", StringType()),
            {"storedForm": "true"},
            "the column 'entry' is .*, and its values must be bytes",
        ),
        (
            KEYED,
            {"storedForm": "true", "stateVarName": "value"},
            "does not use the option stateVarName together with storedForm",
        ),
        (KEYED, {"writeRegisteredTimers": "true"}, "has no column 'time_domain': rows of timers have"),
        (KEYED, {"writeRegisteredTimers": "yes"}, "the option writeRegisteredTimers is true or false"),
        (
            StructType().add("key", LongType()).add("value", LongType()),
            {"stateVarName": "value", "keyColumn": "key"},
            "does not use the option keyColumn",
        ),
        (StructType().add("key", LongType()).add("n", LongType()), {"stateKind": "value"}, "does not use .* stateKind"),
    ],
)
def test_mistakes_of_a_write_are_named_at_the_call(path, tmp_path, columns, options, says):
    with pytest.raises(ConfigurationError, match=says):
        writer(tmp_path / "new", columns, operatorUid="every-kind", baseSavepoint=path, **options)
    assert not (tmp_path / "new").exists()


def test_mistakes_of_a_write_of_windows_are_named_at_the_call(windows, tmp_path):
    columns = StructType().add("key", LongType()).add("namespace", StringType()).add("value", LongType())
    with pytest.raises(ConfigurationError, match=r"the column 'value' is BIGINT: windows are struct<contents, has_fi"):
        writer(tmp_path / "new", columns, **UID, baseSavepoint=windows, stateVarName="_window/panes")
    with pytest.raises(ConfigurationError, match="has windows in '_window/panes', which fire at their end without"):
        writer(tmp_path / "new", TIMERS, **UID, baseSavepoint=windows, writeRegisteredTimers="true")
    slices = savepoint_of(sliced_process, tmp_path, after=8)
    schema, _ = read_rows(slices, **UID, stateVarName="_window/slices")
    with pytest.raises(ConfigurationError, match=r"holds slices, .* read and write them with storedForm"):
        writer(tmp_path / "new", schema, **UID, baseSavepoint=slices, stateVarName="_window/slices")
    entries = StructType().add("state", StringType()).add("entry", BinaryType())
    with pytest.raises(ConfigurationError, match="needs the option baseSavepoint beside storedForm"):
        writer(tmp_path / "new", entries, **UID, storedForm="true")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"namespace": "[0, 20)"}, "not a window: write a time window as '\\(start_ms, end_ms\\)'"),
        ({"namespace": None}, "the column 'namespace' of row .* is null"),
        ({"key": None}, "the column 'key' of row .* is null"),
        ({"value": {"contents": None, "has_fired": True}}, "a window needs contents and has_fired"),
        ({"ttl_ms": 5}, "state '_window/panes' does not expire"),
    ],
)
def test_rows_that_are_no_windows_are_refused(windows, tmp_path, row, says):
    with pytest.raises(StateError, match=says):
        changed(
            windows,
            tmp_path / "new",
            lambda found: [{**found[0], **row}],
            **UID,
            stateVarName="_window/panes",
        )


def test_two_rows_of_one_window_are_refused(windows, tmp_path):
    schema, found = read_rows(windows, **UID, stateVarName="_window/panes")
    row = row_of(schema, found[0])
    options = {**UID, "stateVarName": "_window/panes", "baseSavepoint": windows}
    with pytest.raises(StateError, match=r"state '_window/panes' has two rows of the entry \(\d, \(\d+, \d+\)\)"):
        write_rows(tmp_path / "new", schema, [[row], [row]], **options)


def test_stored_entries_of_unknown_states_are_refused(path, tmp_path):
    columns = StructType().add("state", StringType()).add("entry", BinaryType())
    options = {"operatorUid": "every-kind", "baseSavepoint": path, "storedForm": "true"}
    with pytest.raises(StateError, match="has no keyed state 'other'; it has '_timers/event'"):
        write_rows(tmp_path / "new", columns, [[Row(state="other", entry=b"")]], **options)
    with pytest.raises(StateError, match="the column 'entry' of a row is null"):
        write_rows(tmp_path / "null", columns, [[Row(state="value", entry=None)]], **options)


def test_the_time_of_the_last_access_is_kept(path, tmp_path):
    options = {"operatorUid": "every-kind", "stateVarName": "ttl"}
    new = rewritten(path, tmp_path / "new", **options)
    before, now = (sorted((row["key"], row["ttl_ms"]) for row in read_rows(p, **options)[1]) for p in (path, new))
    assert before == now and all(stamp is not None for _, stamp in now)


def test_a_state_is_made_for_an_operator_with_others(path, tmp_path):
    columns = StructType().add("key", LongType()).add("value", LongType())
    options = {"operatorUid": "every-kind", "baseSavepoint": path, "stateVarName": "more", "stateKind": "reducing"}
    write_rows(tmp_path / "new", columns, [[Row(key=2, value=9)]], **options)
    infos = {info.name: info.kind for info in open_savepoint(str(tmp_path / "new")).operator("every-kind").keyed_states}
    assert infos["more"] == "reducing" and infos["value"] == "value"
    _, found = read_rows(tmp_path / "new", operatorUid="every-kind")
    assert {row["key"]: row["more"] for row in found} == {key: 9 if key == 2 else None for key in range(KEYS)}


def test_a_write_of_all_keyed_state_refuses_a_checkpoint_with_records_in_flight(path):
    operator = open_savepoint(path).operator("every-kind")
    check_nothing_in_flight(operator)
    blobs = InFlightFiles((), (StateFile(1, 1, inline=b"x"),), 1)
    subtasks = tuple(each and replace(each, in_flight=blobs) for each in operator.metadata.subtasks)
    in_flight = replace(operator, metadata=replace(operator.metadata, subtasks=subtasks))
    with pytest.raises(StateError, match=r"in flight to operator 'every kind' .* use a savepoint as the base"):
        check_nothing_in_flight(in_flight)
