"""Local recovery: a slot reads undamaged copies of its state files from its own disk instead of the checkpoint."""

import os
import queue
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import ekorn
from ekorn.clock import SystemClock
from ekorn.config.settings.checkpoint_settings import LocalCopySettings
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import Ack, EpochOrder
from ekorn.slot.host import SlotHost
from ekorn.slot.state.local_copies import LocalCopies
from ekorn.slot_protocol.deployment import Deployment
from ekorn.state.snapshots import (
    KeyedFiles,
    OperatorRestore,
    OperatorSnapshot,
    RestorePlan,
    StateFile,
    SubtaskRestore,
    SubtaskSnapshot,
)
from ekorn.state.state_files import read_state, write_state
from ekorn.storage.local import LocalFiles

JOB = "ab" * 16
BOTH = {"write": True, "read": True}


class Remote(LocalFiles):
    """The checkpoint directory, with a list of the files that were read from it."""

    def __init__(self, root):
        super().__init__(root)
        self.reads = []

    def read(self, path):
        self.reads.append(path)
        return super().read(path)


@pytest.fixture
def remote(tmp_path):
    return Remote(tmp_path / "remote")


def copies(tmp_path, slot=0, **settings):
    return LocalCopies(LocalCopySettings(directories=(str(tmp_path / "local"),), **{**BOTH, **settings}), JOB, slot)


def snapshot(*files):
    return SubtaskSnapshot(0, 0, (OperatorSnapshot("op", None, "op", KeyedFiles(0, 127, files)),))


def plan(*files):
    operator = OperatorRestore("op", (KeyedFiles(0, 127, files),))
    return RestorePlan("remote", 1, {SubtaskId(0, 0): SubtaskRestore((operator,))})


def local_paths(tmp_path):
    root = tmp_path / "local"
    return sorted(p.name for p in root.rglob("*") if p.is_file())


def test_what_was_written_is_read_from_the_copy(tmp_path, remote):
    file = write_state(copies(tmp_path).copying(remote), "shared/1-a", b"state", 0)
    again = copies(tmp_path)
    assert read_state(again.reading(remote, plan(file)), file) == b"state"
    assert remote.reads == [] and again.used == 1


def test_another_slot_has_copies_of_its_own(tmp_path, remote):
    file = write_state(copies(tmp_path, slot=0).copying(remote), "shared/1-a", b"state", 0)
    other = copies(tmp_path, slot=1)
    assert read_state(other.reading(remote, plan(file)), file) == b"state"
    assert remote.reads == ["shared/1-a"] and other.used == 0


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "foreign", "empty"])
def test_a_damaged_copy_is_skipped_silently(tmp_path, remote, damage, caplog):
    writing = copies(tmp_path)
    file = write_state(writing.copying(remote), "shared/1-a", random.Random(1).randbytes(100), 0)
    write_state(writing.copying(remote), "shared/1-b", random.Random(2).randbytes(100), 0)
    path = tmp_path / "local" / f"ekorn-local-{JOB}" / "slot-0" / "shared" / "1-a"
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "flipped":
        data[-1] ^= 1
        path.write_bytes(data)
    elif damage == "foreign":
        path.write_bytes(path.with_name("1-b").read_bytes())
    else:
        path.write_bytes(b"")
    reading = copies(tmp_path)
    assert read_state(reading.reading(remote, plan(file)), file) == random.Random(1).randbytes(100)
    assert remote.reads == ["shared/1-a"] and reading.used == 0
    assert not [record for record in caplog.records if record.name == "ekorn.slot.state.local_copies"]


def test_a_completed_checkpoint_takes_the_place_of_older_copies(tmp_path, remote):
    local = copies(tmp_path)
    store = local.copying(remote)
    a, b = (write_state(store, f"shared/1-{name}", b"state", 0) for name in "ab")
    local.written(1, snapshot(a, b))
    local.completed(1)
    c = write_state(store, "shared/2-c", b"state", 0)
    local.written(2, snapshot(a, c))
    d = write_state(store, "shared/3-d", b"state", 0)
    local.written(3, snapshot(a, c, d))
    local.completed(2)
    assert local_paths(tmp_path) == ["1-a", "2-c", "3-d"]
    # The next slot of that number deletes old copies too, although it does not know of their checkpoints.
    again = copies(tmp_path)
    e = write_state(again.copying(remote), "shared/4-e", b"state", 0)
    again.written(4, snapshot(e))
    again.completed(4)
    assert local_paths(tmp_path) == ["4-e"]


def test_the_files_of_checkpoints_that_are_over_are_forgotten(tmp_path, remote):
    local = copies(tmp_path)
    for number in range(1, 50):
        local.written(number, snapshot(write_state(local.copying(remote), f"shared/{number}-a", b"state", 0)))
        if number != 7:  # aborted
            local.completed(number)
    assert local._of_checkpoint == {}


def test_without_the_settings_nothing_is_copied_and_nothing_is_read(tmp_path, remote):
    file = write_state(copies(tmp_path, write=False).copying(remote), "shared/1-a", b"state", 0)
    assert local_paths(tmp_path) == []
    write_state(copies(tmp_path).copying(remote), "shared/1-b", b"state", 0)
    reading = copies(tmp_path, read=False)
    assert read_state(reading.reading(remote, plan(file)), file) == b"state"
    assert remote.reads == ["shared/1-a"]


def test_a_copy_that_cannot_be_written_is_logged_and_skipped(tmp_path, remote, caplog):
    (tmp_path / "local").write_text("in the way")
    file = write_state(copies(tmp_path).copying(remote), "shared/1-a", b"state", 0)
    assert read_state(remote, file) == b"state"
    assert "no local copy of shared/1-a" in caplog.text


def test_copies_are_removed_with_the_job(tmp_path, remote):
    one, two = copies(tmp_path, slot=0), copies(tmp_path, slot=1)
    for local in (one, two):
        write_state(local.copying(remote), f"shared/1-{id(local)}", b"state", 0)
    one.remove()
    assert len(local_paths(tmp_path)) == 1
    two.remove()
    assert list((tmp_path / "local").iterdir()) == []


def test_a_restarted_slot_reads_its_state_from_its_own_disk(tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(10)
    env.from_collection(range(100)).key_by(lambda v: v % 10).sum().print()
    graph = env.job_graph("job")
    events = queue.SimpleQueue()
    settings = LocalCopySettings(write=True, read=True, directories=(str(tmp_path / "local"),))
    common: dict[str, Any] = {
        "checkpoint_directory": str(tmp_path / "remote"),
        "inline_threshold_bytes": 0,
        "local_copies": settings,
    }
    subtasks = [SubtaskId(vertex.id, 0) for vertex in graph.vertices]

    def run(host, order):
        blobs = {SubtaskId(0, 0): []}
        targets = {e.id: e.target for e in graph.exchanges}
        for subtask in subtasks:
            for item in host.run(subtask, host.attempt, order, blobs.get(subtask, [])):
                if not isinstance(item, Ack):
                    blobs.setdefault(SubtaskId(targets[item.exchange], item.target), []).append(item)

    killed = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))
    killed.deploy(Deployment(JOB, graph, 0, **common), subtasks)
    run(killed, EpochOrder(0, checkpoint_id=1))
    snapshots = [events.get(timeout=30).snapshot for _ in subtasks]
    killed.checkpoint_completed(1)
    restore = RestorePlan(
        str(tmp_path / "remote"),
        1,
        {
            SubtaskId(s.vertex, s.subtask): SubtaskRestore(
                tuple(
                    OperatorRestore(o.operator_id, (o.keyed,) if o.keyed else (), (o.operator_state,), o.states, 1)
                    for o in s.operators
                )
            )
            for s in snapshots
        },
    )
    host = SlotHost(0, SystemClock(), events.put, str(tmp_path / "new slot"))
    host.deploy(Deployment(JOB, graph, 1, restore=restore, **common), subtasks)
    assert host.local_copies is not None
    assert host.local_copies.used == sum(len(files) for _, _, files in os.walk(tmp_path / "remote"))
    host.shutdown()
    assert local_paths(tmp_path) == []
    killed.drop_subtasks()
    killed.shutdown()


# --------------------------------------------------------------------------------- a directory that is not ours alone


def job_folder(tmp_path):
    return tmp_path / "local" / f"ekorn-local-{JOB}"


@pytest.fixture
def victim(tmp_path):
    """A folder with files that must stay, some with names like those of copies."""
    root = tmp_path / "home"
    for path in ("thesis", "shared/thesis", "shared/1-thesis", "chk-1/1-thesis"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("do not delete")
    return root


def files_below(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def use_and_remove(tmp_path, remote):
    """Go through all that a slot does with its copies, and read the state from where a job without copies reads it."""
    local = copies(tmp_path)
    file = write_state(local.copying(remote), "shared/1-a", b"state", 0)
    local.written(1, snapshot(file))
    local.completed(9)
    remote.reads.clear()
    assert read_state(local.reading(remote, plan(file)), file) == b"state"
    local.remove()
    return local


def put_link(place, victim):
    place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    place.symlink_to(victim)


LINKS = {
    "the job's folder": lambda tmp_path, victim: put_link(job_folder(tmp_path), victim.parent),
    "the slot's folder": lambda tmp_path, victim: put_link(job_folder(tmp_path) / "slot-0", victim),
    "a folder of files": lambda tmp_path, victim: (
        job_folder(tmp_path).mkdir(mode=0o700, parents=True),
        put_link(job_folder(tmp_path) / "slot-0" / "shared", victim / "shared"),
    ),
}


@pytest.mark.parametrize("which", LINKS)
def test_a_link_is_not_followed_and_the_job_goes_on_without_copies(tmp_path, remote, victim, which, caplog):
    (tmp_path / "slot-0").symlink_to(victim)  # what the link in the job's place would lead to
    before = files_below(victim)
    LINKS[which](tmp_path, victim)
    local = use_and_remove(tmp_path, remote)
    assert files_below(victim) == before
    assert remote.reads == ["shared/1-a"] and local.used == 0
    assert caplog.text.count("slot 0 continues without local copies") == 1 and "it is a link" in caplog.text


def test_a_link_in_the_place_of_a_copy_is_neither_written_nor_read(tmp_path, remote, victim):
    local = copies(tmp_path)
    write_state(local.copying(remote), "shared/1-b", b"state", 0)
    (job_folder(tmp_path) / "slot-0" / "shared" / "1-a").symlink_to(victim / "thesis")
    use_and_remove(tmp_path, remote)
    assert (victim / "thesis").read_text() == "do not delete"


def test_a_folder_that_others_may_enter_is_not_used(tmp_path, remote, caplog):
    (job_folder(tmp_path) / "slot-0" / "shared").mkdir(parents=True)
    (job_folder(tmp_path) / "slot-0" / "shared" / "1-b").write_text("")
    job_folder(tmp_path).chmod(0o777)
    use_and_remove(tmp_path, remote)
    assert files_below(tmp_path / "local") == [f"ekorn-local-{JOB}/slot-0/shared/1-b"]
    assert "continues without local copies" in caplog.text and "its mode is 777" in caplog.text


UNSAFE_USES = {
    "keep": lambda local: local.keep("shared/1-a", b"state"),
    "find": lambda local: local.find(StateFile(5, 0, "shared/1-a")),
    "completed": lambda local: local.completed(1),
}


@pytest.mark.parametrize("use", UNSAFE_USES)
def test_whatever_is_done_first_in_an_unsafe_folder_warns_once(tmp_path, use, caplog):
    (job_folder(tmp_path) / "slot-0" / "shared").mkdir(parents=True)
    job_folder(tmp_path).chmod(0o777)
    local = copies(tmp_path)
    for _ in range(2):
        assert UNSAFE_USES[use](local) is None
    assert caplog.text.count("slot 0 continues without local copies") == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("whose", ["", "slot-0"])
def test_a_folder_of_another_user_is_not_used(tmp_path, remote, whose, caplog):
    (job_folder(tmp_path) / "slot-0" / "shared").mkdir(parents=True)
    (job_folder(tmp_path) / "slot-0" / "shared" / "1-b").write_text("")
    job_folder(tmp_path).chmod(0o700)
    os.chown(job_folder(tmp_path) / whose, 65534, 65534)
    use_and_remove(tmp_path, remote)
    assert files_below(tmp_path / "local") == [f"ekorn-local-{JOB}/slot-0/shared/1-b"]
    assert "continues without local copies" in caplog.text and "user 65534 owns it" in caplog.text


AS_ANOTHER_USER = """
import os, sys
root, job, source = sys.argv[1:]
sys.path[:0] = [source]
from ekorn.config.settings.checkpoint_settings import LocalCopySettings
from ekorn.slot.state.local_copies import LocalCopies
os.setgid(65534)
os.setuid(65534)
local = LocalCopies(LocalCopySettings(write=True, read=True, directories=(root,)), job, 0)
local.keep("shared/1-a", b"secret")
os.system(f"find {root} -mindepth 1 -printf '%P %m %U\\\\n'")
local.completed(9)
local.remove()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_two_users_with_one_job_id_do_not_touch_each_others_copies(remote, caplog):
    with tempfile.TemporaryDirectory() as shared:
        os.chmod(shared, 0o1777)
        source = str(Path(ekorn.__file__).parents[1])
        command = [sys.executable, "-c", AS_ANOTHER_USER, shared, JOB, source]

        def theirs():
            return subprocess.run(command, capture_output=True, text=True, check=True)

        made = theirs()
        assert made.stdout.splitlines()[-1].endswith("1-a 600 65534"), made
        assert f"ekorn-local-{JOB} 700 65534" in made.stdout and os.listdir(shared) == []
        mine = LocalCopies(LocalCopySettings(directories=(shared,), **BOTH), JOB, 0)
        write_state(mine.copying(remote), "shared/1-a", b"state", 0)
        assert "continues without local copies" in theirs().stderr
        assert [path.name for path in Path(shared).rglob("*") if path.is_file()] == ["1-a"]


def test_names_that_no_copy_has_are_left_alone(tmp_path, remote):
    local = copies(tmp_path)
    write_state(local.copying(remote), "shared/1-a", b"state", 0)
    slot = job_folder(tmp_path) / "slot-0"
    for path in ("notes", "shared/notes", "other/1-a", "chk-1/notes"):
        (slot / path).parent.mkdir(exist_ok=True)
        (slot / path).write_text("")
    local.completed(9)
    local.remove()
    assert files_below(slot) == ["chk-1/notes", "notes", "other/1-a", "shared/notes"]


@pytest.mark.parametrize("job_id", ["../../home", "", "ab" * 15, "AB" * 16])
def test_a_job_id_is_checked_before_it_becomes_part_of_a_path(job_id):
    with pytest.raises(ValueError, match="32 lower-case hexadecimal digits"):
        LocalCopies(LocalCopySettings(**BOTH), job_id, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrapped", ["copying", "reading"])
def test_the_store_around_the_copies_does_what_the_store_does(tmp_path, remote, wrapped):
    local = copies(tmp_path)
    store = local.copying(remote) if wrapped == "copying" else local.reading(remote, RestorePlan({}, str(tmp_path)))  # type: ignore[arg-type]
    assert (store.url, store.address) == (remote.url, remote.address)
    assert (store.exclusive, store.in_process) == (remote.exclusive, remote.in_process)
    store.make_dirs("folder")
    assert remote.list() == ["folder"]
    store.publish("folder/published", b"one")
    with pytest.raises(FileExistsError):
        store.publish("folder/published", b"two")
    store.replace("folder/replaced", b"three")
    store.replace("folder/replaced", b"four")
    store.write("folder/written", b"five")
    assert sorted(store.list("folder")) == sorted(remote.list("folder")) == ["published", "replaced", "written"]
    assert [store.read(f"folder/{name}") for name in ("published", "replaced", "written")] == [b"one", b"four", b"five"]
    assert store.below("folder").read("published") == b"one"
    assert store.size("folder/replaced") == 4
    assert store.exists("folder/written") and not store.exists("folder/missing")
    store.delete("folder/written")
    assert not remote.exists("folder/written")
    store.delete_tree("folder")
    assert remote.list() == []
