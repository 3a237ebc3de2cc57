"""List, union, broadcast and raw state as rows of a data source, and savepoints that rows are written to."""

import pickle
from pathlib import Path

import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructType

from ekorn.common import Types, WatermarkStrategy
from ekorn.datastream.functions import CheckpointedFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor
from ekorn.errors import ConfigurationError, CorruptFileError, StateError
from ekorn.state.state_files import write_state
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.spark.registration import EkornStateSource
from ekorn.storage.file_store import open_files
from ekorn.testing.scripted import ScriptedSource, split_evenly
from tests.state_processor.programs import every_kind, restored, savepoint_of
from tests.state_processor.source_rows import by_operator_rows, read_rows, write_rows

UID = {"operatorUid": "keep"}


class Keep(MapFunction, CheckpointedFunction):
    """Keeps the numbers in list, union and broadcast state with declared types, and tells what it was restored to."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.list = store.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.union = store.get_union_list_state(ListStateDescriptor("union", Types.STRING()))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
        self.restored = (sorted(self.list.get()), list(self.union.get()), sorted(self.rules.items()))

    def map(self, value):
        self.list.add(value)
        self.union.add(f"n{value}")
        self.rules.put("limit", 100)
        return self.restored

    def snapshot_state(self, context):
        pass


def keep(env):
    source = ScriptedSource(split_evenly(list(range(20)), 2), (2,))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return stream.map(Keep()).uid("keep")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return savepoint_of(keep, tmp_path_factory.mktemp("kept"), after=2)


def test_lists_have_a_row_for_each_element_with_its_subtask_and_place(path):
    schema, found = read_rows(path, **UID, operatorState="list")
    assert schema.simpleString() == "struct<subtask:int,position:bigint,element:bigint>"
    numbers = {0: [], 1: []}
    for row in found:
        assert row["position"] == len(numbers[row["subtask"]])
        numbers[row["subtask"]].append(row["element"])
    assert numbers[0] and numbers[1]
    _, union = read_rows(path, **UID, operatorState="union")
    assert [row["element"] for row in union] == [f"n{n}" for subtask in (0, 1) for n in numbers[subtask]]


def test_broadcast_state_has_a_row_for_each_entry_of_one_copy(path):
    schema, found = read_rows(path, **UID, operatorState="rules")
    assert schema.simpleString() == "struct<key:string,value:bigint>"
    assert found == [{"key": "limit", "value": 100}]


@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_job_goes_on_from_typed_rows_as_from_the_savepoint(path, tmp_path, parallelism):
    new = by_operator_rows(path, tmp_path, "keep", ["list", "union", "rules"], stored_form=False)
    told = [restored(keep, each, tmp_path / n, parallelism=parallelism) for each, n in ((path, "a"), (new, "b"))]
    assert told[0] and sorted(told[0]) == sorted(told[1])


def changed(path, new, name, change, **options):
    """Write a savepoint with changed rows of one state."""
    schema, found = read_rows(path, **UID, operatorState=name)
    given = {"baseSavepoint": path, "operatorState": name, **UID, **options}
    write_rows(new, schema, [[Row(**row) for row in change(found)]], **given)
    return str(new)


def test_rows_are_changed_in_one_state_and_the_others_stay(path, tmp_path):
    new = changed(path, tmp_path / "new", "rules", lambda found: [*found, {"key": "more", "value": 7}])
    assert read_rows(new, **UID, operatorState="rules")[1] == [
        {"key": "limit", "value": 100},
        {"key": "more", "value": 7},
    ]
    for name in ("list", "union"):
        assert read_rows(new, **UID, operatorState=name) == read_rows(path, **UID, operatorState=name)
    assert all(told[2] == [("limit", 100), ("more", 7)] for told in restored(keep, new, tmp_path / "on"))


def test_rows_without_a_subtask_are_divided_and_a_state_is_made_for_an_operator_that_has_none(path, tmp_path):
    columns = StructType().add("element", LongType())
    tasks = [[Row(element=n) for n in range(5)], [Row(element=n) for n in range(5, 9)]]
    options = {"operatorState": "list", "operatorStateKind": "list-split", "parallelism": "2", **UID}
    write_rows(tmp_path / "new", columns, tasks, **options)
    _, found = read_rows(tmp_path / "new", **UID, operatorState="list")
    assert [(row["subtask"], row["element"]) for row in found] == [(n // 5, n) for n in range(9)]
    told = restored(keep, str(tmp_path / "new"), tmp_path / "on")
    assert {tuple(each[0]) for each in told} == {(0, 1, 2, 3, 4), (5, 6, 7, 8)}


NEW_LIST = {"operatorState": "list", "operatorStateKind": "list-split", "parallelism": "2", **UID}


def test_elements_without_a_subtask_are_divided_in_the_order_of_their_positions(tmp_path):
    columns = StructType().add("position", LongType()).add("element", LongType())
    tasks = [[Row(position=n, element=n) for n in task] for task in ((3, 0), (1, 2))]
    write_rows(tmp_path / "new", columns, tasks, **NEW_LIST)
    _, found = read_rows(tmp_path / "new", **UID, operatorState="list")
    assert [(row["subtask"], row["element"]) for row in found] == [(0, 0), (0, 1), (1, 2), (1, 3)]


def test_elements_without_a_position_stay_in_the_order_of_the_data_frame(tmp_path):
    columns = StructType().add("subtask", IntegerType()).add("element", LongType())
    tasks = [[Row(subtask=1, element=n) for n in task] for task in ((5, 4), (3, 2))]
    write_rows(tmp_path / "new", columns, tasks, **NEW_LIST)
    _, found = read_rows(tmp_path / "new", **UID, operatorState="list")
    assert [(row["subtask"], row["element"]) for row in found] == [(1, 5), (1, 4), (1, 3), (1, 2)]


@pytest.mark.parametrize(
    ("places", "says"),
    [
        (
            [{"position": 0}, {"position": 1}, {"position": 0}],
            "two elements of state 'list' have the position 0, .* keep the column subtask",
        ),
        (
            [{"subtask": 1, "position": 2}, {"subtask": 0, "position": 2}, {"subtask": 1, "position": 2}],
            "the position 2 of subtask 1, .* renumber the elements of each subtask",
        ),
    ],
)
def test_elements_whose_positions_do_not_tell_their_order_are_refused(tmp_path, places, says):
    columns = StructType()
    for column in places[0]:
        columns.add(column, LongType())
    tasks = [[Row(**place, element=n)] for n, place in enumerate(places)]
    with pytest.raises(StateError, match=says):
        write_rows(tmp_path / "new", columns.add("element", LongType()), tasks, **NEW_LIST)


def test_positions_of_different_subtasks_may_be_the_same_and_may_have_gaps(tmp_path):
    columns = StructType().add("subtask", IntegerType()).add("position", LongType()).add("element", LongType())
    places = [(1, 9), (0, 9), (1, 3), (0, -1)]
    tasks = [[Row(subtask=s, position=p, element=n)] for n, (s, p) in enumerate(places)]
    write_rows(tmp_path / "new", columns, tasks, **NEW_LIST)
    _, found = read_rows(tmp_path / "new", **UID, operatorState="list")
    assert [(row["subtask"], row["position"], row["element"]) for row in found] == [
        *((0, 0, 3), (0, 1, 1)),
        *((1, 0, 2), (1, 1, 0)),
    ]


def test_a_keyed_write_keeps_the_operator_state_of_its_operator_at_another_parallelism(path, tmp_path):
    columns = StructType().add("key", LongType()).add("seen", LongType())
    given = {"baseSavepoint": path, "parallelism": "3", **UID}
    write_rows(tmp_path / "new", columns, [[Row(key=1, seen=2)]], **given)
    assert {info.name for info in open_savepoint(str(tmp_path / "new")).operator("keep").metadata.states} == {
        *("seen", "list", "union", "rules")
    }
    for name in ("list", "union", "rules"):
        before, now = (
            [row.get("element", row.get("value")) for row in read_rows(each, **UID, operatorState=name)[1]]
            for each in (path, tmp_path / "new")
        )
        assert now == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda found: [{**found[0], "subtask": 2}], "subtask 2 of state 'list' is not one of 2"),
        (lambda found: [{**found[0], "element": None}], "the column 'element' of row .* is null"),
    ],
)
def test_rows_that_do_not_fit_the_operator_are_refused(path, tmp_path, change, says):
    with pytest.raises(StateError, match=says):
        changed(path, tmp_path / "new", "list", change)
    assert not (tmp_path / "new" / "_metadata").exists()


def test_stored_entries_without_a_value_are_refused(tmp_path):
    columns = StructType().add("key", BinaryType()).add("value", BinaryType())
    options = {"operatorState": "rules", "operatorStateKind": "broadcast", "storedForm": "true", **UID}
    with pytest.raises(StateError, match=r"the column 'value' of row .* is null"):
        write_rows(tmp_path / "new", columns, [[Row(key=b"k", value=None)]], **options)


def test_two_rows_of_a_key_of_broadcast_state_are_refused(path, tmp_path):
    with pytest.raises(StateError, match="a key of broadcast state 'rules' has two rows"):
        changed(path, tmp_path / "new", "rules", lambda found: found * 2)


ELEMENTS = StructType().add("element", LongType())


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (ELEMENTS, {"operatorState": "rules"}, "has no column 'key': rows of broadcast state have key and value"),
        (
            ELEMENTS.add("age", LongType()),
            {"operatorState": "list"},
            "a column 'age': .* may have subtask and position",
        ),
        (StructType().add("element", LongType()), {"operatorState": "list", "storedForm": "true"}, "must be bytes"),
        (StructType().add("element", LongType()), {"operatorState": "new"}, "needs the option operatorStateKind"),
        (
            StructType().add("element", LongType()),
            {"operatorState": "new", "operatorStateKind": "list"},
            "operator state, 'list': choose from list-split, list-union, broadcast, raw-operator, raw-keyed",
        ),
        (
            StructType().add("element", LongType()),
            {"operatorState": "list", "keyColumn": "k"},
            "does not use .* keyColumn",
        ),
        (
            StructType().add("element", LongType()),
            {"operatorState": "list", "parallelism": "3"},
            "does not use .* parallel",
        ),
        (
            StructType().add("element", BinaryType()),
            {"operatorState": "rules", "operatorStateKind": "list-split", "storedForm": "true"},
            "stored form of state 'rules' is that of the kind broadcast, not list-split",
        ),
        (
            StructType().add("element", BinaryType()),
            {"operatorState": "mine", "operatorStateKind": "raw-operator"},
            "'mine' cannot be of the kind raw-operator: raw state, and no other, has a name such as",
        ),
        (
            StructType().add("element", LongType()),
            {"operatorState": "_raw/operator", "operatorStateKind": "list-split"},
            "'_raw/operator' cannot be of the kind list-split",
        ),
        (
            StructType().add("subtask", StringType()).add("element", LongType()),
            {"operatorState": "list"},
            "the column 'subtask' is .*, and its values must be whole numbers",
        ),
        (StructType().add("key", LongType()), {"operatorStateKind": "broadcast"}, "does not use .* operatorStateKind"),
    ],
)
def test_mistakes_of_a_write_are_named(path, tmp_path, columns, options, says):
    with pytest.raises(ConfigurationError, match=says):
        writer_of(tmp_path / "new", columns, baseSavepoint=path, **UID, **options)


def test_mistakes_of_a_read_are_named(path):
    with pytest.raises(StateError, match="no operator state 'nothing'; it has 'list', 'rules', 'union'"):
        read_rows(path, **UID, operatorState="nothing")
    with pytest.raises(ConfigurationError, match="does not use the option stateVarName together with operatorState"):
        read_rows(path, **UID, operatorState="list", stateVarName="list")
    with pytest.raises(ConfigurationError, match="does not use the option stateVarName together with storedForm"):
        read_rows(path, **UID, storedForm="true", stateVarName="list")


def test_raw_keyed_state_of_key_groups_that_the_operator_does_not_have_is_refused(path, tmp_path):
    columns = StructType().add("key_group", IntegerType()).add("element", BinaryType())
    options = {"operatorState": "_raw/keyed", "operatorStateKind": "raw-keyed", "maxParallelism": "4", **UID}
    with pytest.raises(StateError, match="key group 4 of state '_raw/keyed' is not one of 4"):
        write_rows(tmp_path / "new", columns, [[Row(key_group=4, element=b"x")]], **options)
    with pytest.raises(StateError, match="state '_raw/keyed': there is no key group -1"):
        write_rows(tmp_path / "none", columns, [[Row(key_group=-1, element=b"x")]], **options)
    write_rows(tmp_path / "four", columns, [[Row(key_group=3, element=b"x")]], **options)
    keyed = StructType().add("key", LongType()).add("names", ArrayType(StringType()))
    given = {"baseSavepoint": str(tmp_path / "four"), **UID}
    with pytest.raises(StateError, match=r"raw keyed state of 4 key groups.*set maxParallelism to 4"):
        writer_of(tmp_path / "more", keyed, maxParallelism="8", **given)
    write_rows(tmp_path / "as before", keyed, [[Row(key=1, names=["a"])]], **given)
    assert open_savepoint(str(tmp_path / "as before")).operator("keep").metadata.max_parallelism == 4


def test_two_rows_of_one_key_group_of_raw_state_are_refused(tmp_path):
    columns = StructType().add("key_group", IntegerType()).add("element", BinaryType())
    options = {"operatorState": "_raw/keyed", "operatorStateKind": "raw-keyed", **UID}
    tasks = [[Row(key_group=3, element=b"x")], [Row(key_group=3, element=b"a")]]
    with pytest.raises(StateError, match="key group 3 of state '_raw/keyed' has two rows, and the order"):
        write_rows(tmp_path / "new", columns, tasks, **options)


def test_an_aborted_write_leaves_no_files(tmp_path):
    source = EkornStateSource(
        {"path": str(tmp_path / "new"), **UID, "operatorState": "l", "operatorStateKind": "list-split"}
    )
    writer = source.writer(StructType().add("element", LongType()), overwrite=False)
    message = writer.write(iter([Row(element=1)]))
    assert list((tmp_path / "new").iterdir())
    writer.abort([message])
    assert not list((tmp_path / "new").iterdir())


def writer_of(path, columns, **options):
    return EkornStateSource({"path": str(path), **options}).writer(columns, overwrite=False)


def writer_of_a_list(path, **options):
    return writer_of(path, StructType().add("element", LongType()), **NEW_LIST | options)


def test_a_parallelism_that_is_none_is_refused_before_anything_is_written(tmp_path):
    for name in ("parallelism", "maxParallelism"):
        with pytest.raises(ConfigurationError, match=f"the option {name} is a number"):
            writer_of_a_list(tmp_path / "new", **{name: "many"})
    with pytest.raises(ConfigurationError, match="the option parallelism is 9, more than the 8 key groups"):
        writer_of_a_list(tmp_path / "new", parallelism="9", maxParallelism="8")


class Loaded:
    """Leaves a file where its pickle is loaded."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_a_file_that_no_task_wrote_is_refused_before_its_pickle_is_loaded(tmp_path):
    writer = writer_of_a_list(tmp_path / "new")
    message = writer.write(iter([Row(element=1)]))
    (file,) = (tmp_path / "new").iterdir()
    file.unlink()
    write_state(open_files(str(tmp_path / "new")), file.name, pickle.dumps(Loaded(tmp_path / "loaded")), 0)
    with pytest.raises(CorruptFileError, match=file.name):
        writer.commit([message])
    assert not (tmp_path / "loaded").exists()
    assert message.file.sha256 is not None, "a checksum alone can be met by whoever replaces the file"


def test_the_states_of_an_operator_without_operator_state_are_told(tmp_path):
    path = savepoint_of(every_kind, tmp_path)
    with pytest.raises(StateError, match="no operator state 'value'; it has none"):
        read_rows(path, operatorUid="every-kind", operatorState="value")
