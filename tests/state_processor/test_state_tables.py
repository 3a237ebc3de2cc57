"""The data sources of Spark over savepoints, without a session: columns, rows by part, and the files of a writer."""

import datetime

import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, BinaryType, LongType, MapType, StringType, StructType, TimestampType

from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import CheckpointError, ConfigurationError, CorruptFileError, StateError
from ekorn.state_processor.reading.state_rows import key_rows, rows_by_key, rows_of_state
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.spark.registration import EkornStateMetadataSource, EkornStateSource
from ekorn.state_processor.writing.key_state_files import KeyStateFiles, StatesByColumn
from ekorn.storage.file_store import open_files
from ekorn.types.data_types import DataTypes, RowField, RowType
from tests.state_processor.programs import COUNT, KEYS, every_kind, numbers, restored, savepoint_of
from tests.state_processor.window_programs import counted_process, session_process

UID = {"operatorUid": "every-kind"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return savepoint_of(every_kind, tmp_path_factory.mktemp("state"), backend="rocksdb")


def rows(path, **options):
    """Read all partitions, as Spark's tasks do."""
    source = EkornStateSource({"path": path, **options})
    reader = source.reader(source.schema())
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return [row for batch in batches for row in batch.to_pylist()]


def test_one_row_for_each_key_with_a_column_for_each_state(path):
    found = rows(path, **UID)
    assert sorted(row["key"] for row in found) == list(range(KEYS))
    assert all(row["value"] == sum(row["list"]) == sum(dict(row["map"]).values()) for row in found)


def test_collections_are_flattened_unless_they_are_to_stay_whole(path):
    flat = rows(path, **UID, stateVarName="map")
    whole = rows(path, **UID, stateVarName="map", flattenCollectionTypes="false")
    assert len(whole) == KEYS < len(flat) < COUNT
    assert sorted((row["key"], row["user_map_key"], row["user_map_value"]) for row in flat) == sorted(
        (row["key"], *entry) for row in whole for entry in row["map_value"]
    )


@pytest.mark.parametrize(
    ("program", "state"), [(counted_process, "_window/contents"), (session_process, "_window/sessions")]
)
def test_windows_are_read_as_entries_with_a_namespace(tmp_path, program, state):
    stored = open_savepoint(savepoint_of(program, tmp_path)).operator("windows")
    table = rows_of_state(stored, state)
    found = [row for part in range(table.part_count) for row in table.rows(part, table.row_type())]
    assert found and {row[0] for row in found} <= set(range(KEYS))
    assert all(row[1] == "()" for row in found) == (program is counted_process)


def test_the_metadata_lists_every_state(path):
    source = EkornStateMetadataSource({"path": path})
    found = list(source.reader(source.schema()).read(None))
    assert {row[10] for row in found if row[5] == "every-kind"} >= {"value", "list", "map", "_timers/event"}
    assert all(row[1] == "savepoint" and row[8] == 128 for row in found)


def test_unknown_options_and_missing_ones_are_named(path):
    with pytest.raises(ConfigurationError, match="no option 'stateName'"):
        rows(path, **UID, stateName="value")
    with pytest.raises(ConfigurationError, match="needs the option operatorUid"):
        rows(path)
    with pytest.raises(StateError, match="no keyed state 'nothing'"):
        rows(path, **UID, stateVarName="nothing")
    with pytest.raises(ConfigurationError, match="is true or false, got 'maybe'"):
        rows(path, **UID, readRegisteredTimers="maybe")


def test_a_value_that_does_not_fit_the_columns_is_named_and_text_takes_all(tmp_path):
    class Mixed(KeyedProcessFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_state(ValueStateDescriptor("mixed"))

        def process_element(self, value, ctx):
            self.state.update(value if ctx.get_current_key() else {"at": [value]})
            yield value

    def mixed(env):
        return numbers(env).key_by(lambda n: n % KEYS).process(Mixed()).uid("mixed")

    table = rows_by_key(open_savepoint(savepoint_of(mixed, tmp_path)).operator("mixed"))
    texts = [row for part in range(table.part_count) for row in table.rows(part, table.row_type())]
    assert {type(row[1]) for row in texts} == {str} and any(row[1].startswith("{'at': [") for row in texts)
    longs = RowType([RowField("key", DataTypes.BIGINT()), RowField("mixed", DataTypes.BIGINT())])
    with pytest.raises(StateError, match=r"does not fit BIGINT.*in the row of key 0"):
        [row for part in range(table.part_count) for row in table.rows(part, longs)]


# ------------------------------------------------------------------------------------------------------------ writing

COLUMNS = StructType().add("key", LongType()).add("value", LongType()).add("list", ArrayType(LongType()))
COLUMNS = COLUMNS.add("map", MapType(StringType(), LongType()))


def write(path, tasks, columns=COLUMNS, **options):
    """Write the rows of some tasks, as Spark does."""
    writer = EkornStateSource({"path": str(path), **options}).writer(columns, overwrite=False)
    writer.commit([writer.write(iter(task)) for task in tasks])


def row_of(key):
    listed = [n for n in range(COUNT) if n % KEYS == key]
    return Row(key=key, value=sum(listed), list=listed, map={str(n): n for n in listed})


def test_a_savepoint_is_written_by_tasks_and_the_other_operators_are_copied(tmp_path, path):
    write(tmp_path / "new", [[row_of(0), row_of(1)], [row_of(2)], [row_of(3), row_of(4)]], **UID, baseSavepoint=path)
    found = {row["key"]: row for row in rows(str(tmp_path / "new"), **UID)}
    assert {key: row["value"] for key, row in found.items()} == {key: row_of(key).value for key in range(KEYS)}
    uids = {operator.uid for operator in open_savepoint(path).metadata.operators}
    assert {operator.uid for operator in open_savepoint(str(tmp_path / "new")).metadata.operators} == uids
    later = restored(every_kind, str(tmp_path / "new"), tmp_path, parallelism=3)
    assert later, "the job goes on from its positions, with the state of the rows"
    firsts = {record[0]: record[1] - record[2][-1] for record in reversed(later)}
    assert firsts == {key: row_of(key).value for key in firsts}


def test_mistakes_of_a_write_are_refused(tmp_path, path):
    with pytest.raises(StateError, match="key 1 has two rows"):
        write(tmp_path / "twice", [[row_of(1), row_of(1)]], **UID)
    with pytest.raises(ConfigurationError, match="no column 'user' for the key"):
        write(tmp_path / "new", [], **UID, keyColumn="user")
    with pytest.raises(ConfigurationError, match="a number from 1 to 32768"):
        write(tmp_path / "new", [], **UID, maxParallelism="many")
    with pytest.raises(CheckpointError, match="already contains files"):
        write(path, [], **UID)
    with pytest.raises(ConfigurationError, match="never written over another"):
        EkornStateSource({"path": path, **UID}).writer(COLUMNS, overwrite=True)


NUMBERS = StructType().add("key", LongType()).add("count", LongType())


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (NUMBERS, {"operatorUid": ""}, "needs the option operatorUid"),
        (NUMBERS, {"parallelism": "200"}, "parallelism is 200, more than the 128 key groups"),
        (StructType().add("key", LongType()), {}, "no column besides the key 'key': every other column is a state"),
        (
            StructType().add("key", LongType()).add("_timers/event", LongType()),
            {},
            "'_timers/event' cannot be a state: names that start with '_' are reserved for the runtime",
        ),
        (
            StructType().add("key", StructType().add("a", MapType(StringType(), LongType()))).add("n", LongType()),
            {},
            "the column 'key' has maps, which cannot be keys",
        ),
    ],
)
def test_mistakes_of_a_write_are_named_at_the_call(tmp_path, columns, options, says):
    with pytest.raises(ConfigurationError, match=says):
        EkornStateSource({"path": str(tmp_path / "new"), **UID, **options}).writer(columns, overwrite=False)


def test_a_keyed_write_has_the_key_groups_of_the_operator_that_it_replaces(tmp_path):
    write(tmp_path / "old", [[row_of(1)]], **UID, maxParallelism="16")
    write(tmp_path / "new", [[row_of(1)]], **UID, baseSavepoint=str(tmp_path / "old"))
    assert open_savepoint(str(tmp_path / "new")).operator("every-kind").metadata.max_parallelism == 16


MOMENT = datetime.datetime(2024, 1, 31, 12, 30, 1, 999)  # Spark gives it in the time zone of the process


@pytest.mark.parametrize(
    ("data_type", "given", "found"),
    [
        (TimestampType(), MOMENT, MOMENT.astimezone(datetime.UTC)),
        (BinaryType(), bytearray(b"ab"), b"ab"),
        (StructType().add("a", BinaryType()), Row(a=bytearray(b"x")), {"a": b"x"}),
        (StructType().add("a", ArrayType(TimestampType())), Row(a=[MOMENT]), {"a": [MOMENT.astimezone(datetime.UTC)]}),
    ],
)
def test_timestamps_and_bytes_are_written_and_read(tmp_path, data_type, given, found):
    columns = StructType().add("key", data_type).add("v", data_type).add("l", ArrayType(data_type))
    columns = columns.add("m", MapType(StringType(), data_type))
    write(tmp_path / "new", [[Row(key=given, v=given, l=[given], m={"a": given})]], columns, **UID)
    (row,) = rows(str(tmp_path / "new"), **UID)
    as_key = {f"f{n}": value for n, value in enumerate(found.values())} if isinstance(found, dict) else found
    assert row == {"key": as_key, "v": found, "l": [found], "m": [("a", found)]}


def test_structs_inside_of_keys_are_tuples(tmp_path):
    inner = StructType().add("b", StringType()).add("c", LongType())
    columns = StructType().add("key", StructType().add("a", LongType()).add("inner", inner)).add("n", LongType())
    write(tmp_path / "new", [[Row(key=Row(a=1, inner=Row(b="x", c=2)), n=5)]], columns, **UID)
    stored = open_savepoint(str(tmp_path / "new")).operator("every-kind")
    assert [row for part in range(len(stored.parts())) for row in key_rows(stored, part)] == [((1, ("x", 2)), {"n": 5})]


def test_digests_of_keys_that_are_not_those_of_a_task_are_refused(tmp_path):
    writer = EkornStateSource({"path": str(tmp_path / "new"), **UID}).writer(NUMBERS, overwrite=False)
    message = writer.write(iter([Row(key=1, count=1)]))
    (file,) = (tmp_path / "new").glob("keys-*")
    file.write_bytes(file.read_bytes()[:-16])
    with pytest.raises(CorruptFileError, match=file.name):
        writer.commit([message])


@pytest.mark.parametrize("value", [1, None])
def test_two_rows_of_a_key_in_different_tasks_are_refused(tmp_path, value):
    again = Row(key=1, value=value, list=[value] if value else None, map=None)
    with pytest.raises(StateError, match=r"key .* has two rows.*group the DataFrame by the key"):
        write(tmp_path / "new", [[row_of(0), row_of(1)], [row_of(2)], [row_of(3), again]], **UID)
    assert not (tmp_path / "new" / "_metadata").exists()


def test_the_digests_of_keys_are_not_part_of_the_savepoint(tmp_path):
    write(tmp_path / "new", [[row_of(0), row_of(1)], [row_of(2)]], **UID)
    assert not list((tmp_path / "new").glob("keys-*"))


def test_an_aborted_write_leaves_no_files(tmp_path):
    writer = EkornStateSource({"path": str(tmp_path / "new"), **UID}).writer(COLUMNS, overwrite=False)
    message = writer.write(iter([row_of(1)]))
    assert list((tmp_path / "new").iterdir())
    writer.abort([message])
    assert not list((tmp_path / "new").iterdir())


def test_a_second_row_of_a_key_is_refused_after_the_first_one_was_written(tmp_path):
    columns = RowType([RowField("key", DataTypes.STRING()), RowField("count", DataTypes.BIGINT())])
    target = KeyStateFiles(
        open_files(str(tmp_path)),
        StatesByColumn(columns, "key"),
        parallelism=2,
        max_parallelism=8,
        hashed=False,
        buffered_entries=1,
    )
    target.add("a", {"count": 1})
    target.add("b", {"count": None})
    for key in ("a", "b"):
        with pytest.raises(StateError, match=f"key '{key}' has two rows"):
            target.add(key, {"count": 2})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"readRegisteredTimers": "true", "stateVarName": "value"},
            "does not use the option stateVarName together with read",
        ),
        ({"flattenCollectionTypes": "false"}, "needs the option stateVarName: flattenCollectionTypes is for"),
    ],
)
def test_options_that_would_be_ignored_are_refused(path, options, says):
    with pytest.raises(ConfigurationError, match=says):
        rows(path, **UID, **options)
    with pytest.raises(ConfigurationError, match="ekorn-state-metadata has no option 'operatorUid'; it has path"):
        list(EkornStateMetadataSource({"path": path, **UID}).reader(None).read(None))
