"""Which files of a snapshot were created for its checkpoint: nothing else refers to them until it is complete."""

from ekorn.checkpoint.file_names import files_created_for
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateFile, SubtaskSnapshot


def file(path: str | None) -> StateFile:
    return StateFile(1, 0, path=path, inline=None if path else b"x")


def test_keyed_and_operator_state_of_the_checkpoint_itself_count_and_older_shared_files_do_not():
    keyed = KeyedFiles(0, 127, tuple(map(file, ("shared/7-a", "shared/6-b", "chk-7/7-c", None, "shared/7-a"))))
    operators = (
        OperatorSnapshot("one", None, "one", keyed, file("chk-7/7-d")),
        OperatorSnapshot("two", None, "two", None, file("chk-6/6-e")),
        OperatorSnapshot("three", None, "three", None, file("chk-7/7-f")),
        OperatorSnapshot("four", None, "four", None, None),
    )
    created = files_created_for(SubtaskSnapshot(0, 0, operators), 7)
    assert sorted(created) == ["chk-7/7-c", "chk-7/7-d", "chk-7/7-f", "shared/7-a"]
    assert files_created_for(SubtaskSnapshot(0, 0, operators), 8) == ()
