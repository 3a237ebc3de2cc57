"""A slot reads state for subtasks that it will host, beside those that it hosts."""

from __future__ import annotations

import pickle
import queue
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from ekorn.clock import ManualClock, SystemClock
from ekorn.errors import CorruptFileError
from ekorn.graph.addresses import SubtaskId
from ekorn.keygroups import KeyGroupRange, key_group_range
from ekorn.links.link import Link, connect
from ekorn.operators.epoch import EpochOrder
from ekorn.slot.host import SlotHost
from ekorn.slot.slot_server import SlotServer
from ekorn.slot.state.preloading import PreloadedState, ReadThrottle, free_memory_share
from ekorn.slot_protocol.deployment_codec import call_in_slots, do_not_call_in_slots, encode_classes, encode_deployment
from ekorn.slot_protocol.messages import Deploy, Preload, Request
from ekorn.slot_protocol.preload_plan import PreloadPlan, preload_plans
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.slot_events import SnapshotWritten
from ekorn.state.restored_tables import read_tables
from ekorn.state.snapshots import KeyedFiles, OperatorRestore, RestorePlan, StateFile, SubtaskRestore
from ekorn.storage.file_store import open_files
from ekorn.subtask.wire.frames import Blob
from ekorn.types.by_value import dumps
from tests.slot.small_job import SOURCE, SUM, deployment, graph, summing

ALL = KeyGroupRange(0, 127)


def no_pause() -> None:
    """Go on at once."""


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[tuple[SlotHost, RestorePlan]]:
    """Return a slot that has taken a checkpoint of the small job, and what restores it."""
    events: queue.SimpleQueue[SnapshotWritten] = queue.SimpleQueue()
    host = SlotHost(0, SystemClock(), events.put, str(tmp_path / "slot"))  # type: ignore[arg-type]
    directory = str(tmp_path / "checkpoints")
    of = graph(summing, checkpoints=True)
    host.deploy(deployment(of, checkpoint_directory=directory, inline_threshold_bytes=0), [SOURCE, SUM])
    order = EpochOrder(0, checkpoint_id=1)
    blobs = [item for item in host.run(SOURCE, 0, order, []) if isinstance(item, Blob)]
    list(host.run(SUM, 0, order, blobs))
    found = {event.snapshot.vertex: event.snapshot for event in (events.get(timeout=30) for _ in range(2))}
    restores = {
        subtask: SubtaskRestore(
            tuple(
                OperatorRestore(
                    each.operator_id,
                    (each.keyed,) if each.keyed is not None else (),
                    (each.operator_state,),
                    each.states,
                    1,
                    128,
                    each.name,
                )
                for each in found[subtask.vertex].operators
            ),
            finished=found[subtask.vertex].finished,
        )
        for subtask in (SOURCE, SUM)
    }
    yield host, RestorePlan(directory, 1, restores)
    host.shutdown()


def plan_of(restore: RestorePlan) -> PreloadPlan:
    return preload_plans(graph(summing, checkpoints=True), restore)[0]


def redeploy(host: SlotHost, restore: RestorePlan) -> None:
    host.deploy(deployment(graph(summing, checkpoints=True), attempt=1, restore=restore), [SOURCE, SUM])


def test_deployment_uses_what_was_read_in_advance(saved):
    host, restore = saved
    host.preload(plan_of(restore))
    redeploy(host, restore)
    assert host.preloaded.used == 1
    redeploy(host, restore)
    assert host.preloaded.used == 1, "it is used once"


def test_deployment_that_restores_from_elsewhere_reads_what_is_there(saved):
    _, restore = saved
    state = PreloadedState(0)
    state.read(plan_of(restore), no_pause)
    assert state.take(restore.directory + "-other") is read_tables
    assert state.take(restore.directory) is read_tables, "it was dropped"


def test_empty_plan_drops_what_was_read(saved):
    host, restore = saved
    host.preload(plan_of(restore))
    host.preload(PreloadPlan())
    redeploy(host, restore)
    assert host.preloaded.used == 0


def test_deployment_does_not_wait_for_what_is_being_read(saved):
    host, restore = saved
    reading, deployed = threading.Event(), threading.Event()

    def pause() -> None:
        reading.set()
        assert deployed.wait(30)

    reader = threading.Thread(target=host.preload, args=(plan_of(restore), pause))
    reader.start()
    assert reading.wait(30)
    redeploy(host, restore)
    deployed.set()
    reader.join(30)
    redeploy(host, restore)
    assert host.preloaded.used == 0, "what was read for an earlier deployment is not kept for a later one"


def test_later_plan_replaces_one_that_is_being_read(saved):
    _, restore = saved
    state, plan = PreloadedState(0), plan_of(restore)
    again = PreloadPlan(plan.directory, plan.operators)
    state.read(plan, lambda: state.read(again, no_pause))
    ((restored, groups),) = plan.operators
    list(state.take(restore.directory)(restored, open_files(restore.directory), groups))
    assert state.used == 1


def test_what_is_dropped_while_it_is_being_read_is_not_kept(saved):
    _, restore = saved
    state = PreloadedState(0)
    state.read(plan_of(restore), lambda: state.read(PreloadPlan(restore.directory), no_pause))
    assert state.take(restore.directory) is read_tables


def test_other_key_groups_than_those_that_were_read_are_read(saved):
    _, restore = saved
    state, plan = PreloadedState(0), plan_of(restore)
    state.read(plan, no_pause)
    ((restored, _),) = plan.operators
    found = list(state.take(restore.directory)(restored, open_files(restore.directory), KeyGroupRange(0, 0)))
    assert state.used == 0
    assert found == list(read_tables(restored, open_files(restore.directory), KeyGroupRange(0, 0)))


def test_damaged_file_is_an_error_and_leaves_nothing(saved):
    host, restore = saved
    ((restored, _),) = plan_of(restore).operators
    (file,) = restored.keyed[0].files
    (Path(restore.directory) / str(file.path)).write_bytes(b"damaged")
    with pytest.raises(CorruptFileError):
        host.preload(plan_of(restore))
    assert host.preloaded.take(restore.directory) is read_tables


def test_each_slot_reads_the_key_groups_of_its_own_subtasks():
    of = graph(summing, parallelism=3, checkpoints=True)
    keyed = OperatorRestore("sum", (KeyedFiles(0, 127, (StateFile(1, 1, inline=b"x"),)),))
    plain = OperatorRestore("source")
    (vertex,) = (vertex for vertex in of.vertices if vertex.parallelism == 3 and not vertex.is_source)
    subtasks = {SubtaskId(vertex.id, index): SubtaskRestore((keyed, plain)) for index in range(3)}
    plans = preload_plans(of, RestorePlan("there", 1, subtasks))
    assert plans == {
        index: PreloadPlan("there", ((keyed, key_group_range(vertex.max_parallelism, 3, index)),)) for index in range(3)
    }


# ------------------------------------------------------------------------------------------------------------- throttle


def test_breaks_are_as_long_as_the_work_between_them():
    clock = ManualClock()
    throttle = ReadThrottle(clock, lambda: 0.5)
    for _ in range(2):
        clock.advance(30)
        throttle.pause()
    assert clock.monotonic() == pytest.approx(0.12)


@pytest.mark.parametrize(("free", "goes_on"), [(None, True), (0.1, True), (0.09, False)])
def test_reading_ends_when_little_memory_is_free(free: float | None, goes_on: bool):
    throttle = ReadThrottle(ManualClock(), lambda: free)
    if goes_on:
        throttle.pause()
        return
    with pytest.raises(MemoryError, match="only 9% of the memory is free"):
        throttle.pause()


def system(root: Path, **files: str) -> str:
    """Write the files of a system; a name has `__` for a slash."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("memory_", "memory.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_free_memory_is_that_of_the_machine_or_of_the_control_group(tmp_path: Path):
    assert free_memory_share(str(tmp_path)) is None
    machine = system(tmp_path, proc__meminfo="MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 400 kB\n")
    assert free_memory_share(machine) == 0.4
    system(tmp_path, proc__self__cgroup="0::/pod\n", sys__fs__cgroup__pod__memory_max="max\n")
    system(tmp_path, sys__fs__cgroup__pod__memory_current="900\n")
    assert free_memory_share(machine) == 0.4, "the group has no limit"
    system(tmp_path, sys__fs__cgroup__pod__memory_max="1000\n")
    assert free_memory_share(machine) == 0.1
    system(tmp_path, sys__fs__cgroup__pod__memory_stat="anon 700\ninactive_file 100\n")
    assert free_memory_share(machine) == 0.2
    system(tmp_path, sys__fs__cgroup__pod__memory_current="100\n", sys__fs__cgroup__pod__memory_stat="anon 0\n")
    assert free_memory_share(machine) == 0.4, "the machine has less"


# ------------------------------------------------------------------------------------------------------------ requests

SECRET = b"s" * 32
prepared: list[str] = []


def prepare() -> None:
    prepared.append("prepared")


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Link]:
    """Start a slot, and return a connection to it."""
    prepared.clear()
    call_in_slots(prepare)
    server = SlotServer(SlotConfig(0, str(tmp_path / "socket"), SECRET, str(tmp_path / "f"), []))
    server.start()
    link = connect(server.address, SECRET)
    yield link
    link.close()
    server.stop()
    do_not_call_in_slots(prepare)


def ask(link: Link, request: Request) -> BaseException | None:
    link.send(dumps(request))
    error: BaseException | None = pickle.loads(link.receive()).error
    return error


def test_slot_takes_the_classes_of_the_program_unless_a_deployment_has_brought_them(control: Link):
    assert ask(control, Preload(encode_classes(), PreloadPlan())) is None
    assert prepared == ["prepared"]
    assert ask(control, Deploy(encode_deployment(deployment(graph(summing))), [SOURCE, SUM])) is None
    assert ask(control, Preload(encode_classes(), PreloadPlan())) is None
    assert prepared == ["prepared"] * 2, "once for the first request, once for the deployment"


def test_error_of_reading_in_advance_is_the_answer(control: Link, tmp_path: Path):
    missing = KeyedFiles(0, 127, (StateFile(1, 1, path="shared/1-a"),))
    plan = PreloadPlan(str(tmp_path), ((OperatorRestore("sum", (missing,)), ALL),))
    assert isinstance(ask(control, Preload(encode_classes(), plan)), CorruptFileError)


def test_deployment_finds_the_classes_that_came_before_it(monkeypatch: pytest.MonkeyPatch):
    """State that was read in advance is of those classes: copies of them could not be pickled by name."""
    main = types.ModuleType("__main__")
    exec("class Point:\n    x = 7", main.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", main)
    sent = pickle.dumps((encode_classes(), encode_deployment(deployment(graph(summing)))))
    slot = (
        "import pickle, sys, __main__\n"
        "from ekorn.slot_protocol.deployment_codec import decode_classes, decode_deployment\n"
        "classes, program = pickle.loads(sys.stdin.buffer.read())\n"
        "decode_classes(classes)\n"
        "early = __main__.Point\n"
        "decode_deployment(program)\n"
        "assert __main__.Point is early and early.x == 7\n"
    )
    subprocess.run([sys.executable, "-c", slot], input=sent, check=True, timeout=60)
