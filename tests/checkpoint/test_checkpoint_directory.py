"""The checkpoint directory: its layout, its commit point, and the paths that a user may restore from."""

import os
import re
import threading

import pytest

from ekorn.checkpoint.checkpoint_directory import AbandonedCheckpoint, CheckpointDirectory, Listing
from ekorn.checkpoint.file_names import SnapshotNames, created_for
from ekorn.checkpoint.janitor import Janitor
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.owner_files import Start, read_start
from ekorn.checkpoint.restore_point import resolve
from ekorn.errors import CheckpointError, ConfigurationError, CorruptFileError, Fenced, RestoreError
from ekorn.state.state_files import read_state
from ekorn.storage.local import LocalFiles
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import JOB, all_files, driver, graph, metadata, opened, vertex
from tests.checkpoint.faulty_files import Fault, FaultyFiles
from tests.object_store import FakeObjects, object_store

JOB_GRAPH = graph(vertex(0, "source", source=True), vertex(1, "count", parallelism=2))


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return LocalFiles(tmp_path / "checkpoints") if request.param == "local" else MemoryFiles()


def test_the_directories_are_there_before_the_first_checkpoint(store):
    opened(store)
    assert store.list() == [JOB]
    assert {"shared", "taskowned"} <= set(store.list(JOB))
    assert store.list(f"{JOB}/shared") == []


def test_a_completed_checkpoint_is_found_and_reads_back(store):
    directory = opened(store)
    written = directory.complete(metadata(JOB_GRAPH, directory.files, 7))
    assert directory.completed_ids() == [7]
    assert directory.load(7) == written
    assert written.term == directory.term == 1
    assert store.exists(f"{JOB}/chk-7/_metadata")


def test_a_checkpoint_without_metadata_does_not_exist(store):
    directory = opened(store)
    metadata(JOB_GRAPH, directory.files, 7)
    assert directory.completed_ids() == []
    assert directory.highest_id() == 7
    with pytest.raises(CorruptFileError, match="no such file"):
        directory.load(7)


def test_a_driver_records_a_first_number_above_all_that_were_ever_used(store):
    first = opened(store)
    first.start_from(None)
    assert read_start(first.files, 1) == Start(1, None, None, 1)
    first.complete(metadata(JOB_GRAPH, first.files, 7))
    metadata(JOB_GRAPH, first.files, 9)  # it did not complete
    first.release()
    second = opened(store, name="two")
    second.start_from(7)
    assert read_start(second.files, 2) == Start(2, 7, 1, 10)


def test_without_a_subdirectory_the_checkpoint_directory_is_the_jobs(store):
    directory = CheckpointDirectory(store, JOB, create_subdir=False)
    directory.initialise(driver(), 0)
    directory.complete(metadata(JOB_GRAPH, directory.files, 1))
    assert store.exists("chk-1/_metadata")
    directory.delete_everything()
    assert all_files(store) == []


def test_discarding_removes_the_metadata_before_anything_else():
    store = FaultyFiles(MemoryFiles())
    directory = opened(store)
    directory.complete(metadata(JOB_GRAPH, directory.files, 7))
    store.add(Fault("delete_tree", "*"))
    with pytest.raises(OSError, match="injected"):
        directory.discard(7)
    assert directory.completed_ids() == []
    directory.discard(7)
    assert directory.listing().checkpoints == ()


def test_a_checkpoint_whose_metadata_cannot_be_deleted_stays_whole():
    store = FaultyFiles(MemoryFiles(), Fault("publish", "*_metadata", after=True))
    directory = opened(store)
    value = metadata(JOB_GRAPH, directory.files, 7)
    with pytest.raises(OSError, match="injected"):
        directory.complete(value)  # the call seems to fail, but the checkpoint exists
    store.add(Fault("delete", "*_metadata"))
    with pytest.raises(OSError, match="injected"):
        directory.discard(7, value.paths())
    found = decode_metadata(directory.files.read("chk-7/_metadata"), "chk-7/_metadata")
    for file in found.files():
        read_state(directory.files, file)
    with pytest.raises(AbandonedCheckpoint, match="deleting"):  # whole, but no driver may start from it any more
        directory.load(7)
    directory.discard(7, value.paths())
    assert directory.listing() == Listing()


def test_discarding_leaves_shared_files_alone(store):
    directory = opened(store)
    kept = metadata(JOB_GRAPH, directory.files, 7)
    directory.complete(kept)
    directory.discard(7)
    assert set(directory.listing().shared) == {p for p in kept.paths() if p.startswith("shared/")}
    directory.delete_files(directory.listing().shared)
    assert directory.listing() == Listing()


def test_nothing_is_left_when_everything_is_deleted(store):
    directory = opened(store)
    directory.complete(metadata(JOB_GRAPH, directory.files, 7))
    metadata(JOB_GRAPH, directory.files, 8)
    directory.delete_everything()
    assert store.list() == []


def test_a_publication_whose_answer_was_lost_is_recognised_when_repeated():
    store = FaultyFiles(MemoryFiles(), Fault("publish", "*_metadata", after=True))
    directory = opened(store)
    value = metadata(JOB_GRAPH, directory.files, 7)
    with pytest.raises(OSError, match="injected"):
        directory.complete(value)
    directory.complete(value)
    assert directory.completed_ids() == [7]


def test_a_checkpoint_id_is_not_used_twice(store):
    directory = opened(store)
    directory.complete(metadata(JOB_GRAPH, directory.files, 7))
    with pytest.raises(CheckpointError, match="never used twice"):
        directory.complete(metadata(JOB_GRAPH, directory.files, 7, chance=None, attempt="1.1"))


def test_a_checkpoint_that_leans_on_another_ones_directory_is_refused(store):
    directory = opened(store)
    other = metadata(JOB_GRAPH, directory.files, 6)
    exclusive = next(f for f in other.files() if f.path.startswith("chk-6/"))
    with pytest.raises(CheckpointError, match=r"chk-6/.*belongs in shared/"):
        directory.complete(metadata(JOB_GRAPH, directory.files, 7, reuse=(exclusive,)))


def test_metadata_put_under_another_number_is_found(store):
    directory = opened(store)
    directory.files.publish("chk-8/_metadata", encode_metadata(metadata(JOB_GRAPH, directory.files, 7)))
    with pytest.raises(CorruptFileError, match="checkpoint 7"):
        directory.load(8)


@pytest.mark.parametrize("job_id", ["", ".", "..", "a/b", "/abs", "-x"])
def test_a_job_id_must_be_able_to_name_a_directory(job_id):
    with pytest.raises(ConfigurationError, match="job id"):
        CheckpointDirectory(MemoryFiles(), job_id)


def test_a_directory_that_cannot_be_written_to_fails_at_the_start_with_the_cause():
    store = FaultyFiles(
        MemoryFiles(), Fault("replace", "shared/.probe", error=PermissionError(13, "Permission denied"))
    )
    with pytest.raises(CheckpointError, match=r"cannot write checkpoints to .*Permission denied.*checkpointing\.dir"):
        opened(store)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory_fails_at_the_start(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="cannot write checkpoints"):
        opened(LocalFiles(tmp_path))


def test_a_directory_that_is_a_file_fails_at_the_start(tmp_path):
    (tmp_path / "checkpoints").write_text("not a directory")
    with pytest.raises(CheckpointError, match="cannot write checkpoints"):
        opened(LocalFiles(tmp_path / "checkpoints"))


# ------------------------------------------------------------------------------------------ the names


def test_two_writers_of_one_subtask_never_share_a_name():
    zombie, current = SnapshotNames(1, 0, "1.0"), SnapshotNames(1, 0, "1.0")
    made = [name for names in (zombie, current) for _ in range(100) for name in (names.shared(7), names.exclusive(7))]
    assert len(set(made)) == len(made)


def test_a_name_says_which_checkpoint_it_was_made_for():
    names = SnapshotNames(1, 0, "2.13")
    assert re.fullmatch(r"shared/7-v1-s0-a2\.13-[0-9a-f]{16}", names.shared(7))
    assert created_for(names.shared(7)) == created_for(names.exclusive(7)) == 7
    assert created_for("taskowned/7-x") is None
    assert created_for("shared/something") is None


# ------------------------------------------------------------------------------------------ what a user may point at


@pytest.fixture
def retained(tmp_path):
    directory = opened(LocalFiles(tmp_path))
    directory.complete(metadata(JOB_GRAPH, directory.files, 6))
    directory.complete(metadata(JOB_GRAPH, directory.files, 7))
    return tmp_path / JOB


@pytest.mark.parametrize(
    "form", ["{}/chk-7", "{}/chk-7/", "{}/chk-7/_metadata", "file://{}/chk-7", "file://{}/chk-7/_metadata"]
)
def test_a_checkpoint_is_found_by_its_directory_or_its_metadata(retained, form):
    store, found = resolve(form.format(retained))
    assert found.checkpoint_id == 7
    for file in found.files():
        read_state(store, file)


def test_a_link_to_a_checkpoint_is_followed(retained, tmp_path):
    (tmp_path / "latest").symlink_to(retained / "chk-7")
    store, found = resolve(str(tmp_path / "latest"))
    assert found.checkpoint_id == 7
    assert store.exists("chk-7/_metadata")


def test_the_directory_above_is_answered_with_what_it_holds(retained):
    with pytest.raises(RestoreError, match=r"give one of the checkpoints below it: chk-6, chk-7"):
        resolve(str(retained))


def test_a_path_with_nothing_there_is_refused(tmp_path):
    with pytest.raises(RestoreError, match="no such directory"):
        resolve(str(tmp_path / "chk-1"))
    (tmp_path / "chk-2").mkdir()
    (tmp_path / "chk-2" / "state").write_bytes(b"x")
    with pytest.raises(RestoreError, match="complete only if that file exists"):
        resolve(str(tmp_path / "chk-2"))
    with pytest.raises(RestoreError, match="never completed"):
        resolve(str(tmp_path))


def test_a_checkpoint_moved_away_from_its_shared_files_is_refused_with_the_reason(retained, tmp_path):
    (retained / "chk-7").rename(tmp_path / "copy")
    with pytest.raises(RestoreError, match="not named chk-7"):
        resolve(str(tmp_path / "copy"))


def test_damaged_metadata_is_named(retained):
    path = retained / "chk-7" / "_metadata"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="chk-7/_metadata"):
        resolve(str(retained / "chk-7"))


def test_the_metadata_of_another_checkpoint_is_not_taken_for_the_one_that_was_named(retained):
    (retained / "chk-7" / "_metadata").write_bytes((retained / "chk-6" / "_metadata").read_bytes())
    with pytest.raises(CorruptFileError, match=r"chk-7/_metadata.* found checkpoint 6 .* expected checkpoint 7"):
        resolve(str(retained / "chk-7"))


def test_metadata_that_is_a_link_to_elsewhere_is_refused(retained, tmp_path):
    path = retained / "chk-7" / "_metadata"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="is outside"):
        resolve(str(retained / "chk-7"))


def test_a_scheme_without_storage_is_refused():
    with pytest.raises(ConfigurationError, match="neither pyarrow nor fsspec knows it"):
        resolve("nosuch://bucket/chk-1")


# ------------------------------------------------------------------------------------------ cleaning in the background


def remote_directory(janitor=None, **kwargs):
    access = FakeObjects(**kwargs)
    directory = CheckpointDirectory(object_store(access), JOB, janitor=janitor)
    directory.initialise(driver(), 0)
    directory.start_from(None)
    return directory, access


def test_on_remote_storage_nobody_waits_for_a_deletion():
    gate = threading.Event()
    waits = []

    def hook():
        if threading.current_thread().name == "checkpoint-janitor":
            waits.append(gate.wait(60))

    directory, _ = remote_directory(hook=hook)
    for checkpoint_id in (1, 2):
        directory.complete(metadata(JOB_GRAPH, directory.files, checkpoint_id))
    directory.discard(1)
    directory.delete_files(["shared/x"])
    assert directory.files.exists("chk-1/_metadata")
    gate.set()
    assert directory.completed_ids() == [2]  # deletions in the background finish before a listing
    assert waits and all(waits)


def test_a_deletion_that_fails_in_the_background_is_logged_and_harms_nobody(caplog):
    def hook():
        if threading.current_thread().name == "checkpoint-janitor":
            raise OSError("503")

    directory, _ = remote_directory(hook=hook)
    directory.complete(metadata(JOB_GRAPH, directory.files, 1))
    directory.discard(1)
    assert directory.completed_ids() == [1]
    assert "could not be deleted" in caplog.text and "503" in caplog.text


def test_a_replaced_driver_deletes_nothing_in_the_background_either(caplog):
    janitor = Janitor("the test's directory")
    directory, access = remote_directory(janitor)
    directory.complete(metadata(JOB_GRAPH, directory.files, 1))
    successor = CheckpointDirectory(object_store(FakeObjects(access.objects)), JOB)
    successor.initialise(driver("two"), 0, take_over=True)
    directory.discard(1)
    janitor.wait()
    assert successor.completed_ids() == [1]
    with pytest.raises(Fenced):
        directory.delete_everything()
