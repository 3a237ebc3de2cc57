"""Savepoints as files: disposed of, listed, and checked against forged metadata."""

import json
import os
import pickle
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.checkpoint.describe import describe, describe_metadata
from ekorn.checkpoint.file_verification import verify_files
from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.restore_point import resolve
from ekorn.checkpoint.savepoint_files import dispose_savepoint, find_checkpoints, new_savepoint
from ekorn.checkpoint.savepoint_notes import SavepointNotes
from ekorn.errors import CheckpointError, ConfigurationError, CorruptFileError, RestoreError
from ekorn.state.snapshots import KeyedFiles, OperatorSnapshot, StateFile, StateInfo
from ekorn.state.state_files import write_state
from ekorn.storage.file_store import open_files
from ekorn.storage.memory import MemoryFiles

JOB = "ab" * 16


def metadata_of(files, kind="savepoint", checkpoint_id=7, operator_state=None):
    operator = OperatorSnapshot(
        "d6" * 16, "count", "counter", KeyedFiles(0, 127, tuple(files)), operator_state, (StateInfo("count", "value"),)
    )
    return CheckpointMetadata(
        checkpoint_id=checkpoint_id,
        job_id=JOB,
        job_name="counts",
        timestamp_ms=1_700_000_000_000,
        kind=kind,
        operators=(
            OperatorMetadata(
                operator_id="d6" * 16,
                uid="count",
                name="counter",
                parallelism=1,
                max_parallelism=128,
                subtasks=(operator,),
                finished=(False,),
                states=(
                    StateInfo("count", "value"),
                    StateInfo("seen", "map", "Map[String, Long]", ttl=True),
                    StateInfo("offsets", "list-union"),
                ),
            ),
            OperatorMetadata("e7" * 16, None, "map", 2, 128, (None, None), (True, False)),
        ),
    )


@pytest.fixture
def savepoint(tmp_path):
    """Return a savepoint with two files."""
    place = new_savepoint(str(tmp_path / "savepoints"), JOB)
    files = [write_state(place.files, f"v0-s0-{n}", b"state" * 300, 0) for n in range(2)]
    place.publish(metadata_of(files, operator_state=StateFile(3, zlib.crc32(b"abc"), inline=b"abc")))
    return Path(place.files.url)


# ------------------------------------------------------------------------------------------------------- disposing


@pytest.mark.parametrize("name", ["", "/", "/_metadata"])
def test_a_savepoint_is_disposed_of_with_its_directory(savepoint, name):
    dispose_savepoint(f"{savepoint}{name}")
    assert not savepoint.exists() and savepoint.parent.exists()


def test_what_someone_else_put_into_the_directory_is_kept(savepoint, caplog):
    (savepoint / "notes.txt").write_text("mine")
    dispose_savepoint(str(savepoint))
    assert [p.name for p in savepoint.iterdir()] == ["notes.txt"]
    assert "notes.txt" in caplog.text


def test_disposing_of_nothing_is_an_error(tmp_path, savepoint):
    with pytest.raises(RestoreError, match="no checkpoint at"):
        dispose_savepoint(str(tmp_path / "nowhere"))
    dispose_savepoint(str(savepoint))
    with pytest.raises(RestoreError):
        dispose_savepoint(str(savepoint))


def test_a_savepoint_that_cannot_be_read_is_not_disposed_of(savepoint):
    (savepoint / "_metadata").write_bytes(b"EKORN-CHECKPOINT rubbish")
    with pytest.raises(CorruptFileError):
        dispose_savepoint(str(savepoint))
    assert len(list(savepoint.iterdir())) == 3


def retained(job_directory, checkpoint_id, *paths):
    files = [StateFile(size=1, crc32=0, path=path) for path in paths]
    directory = job_directory / f"chk-{checkpoint_id}"
    directory.mkdir(parents=True)
    (directory / "_metadata").write_bytes(encode_metadata(metadata_of(files, "checkpoint", checkpoint_id)))
    for path in paths:
        (job_directory / path).parent.mkdir(exist_ok=True)
        (job_directory / path).write_bytes(b"x")
    return directory


def test_a_retained_checkpoint_is_disposed_of_without_what_others_share(tmp_path):
    one = retained(tmp_path, 1, "shared/1-a", "shared/1-b", "chk-1/c")
    two = retained(tmp_path, 2, "shared/1-b", "shared/2-a")
    dispose_savepoint(str(one))
    assert not one.exists() and two.exists()
    assert sorted(p.name for p in (tmp_path / "shared").iterdir()) == ["1-b", "2-a"]


def test_a_retained_checkpoint_beside_an_unreadable_one_is_kept_and_says_why(tmp_path):
    one = retained(tmp_path, 1, "shared/1-a")
    (retained(tmp_path, 2, "shared/2-a") / "_metadata").write_bytes(b"rubbish")
    with pytest.raises(CheckpointError, match="delete that one first"):
        dispose_savepoint(str(one))
    assert one.exists() and (tmp_path / "shared" / "1-a").exists()


def test_a_directory_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write a savepoint to"):
        new_savepoint(str(tmp_path / "file"), JOB)


# --------------------------------------------------------------------------------------------------------- listing


def test_a_savepoint_is_described_without_its_state_being_read(savepoint):
    for path in savepoint.glob("v0-*"):
        path.unlink()
    text = describe(str(savepoint))
    assert text.splitlines() == [
        f"savepoint 7 of job 'counts' ({JOB})",
        "  taken     2023-11-14 22:13:20 UTC",
        f"  files in  {savepoint}",
        "  state     2.9 KiB in 2 files",
        "",
        "operator 'counter'",
        "  uid          'count'",
        f"  id           {'d6' * 16}",
        "  parallelism  1, at most 128",
        "  keyed        2.9 KiB in 2 files",
        "  operator     3 bytes inside the metadata",
        "    state    kind        type",
        "    count    value       pickled",
        "    seen     map         Map[String, Long], with time-to-live",
        "    offsets  list-union  pickled",
        "",
        "operator 'map'",
        "  uid          none",
        f"  id           {'e7' * 16}",
        "  parallelism  2, at most 128; 1 of them finished",
        "  no state",
    ]


def test_a_shared_file_is_counted_once():
    file = StateFile(1000, 0, path="shared/1-a")
    assert "state     1000 bytes in 1 file" in describe_metadata(metadata_of([file, file]), "here")


def test_savepoints_and_checkpoints_are_found_below_a_directory(tmp_path, savepoint):
    retained(tmp_path / "checkpoints" / JOB, 3, "shared/3-a")
    (tmp_path / "checkpoints" / JOB / "chk-4").mkdir()
    broken = tmp_path / "savepoints" / "savepoint-broken"
    broken.mkdir()
    (broken / "_metadata").write_bytes(b"rubbish")
    found = {f.path: f for f in find_checkpoints(str(tmp_path), depth=3)}
    assert sorted(found) == sorted(
        [f"checkpoints/{JOB}/chk-3", f"savepoints/{savepoint.name}", "savepoints/savepoint-broken"]
    )
    assert found["savepoints/savepoint-broken"].metadata is None and found["savepoints/savepoint-broken"].why
    assert [f.path for f in find_checkpoints(str(savepoint))] == ["."]
    of_jobs = find_checkpoints(str(tmp_path / "checkpoints"))
    assert [f.path for f in of_jobs] == [f"{JOB}/chk-3"], "two levels unless told otherwise"
    assert sorted(f.path for f in find_checkpoints(str(tmp_path))) == sorted(
        [f"savepoints/{savepoint.name}", "savepoints/savepoint-broken"]
    )


# -------------------------------------------------------------------------------------------------------- suspicion


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def rewritten(savepoint, change):
    """Return the savepoint's metadata with its document changed and its checksum corrected."""
    _, _, body = (savepoint / "_metadata").read_bytes().partition(b"\n")
    document = json.loads(body)
    change(document)
    body = json.dumps(document).encode()
    header = f"EKORN-CHECKPOINT 1 {len(body)} {zlib.crc32(body):08x}\n"
    (savepoint / "_metadata").write_bytes(header.encode() + body)


def file_of(document):
    return document["operators"][0]["subtasks"][0]["keyed"]["files"][0]


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "a/../../outside", "..", "", "a//b", "C:/windows", "a\\..\\b", "./a", "a\0b"]
)
def test_metadata_that_names_a_file_outside_is_refused(savepoint, path):
    rewritten(savepoint, lambda document: file_of(document).update(path=path))
    for use in (resolve, describe, dispose_savepoint):
        with pytest.raises(CorruptFileError, match="not metadata"):
            use(str(savepoint))


def test_a_link_that_leads_outside_is_refused(tmp_path, savepoint):
    outside = tmp_path / "outside"
    (savepoint / "v0-s0-0").rename(outside)
    (savepoint / "v0-s0-0").symlink_to(outside)
    files, metadata = resolve(str(savepoint))
    with pytest.raises(ConfigurationError, match="is outside"):
        verify_files(files, metadata)
    dispose_savepoint(str(savepoint))
    assert outside.exists(), "only the link is ours to delete"


def test_a_directory_that_is_a_link_to_outside_deletes_nothing_there(tmp_path, savepoint):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep")
    (savepoint / "sub").symlink_to(outside)
    rewritten(savepoint, lambda document: file_of(document).update(path="sub/precious"))
    with pytest.raises(ConfigurationError, match="is outside"):
        dispose_savepoint(str(savepoint))
    assert (outside / "precious").exists()


def test_a_pickle_in_a_state_file_is_not_touched_before_its_proof_is_checked(tmp_path, savepoint):
    mark = tmp_path / "mark"
    (savepoint / "v0-s0-0").write_bytes(pickle.dumps(Trap(mark)))
    files, metadata = resolve(str(savepoint))
    with pytest.raises(CorruptFileError):
        verify_files(files, metadata)
    describe(str(savepoint))
    assert not mark.exists()


def test_a_pickle_for_metadata_is_not_unpickled(tmp_path, savepoint):
    mark = tmp_path / "mark"
    (savepoint / "_metadata").write_bytes(pickle.dumps(Trap(mark)))
    for use in (resolve, describe, dispose_savepoint):
        with pytest.raises(CorruptFileError, match="starts with"):
            use(str(savepoint))
    assert not mark.exists()


@given(data=st.data())
def test_any_change_of_the_document_is_read_or_refused_but_never_crashes(data):
    """Forged metadata with a correct checksum decodes to metadata or is refused; nothing else happens."""
    document = json.loads(encode_metadata(metadata_of([StateFile(1, 0, path="a")])).partition(b"\n")[2])
    at = [document]
    for _ in range(data.draw(st.integers(0, 5))):
        children = at[-1].values() if isinstance(at[-1], dict) else at[-1] if isinstance(at[-1], list) else ()
        nested = [child for child in children if isinstance(child, (dict, list)) and child]
        if not nested:
            break
        at.append(data.draw(st.sampled_from(nested)))
    place = at[-1]
    key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
    place[key] = data.draw(
        st.none() | st.booleans() | st.integers() | st.text() | st.just([]) | st.just({}) | st.floats()
    )
    body = json.dumps(document).encode()
    data_bytes = f"EKORN-CHECKPOINT 1 {len(body)} {zlib.crc32(body):08x}\n".encode() + body
    try:
        metadata = decode_metadata(data_bytes, "here")
    except CorruptFileError:
        return
    assert all(not path.startswith("/") and ".." not in path.split("/") for path in metadata.paths())
    describe_metadata(metadata, "here")


# ------------------------------------------------------------------------------------------------------------ notes


def test_notes_outlive_the_driver_that_wrote_them(tmp_path, savepoint):
    job = open_files(str(tmp_path / "job"))
    SavepointNotes(job).add(7, open_files(str(savepoint)))
    assert SavepointNotes(job).addresses() == {7: str(savepoint)}


def test_notes_are_dropped_when_a_newer_checkpoint_takes_their_place():
    notes, place = SavepointNotes(MemoryFiles()), MemoryFiles()
    for number in (3, 5, 9):
        notes.add(number, place)
    notes.drop_below(5)
    assert sorted(notes.addresses()) == [5, 9]
    notes.delete()
    assert notes.addresses() == {}


@pytest.mark.parametrize("body", [b"", b"rubbish", b"[]", b'{"path": 7}', b"\xff"])
def test_a_note_that_cannot_be_read_is_no_address(body):
    files = MemoryFiles()
    files.write("savepoints/7", body)
    files.write("savepoints/other", b"")
    assert SavepointNotes(files).addresses() == {7: ""}
