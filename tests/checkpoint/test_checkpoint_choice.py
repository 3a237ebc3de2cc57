"""The choice of a checkpoint: the newest readable one, an older one with an error in the log, never an empty start."""

import contextlib
import random

import pytest

from ekorn.checkpoint.checkpoint_choice import choose_checkpoint
from ekorn.checkpoint.file_verification import verify_files
from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.errors import CheckpointError, CorruptFileError, RestoreError
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot
from ekorn.state.state_files import write_state
from ekorn.storage.local import LocalFiles
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import JOB, all_files, graph, metadata, opened, vertex
from tests.checkpoint.faulty_files import Fault, FaultyFiles

JOB_GRAPH = graph(vertex(0, "source", source=True), vertex(1, "count", parallelism=2))


def with_checkpoints(store, *ids):
    directory = opened(store)
    for checkpoint_id in ids:
        directory.complete(metadata(JOB_GRAPH, directory.files, checkpoint_id))
    return directory


def rewrite(files, path, change):
    data = change(files.read(path))
    files.delete(path)
    files.write(path, data)


def chosen(directory, **more):
    found = choose_checkpoint(directory, **more)
    assert found is not None
    return found


def test_the_newest_checkpoint_is_chosen():
    directory = with_checkpoints(MemoryFiles(), 9, 10, 11)
    found = chosen(directory)
    assert found.restore_point.metadata == directory.load(11)
    assert found.passed_over == ()


def test_a_job_that_never_completed_one_starts_from_nothing():
    directory = with_checkpoints(MemoryFiles())
    metadata(JOB_GRAPH, directory.files, 1)
    assert choose_checkpoint(directory) is None


def damage_kinds(rng):
    return {
        "missing": None,
        "cut": lambda data: data[: rng.randrange(len(data))],
        "flipped": lambda data: _flip(data, rng.randrange(len(data) * 8)),
        "foreign": lambda data: b"something else entirely",
        "longer": lambda data: data + b"x",
    }


def _flip(data, bit):
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


@pytest.mark.parametrize("kind", ["missing", "cut", "flipped", "foreign", "longer"])
def test_any_damage_to_any_file_makes_it_use_the_one_before_and_say_so(kind, caplog):
    rng = random.Random(kind)
    paths = sorted(p for p in all_files(with_checkpoints(MemoryFiles(), 1, 2).files) if "2-" in p or "chk-2/" in p)
    assert any(p.endswith("_metadata") for p in paths)
    for path in paths:
        directory = with_checkpoints(MemoryFiles(), 1, 2)
        change = damage_kinds(rng)[kind]
        if change is None:
            directory.files.delete(path)
        else:
            rewrite(directory.files, path, change)
        caplog.clear()
        found = chosen(directory)
        assert found.restore_point.metadata.checkpoint_id == 1
        if kind == "missing" and path.endswith("_metadata"):
            continue  # without metadata the checkpoint never existed
        ((skipped, why),) = found.passed_over
        assert skipped == 2
        assert path.rsplit("/", 1)[1] in why
        assert "checkpoint 2" in caplog.text
        assert "older checkpoint 1" in caplog.text


def test_two_hundred_random_bit_flips_are_all_found():
    rng = random.Random(7)
    store = MemoryFiles()
    directory = with_checkpoints(store, 1, 2)
    of_second = sorted({*directory.load(2).paths(), "chk-2/_metadata"})
    for _ in range(200):
        path = rng.choice(of_second)
        original = directory.files.read(path)
        directory.files.replace(path, _flip(original, rng.randrange(len(original) * 8)))
        assert chosen(directory).restore_point.metadata.checkpoint_id == 1
        directory.files.replace(path, original)
    assert chosen(directory).restore_point.metadata.checkpoint_id == 2


def test_when_none_can_be_read_the_job_fails_rather_than_starting_empty():
    directory = with_checkpoints(MemoryFiles(), 1, 2)
    for checkpoint_id in (1, 2):
        rewrite(directory.files, f"chk-{checkpoint_id}/_metadata", lambda data: data[:-3])
    with pytest.raises(RestoreError) as caught:
        choose_checkpoint(directory)
    for part in ("checkpoint 1", "checkpoint 2", "starting empty", "chk-1/_metadata", "savepoint"):
        assert part in str(caught.value)


def test_what_a_slot_could_not_read_is_not_tried_again():
    directory = with_checkpoints(MemoryFiles(), 1, 2)
    found = chosen(directory, exclude={2})
    assert found.restore_point.metadata.checkpoint_id == 1
    assert found.passed_over[0][0] == 2
    with pytest.raises(RestoreError):
        choose_checkpoint(directory, exclude={1, 2})


def test_a_hiccup_of_the_storage_does_not_cost_a_good_checkpoint():
    store = FaultyFiles(MemoryFiles())
    directory = with_checkpoints(store, 1, 2)
    store.add(Fault("list", ""), Fault("read", "chk-2/_metadata"), Fault("read", "shared/2-*"))
    assert chosen(directory).restore_point.metadata.checkpoint_id == 2


def test_a_storage_that_does_not_answer_is_no_reason_to_repeat_what_was_committed():
    store = FaultyFiles(MemoryFiles())
    directory = with_checkpoints(store, 1, 2)
    store.add(Fault("read", "chk-2/*", times=3))
    with pytest.raises(
        CheckpointError, match=r"cannot be read at present.*injected.*delete the checkpoint's directory"
    ):
        choose_checkpoint(directory)
    assert chosen(directory).restore_point.metadata.checkpoint_id == 2


def test_beyond_what_is_cheap_only_existence_and_size_are_checked():
    counted = FaultyFiles(MemoryFiles())
    directory = with_checkpoints(counted, 1)
    value = directory.load(1)
    counted.calls.clear()
    verify_files(directory.files, value, cheap_bytes=0)
    assert {operation for operation, _ in counted.calls} == {"size"}
    path = next(iter(value.paths()))
    rewrite(directory.files, path, lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    verify_files(directory.files, value, cheap_bytes=0)
    with pytest.raises(CorruptFileError):
        verify_files(directory.files, value)
    directory.files.delete(path)
    with pytest.raises(CorruptFileError, match="no such file"):
        verify_files(directory.files, value, cheap_bytes=0)


def test_a_file_that_all_subtasks_refer_to_is_read_once_and_every_file_is_verified():
    counted = FaultyFiles(MemoryFiles())
    directory = opened(counted)
    shared = write_state(directory.files, "shared/old", b"x" * 20, 0)
    value = metadata(JOB_GRAPH, directory.files, 1, reuse=(shared,))
    counted.calls.clear()
    verify_files(directory.files, value)
    assert [path for operation, path in counted.calls if operation == "read"].count("shared/old") == 1
    for path in sorted(value.paths()):
        whole = directory.files.read(path)
        rewrite(directory.files, path, lambda data: data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(CorruptFileError, match=path):
            verify_files(directory.files, value)
        rewrite(directory.files, path, lambda data, whole=whole: whole)


def test_a_file_that_is_too_large_to_verify_leaves_the_budget_to_smaller_ones():
    directory = opened(MemoryFiles())
    large = write_state(directory.files, "shared/large", b"x" * 100, 0)
    value = metadata(JOB_GRAPH, directory.files, 1, reuse=(large,))
    small = next(path for path in sorted(value.paths()) if path != "shared/large")
    rewrite(directory.files, "shared/large", lambda data: data[:-1] + b"y")
    verify_files(directory.files, value, cheap_bytes=99)
    rewrite(directory.files, small, lambda data: data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CorruptFileError, match=small):
        verify_files(directory.files, value, cheap_bytes=99)


@pytest.mark.parametrize(("cheap_bytes", "damage_is_found"), [(45, True), (44, False)])
def test_files_are_read_as_long_as_all_of_them_together_are_cheap(cheap_bytes, damage_is_found):
    files = opened(MemoryFiles()).files
    stored = [write_state(files, f"shared/{size}", b"x" * size, 0) for size in (20, 25)]
    operator = OperatorSnapshot("a" * 32, None, "count", keyed=KeyedFiles(0, 127, tuple(stored)))
    part = OperatorMetadata("a" * 32, None, "count", 1, 128, (operator,), (False,))
    value = CheckpointMetadata(1, JOB, "job", 0, (part,))
    rewrite(files, "shared/25", lambda data: data[:-1] + b"y")
    with pytest.raises(CorruptFileError) if damage_is_found else contextlib.nullcontext():
        verify_files(files, value, cheap_bytes=cheap_bytes)


def test_a_file_swapped_with_that_of_another_job_is_found(tmp_path):
    directory = with_checkpoints(LocalFiles(tmp_path), 1, 2)
    ours = sorted(p for p in directory.load(2).paths() if p.startswith("shared/"))
    first, second = (tmp_path / directory.job_id / p for p in ours[:2])
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    assert chosen(directory).restore_point.metadata.checkpoint_id == 1


def started(store, name="one", **kwargs):
    directory = opened(store, name=name, **kwargs)
    chosen = choose_checkpoint(directory)
    directory.start_from(None if chosen is None else chosen.restore_point.metadata.checkpoint_id)
    return directory, chosen


def test_metadata_of_the_newest_checkpoint_that_is_gone_is_missed(caplog):
    store = MemoryFiles()
    directory, _ = started(store)
    for checkpoint_id in (1, 2):
        directory.complete(metadata(JOB_GRAPH, directory.files, checkpoint_id))
    directory.files.delete("chk-2/_metadata")
    _, chosen = started(store, "two", take_over=True)
    assert chosen.restore_point.metadata.checkpoint_id == 1
    assert [checkpoint_id for checkpoint_id, _ in chosen.passed_over] == [2]
    assert "restoring the older checkpoint 1 instead of 2" in caplog.text


def test_when_the_only_checkpoint_is_gone_the_job_does_not_begin_anew_in_silence():
    store = MemoryFiles()
    directory, _ = started(store)
    directory.complete(metadata(JOB_GRAPH, directory.files, 1))
    directory.files.delete_tree("chk-1")
    with pytest.raises(RestoreError, match=r"none of the checkpoints .*chk-1/_metadata"):
        started(store, "two", take_over=True)


def test_what_a_driver_started_from_is_missed_too_until_it_has_a_newer_one():
    store = MemoryFiles()
    directory, _ = started(store)
    directory.complete(metadata(JOB_GRAPH, directory.files, 1))
    second, _ = started(store, "two", take_over=True)
    second.complete(metadata(JOB_GRAPH, second.files, 2))
    second.discard(1)
    third, chosen = started(store, "three", take_over=True)
    assert chosen.restore_point.metadata.checkpoint_id == 2
    third.files.delete("chk-2/_metadata")
    with pytest.raises(RestoreError, match="chk-2/_metadata"):
        started(store, "four", take_over=True)
