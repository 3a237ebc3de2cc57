"""The change feed between two savepoints: entries that were added, removed and changed, at any parallelism."""

import tracemalloc

import pytest

from ekorn.state_processor.operator_identifier import OperatorIdentifier
from ekorn.state_processor.reading.state_rows import rows_of_changes
from ekorn.state_processor.reading.stored_savepoint import open_savepoint
from ekorn.state_processor.tools.editing import edit_savepoint
from ekorn.state_processor.tools.savepoint_inspection import differences
from ekorn.state_processor.writing.key_state_files import KeyStateFiles, StatesByColumn, operator_metadata
from ekorn.state_processor.writing.new_savepoint import NewSavepoint
from ekorn.storage.file_store import open_files
from ekorn.types.data_types import DataTypes, RowField, RowType
from tests.state_processor.programs import KEYS, every_kind, savepoint_of

UID = "every-kind"
COLUMNS = RowType([RowField("key", DataTypes.BIGINT()), RowField("text", DataTypes.STRING())])


def changes(old, new, name):
    table = rows_of_changes(open_savepoint(old).operator(UID), open_savepoint(new).operator(UID), name)
    rows = [row for part in range(table.part_count) for row in table.rows(part, table.row_type())]
    return sorted((row[0], *row[1:]) for row in rows)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("native", [False, True])
def test_added_removed_and_changed_entries_are_told_apart(tmp_path, backend, native):
    path = savepoint_of(every_kind, tmp_path, backend=backend, native=native)
    before = {}

    def edit(key, states):
        before[key] = states["value"]
        if key == 0:
            del states["value"]
        elif key == 1:
            states["value"] = -1
        elif key == 2:
            states["list"] = [7]

    edited = edit_savepoint(path, UID, edit, str(tmp_path / "edited")).path
    forth = [(0, "removed", None, before[0], None), (1, "changed", None, before[1], -1)]
    assert changes(path, edited, "value") == forth, "and nothing of the list of key 2"
    assert changes(edited, path, "value") == [(0, "added", None, None, before[0]), (1, "changed", None, -1, before[1])]
    ((key, change, _, _, now),) = changes(path, edited, "list")
    assert (key, change, list(now)) == (2, "changed", [7])
    assert changes(path, path, "value") == []


def test_savepoints_of_different_parallelism_are_compared_key_by_key(tmp_path):
    one = savepoint_of(every_kind, tmp_path / "one", parallelism=1)
    other = savepoint_of(every_kind, tmp_path / "other", parallelism=3)
    assert changes(one, other, "reducing") == changes(other, one, "reducing") == []
    for before, parallelism in ((one, 3), (other, 1), (other, 2)):
        later = savepoint_of(every_kind, tmp_path / f"later-{parallelism}", parallelism=parallelism, after=5)
        found = changes(before, later, "value")
        assert [row[0] for row in found] == list(range(KEYS)) and {row[1] for row in found} == {"changed"}
        assert all(now > previous for _, _, _, previous, now in found)


def test_differences_hold_a_piece_of_both_savepoints_in_memory_and_not_all_of_them(tmp_path):
    paths, keys = [tmp_path / "old", tmp_path / "new"], 8_000
    for path in paths:
        files = KeyStateFiles(
            open_files(str(path)), StatesByColumn(COLUMNS, "key"), parallelism=1, max_parallelism=128, hashed=False
        )
        changed = path == paths[1]
        for key in range(keys):
            value = f"{key:05}-" * (900 if changed and key in (7, 4_000) else 800)
            if not (changed and key == 5):
                files.add(key, {"text": value})
        written = files.finish()
        infos = StatesByColumn(COLUMNS, "key").infos
        operator = operator_metadata(OperatorIdentifier.for_uid(UID), infos, written.files, 1, 128)
        NewSavepoint(open_files(str(path)), None, 1, "0" * 32, "job").publish([operator])
    one, other = (open_savepoint(str(path)).operator(UID) for path in paths)
    tracemalloc.start()
    try:
        found = [(each.address.key, each.change) for each in differences(one, other)]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sorted(found) == [(5, "removed"), (7, "changed"), (4_000, "changed")]
    held_bytes = 2 * keys * 800 * 6
    assert peak_bytes < held_bytes * 2 // 3, "the values of both savepoints take up more"
