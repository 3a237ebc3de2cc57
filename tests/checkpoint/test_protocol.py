"""The parts together, in a small job with a transactional sink that is killed at every single call to the storage.

The small job keeps the order of the job loop: state files, metadata, retention, notification, commit. Every record must
come out exactly once, and no unneeded file may stay.
"""

import contextlib
import json
import random
from collections import Counter

import pytest

from ekorn.checkpoint.checkpoint_choice import choose_checkpoint
from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.coordinator import CheckpointCoordinator
from ekorn.checkpoint.events import (
    DiscardFiles,
    EpochStarting,
    JobStarted,
    MetadataFailed,
    MetadataWritten,
    NotifyComplete,
    SnapshotDone,
    SnapshotFailed,
    StartCheckpoint,
    WriteMetadata,
)
from ekorn.checkpoint.file_names import SnapshotNames
from ekorn.checkpoint.metadata import assemble
from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.checkpoint.retention import Retention
from ekorn.checkpoint.schedule import CoordinatorSettings
from ekorn.errors import CorruptFileError, Fenced, JobWasCancelled
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import OperatorSnapshot, SubtaskSnapshot
from ekorn.state.state_files import read_state, write_state
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import JOB, all_files, driver, graph, vertex
from tests.checkpoint.faulty_files import Fault, FaultyFiles
from tests.object_store import FakeObjects, Stage, object_store

RECORDS = 30
PER_EPOCH = 3
JOB_GRAPH = graph(vertex(0, "job", source=True))
OPERATOR = JOB_GRAPH.vertices[0].operators[0]


class Killed(BaseException):
    """The driver's process ends. Nothing catches this."""


class Hazardous:
    """A store that kills its caller at one call, before or after its effect, and fails others at random."""

    def __init__(self, store, *, kill_at=None, after=False, error_rate=0.0, chance=None, meanwhile=None):
        self._store, self._kill_at, self._after = store, kill_at, after
        self._error_rate, self._chance = error_rate, chance
        self._meanwhile = meanwhile  # instead of dying, the caller sleeps while this happens
        self._counter = [0]

    @property
    def calls(self):
        return self._counter[0]

    @property
    def url(self):
        return self._store.url

    @property
    def exclusive(self):
        return self._store.exclusive

    def below(self, path):
        below = Hazardous(
            self._store.below(path),
            kill_at=self._kill_at,
            after=self._after,
            error_rate=self._error_rate,
            chance=self._chance,
            meanwhile=self._meanwhile,
        )
        below._counter = self._counter
        return below

    def __getattr__(self, operation):
        inner = getattr(self._store, operation)

        def call(*args):
            self._counter[0] += 1
            mine = self._counter[0] == self._kill_at
            if mine and not self._after:
                self._end()
            lost_answer = False
            if self._error_rate and self._chance.random() < self._error_rate:
                if self._chance.random() < 0.5:
                    raise OSError(5, "injected")
                lost_answer = operation in ("write", "publish", "delete")
            try:
                result = inner(*args)
            finally:
                if mine and self._after:
                    self._end()
            if lost_answer:
                raise OSError(5, "injected, though it worked")
            return result

        return call

    def _end(self):
        if self._meanwhile is None:
            raise Killed
        self._meanwhile()


class Sink:
    """The sink's external system: transactions are held back until they are committed."""

    def __init__(self):
        self.held, self.committed = {}, {}

    def commit(self, transaction):
        if transaction not in self.committed:  # idempotent
            self.committed[transaction] = self.held.pop(transaction)

    @property
    def output(self):
        return sorted(record for records in self.committed.values() for record in records)


class PromptJanitor:
    """Deletes at once instead of in the background, so that every call to the store is a step of its own."""

    def add(self, task):
        task()

    def wait(self):
        pass


class SmallJob:
    """One driver process, from its start to its end or death."""

    def __init__(self, files, sink, *, name, num_retained=2, step=lambda: None, named=None):
        self.sink = sink
        self.step = step  # called before every effect on the external system
        self.directory = CheckpointDirectory(files, JOB, janitor=PromptJanitor())  # type: ignore[arg-type]
        self.directory.initialise(driver(name), 0, take_over=True, names_start=named is not None)
        self.retention = Retention(num_retained)
        chosen = choose_checkpoint(self.directory)
        found = chosen.restore_point.metadata if chosen is not None else None
        if named is not None and self.directory.follows_cancellation:
            found = self.directory.load(named)  # a checkpoint of the directory, as the user says
        restored_id = None
        self.position, self.transactions = 0, []
        if found is not None:
            restored_id = found.checkpoint_id
            plan = plan_restore(JOB_GRAPH, found, self.directory.url)
            (kept,) = plan.subtasks[SubtaskId(0, 0)].operators[0].operator_state
            assert kept is not None
            try:
                state = json.loads(read_state(self.directory.files, kept))
            except CorruptFileError:
                self.directory.check_owner()  # another driver took over and deleted it
                raise
            self.position, self.transactions = state["position"], state["transactions"]
            self.retention.adopt([found])
        self.restored_id = restored_id
        self.directory.start_from(restored_id)
        self.step()
        for transaction in self.transactions:
            self.sink.commit(transaction)
        for abandoned in [t for t in self.sink.held if int(t.partition("-")[0]) < self.directory.term]:
            del self.sink.held[abandoned]
        self.transactions = []
        settings = CoordinatorSettings(interval_ms=10, tolerable_failures=None)
        first_id = max(self.directory.highest_id(), restored_id or 0) + 1
        self.coordinator = CheckpointCoordinator({SubtaskId(0, 0)}, settings, first_id=first_id)
        self.names = SnapshotNames(0, 0, f"{self.directory.term}.0")
        self.now_ms = 0
        self.perform(self.coordinator.handle(JobStarted(0, restored_id)))

    def cancel(self):
        """End the job as a cancelled one that retains its checkpoints."""
        self.directory.note_cancelled()
        self.directory.release()

    def run(self, until=None):
        """Run to the end of the input, or until some records were read, and then be cancelled."""
        uncommitted = []
        while self.position < RECORDS or uncommitted or self.transactions:
            if until is not None and self.position >= until:
                self.cancel()
                return
            self.now_ms += 10
            actions = self.coordinator.handle(EpochStarting(self.now_ms))
            records = range(self.position, min(self.position + PER_EPOCH, RECORDS))
            self.position += len(records)
            uncommitted += records
            starts = [a for a in actions if isinstance(a, StartCheckpoint)]
            self.perform([a for a in actions if a not in starts])
            for start in starts:
                transaction = f"{self.directory.term}-{start.checkpoint_id}"
                self.sink.held[transaction] = uncommitted
                self.transactions.append(transaction)
                uncommitted = []
                self.perform(self.coordinator.handle(self.snapshot(start.checkpoint_id)))
        self.directory.release()

    def snapshot(self, checkpoint_id):
        state = json.dumps({"position": self.position, "transactions": self.transactions}).encode()
        try:
            kept = write_state(self.directory.files, self.names.shared(checkpoint_id), state, 0)
        except OSError as error:
            return SnapshotFailed(checkpoint_id, SubtaskId(0, 0), str(error), self.now_ms)
        part = OperatorSnapshot(OPERATOR.id, OPERATOR.uid, OPERATOR.name, operator_state=kept)
        return SnapshotDone(checkpoint_id, SubtaskSnapshot(0, 0, (part,)), self.now_ms)

    def perform(self, actions):
        for action in actions:
            match action:
                case WriteMetadata():
                    self.perform(self.coordinator.handle(self.write(action)))
                case NotifyComplete():
                    self.retain()
                    self.step()
                    for transaction in self.transactions:
                        self.sink.commit(transaction)
                    self.transactions = []
                case DiscardFiles():
                    assert action.directory
                    self.attempt(lambda a=action: self.directory.discard(a.checkpoint_id, a.paths))

    def write(self, action):
        value = assemble(
            JOB_GRAPH,
            job_id=JOB,
            checkpoint_id=action.checkpoint_id,
            timestamp_ms=action.triggered_ms,
            snapshots=action.snapshots,
        )
        try:
            self.newest = self.directory.complete(value)
        except OSError as error:
            return MetadataFailed(action.checkpoint_id, str(error), self.now_ms)
        return MetadataWritten(action.checkpoint_id, self.now_ms)

    def retain(self):
        def delete():
            unneeded = self.retention.completed(
                self.newest,
                pending=self.coordinator.pending_ids,
                listing=self.directory.listing(),
                newest_id=self.newest.checkpoint_id,
            )
            for old in unneeded.checkpoints:
                self.directory.discard(old)
            self.directory.delete_files(unneeded.files)

        self.attempt(delete)

    @staticmethod
    def attempt(action):
        with contextlib.suppress(OSError):  # leftovers are deleted with a later checkpoint
            action()


def assert_clean(store, retained):
    """Check that the directory holds only the retained checkpoints and the files they refer to."""
    job = store.below(JOB)
    directory = CheckpointDirectory(store, JOB)
    ids = directory.completed_ids()
    assert len(ids) <= retained
    needed = {f"chk-{i}/_metadata" for i in ids}.union(*(directory.load(i).paths() for i in ids))
    assert {p for p in all_files(job) if not p.startswith("owner/")} == needed


def test_undisturbed_every_record_comes_out_once():
    store, sink = MemoryFiles(), Sink()
    SmallJob(store, sink, name="only").run()
    assert sink.output == list(range(RECORDS))
    assert_clean(store, 2)


def calls_of_an_undisturbed_run():
    counted = Hazardous(MemoryFiles())
    SmallJob(counted, Sink(), name="only").run()
    return counted.calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_call_to_the_storage_every_record_still_comes_out_once(after):
    total = calls_of_an_undisturbed_run()
    assert total > 100
    for kill_at in range(1, total + 1):
        store, sink = MemoryFiles(), Sink()
        with pytest.raises(Killed):
            SmallJob(Hazardous(store, kill_at=kill_at, after=after), sink, name="first").run()
        SmallJob(store, sink, name="second").run()
        assert sink.output == list(range(RECORDS)), f"killed at call {kill_at}"
        # If the first driver was killed after its last checkpoint, the second had nothing to complete and to clean up.
        if kill_at < total - 20:
            assert_clean(store, 2)


CANCELLED_AT = 16
NOTE = "owner/cancelled-000001"


@pytest.mark.heavy  # a whole job for each call to the storage
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_call_of_a_cancelled_job_it_is_continued_only_as_long_as_nobody_knows(after):
    counted = Hazardous(MemoryFiles())
    SmallJob(counted, Sink(), name="only").run(until=CANCELLED_AT)
    outcomes = Counter()
    for kill_at in range(1, counted.calls + 2):  # the last one ends undisturbed
        store, sink = MemoryFiles(), Sink()
        with contextlib.suppress(Killed):
            SmallJob(Hazardous(store, kill_at=kill_at, after=after), sink, name="first").run(until=CANCELLED_AT)
        noted = store.below(JOB).exists(NOTE)
        outcomes[noted] += 1
        if noted:
            with pytest.raises(JobWasCancelled, match=f"job {JOB} was cancelled.*name it"):
                SmallJob(store, sink, name="second")
            newest = CheckpointDirectory(store, JOB).completed_ids()[-1]
            SmallJob(store, sink, name="third", named=newest).run()
        else:
            SmallJob(store, sink, name="second").run()
        assert sink.output == list(range(RECORDS)), f"killed at call {kill_at}"
    assert outcomes[True] >= 2
    assert outcomes[False] > 50


@pytest.mark.heavy  # a whole job for each call to the storage
@pytest.mark.parametrize("older", [False, True], ids=["newest", "older"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_call_while_a_cancelled_job_is_continued_on_purpose(after, older):
    def cancelled():
        store, sink = MemoryFiles(), Sink()
        SmallJob(store, sink, name="first").run(until=CANCELLED_AT)
        return store, sink, CheckpointDirectory(store, JOB).completed_ids()[-2 if older else -1]

    store, sink, named = cancelled()
    counted = Hazardous(store)
    SmallJob(counted, sink, name="only", named=named).run()
    outcomes = Counter()
    for kill_at in range(1, counted.calls + 1):
        store, sink, named = cancelled()
        committed = len(sink.output)
        with contextlib.suppress(Killed):
            SmallJob(Hazardous(store, kill_at=kill_at, after=after), sink, name="second", named=named).run()
        started = any(store.below(JOB).exists(f"owner/start-{term:06d}") for term in (2, 3))
        outcomes[started] += 1
        if not started:
            with pytest.raises(JobWasCancelled):
                SmallJob(store, sink, name="third")
        # Its new driver names the same start: what the job has done since counts for more.
        SmallJob(store, sink, name="fourth", named=named).run()
        if older:  # what came after the older checkpoint was committed before, and is put out again
            assert sorted(set(sink.output)) == list(range(RECORDS))
            assert len(sink.output) <= RECORDS + committed
        else:
            assert sink.output == list(range(RECORDS)), f"killed at call {kill_at}"
    assert outcomes[False] > 2
    assert outcomes[True] > 50


@pytest.mark.heavy  # a whole job for each call to the storage
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_asleep_at_any_call_while_another_driver_does_the_whole_job_every_record_still_comes_out_once(after):
    fenced = 0
    for asleep_at in range(1, calls_of_an_undisturbed_run() + 1):
        store, sink = MemoryFiles(), Sink()

        def run_another(store=store, sink=sink):
            SmallJob(store, sink, name="second").run()

        try:
            SmallJob(Hazardous(store, kill_at=asleep_at, after=after, meanwhile=run_another), sink, name="first").run()
        except Fenced:
            fenced += 1
        assert sink.output == list(range(RECORDS)), f"asleep at call {asleep_at}"
        # Whatever the first driver left behind, the job can be restored where the second driver left it.
        third = SmallJob(store, sink, name="third")
        assert third.position == RECORDS
        third.run()
        assert sink.output == list(range(RECORDS))
    assert fenced > 100


@pytest.mark.heavy  # a whole job for each call to the storage
@pytest.mark.parametrize("exclusive", [True, False], ids=["file system", "object store"])
@pytest.mark.parametrize("lost", [1, 2, 4])
def test_a_driver_asleep_while_it_discards_takes_no_base_from_its_successor(lost, exclusive):
    """The answer to a metadata put is lost, so the driver discards that checkpoint, and sleeps at any call.

    Meanwhile a second driver takes over, starts from what it finds, and dies before its first checkpoint. What it
    started from must still be there for a third driver.
    """

    def run_first(objects, sink, *, asleep_at=None, meanwhile=None):
        store = objects if exclusive else object_store(FakeObjects(objects))
        fault = Fault("publish", f"chk-{lost}/_metadata", after=True)
        hazard = Hazardous(FaultyFiles(store, fault), kill_at=asleep_at, meanwhile=meanwhile)
        with contextlib.suppress(Fenced):
            SmallJob(hazard, sink, name="first").run()
        return hazard.calls

    def fresh():
        return MemoryFiles() if exclusive else {}

    started_from_it = 0
    for asleep_at in range(1, run_first(fresh(), Sink()) + 1):
        objects, sink, seconds = fresh(), Sink(), []

        def start_another(objects=objects, sink=sink, seconds=seconds):
            store = objects if exclusive else object_store(FakeObjects(objects))
            seconds.append(SmallJob(store, sink, name="second"))

        run_first(objects, sink, asleep_at=asleep_at, meanwhile=start_another)
        started_from_it += any(second.restored_id == lost for second in seconds)
        store = objects if exclusive else object_store(FakeObjects(objects))
        SmallJob(store, sink, name="third").run()
        assert sink.output == list(range(RECORDS)), f"asleep at call {asleep_at}"
    assert started_from_it > 0


@pytest.mark.parametrize("seed", range(40))
def test_killed_again_and_again_on_a_storage_that_fails_one_call_in_ten(seed):
    chance = random.Random(seed)
    store, sink = MemoryFiles(), Sink()
    for number in range(60):
        hazard = Hazardous(
            store, kill_at=chance.randrange(1, 120), after=chance.random() < 0.5, error_rate=0.1, chance=chance
        )
        try:
            SmallJob(hazard, sink, name=f"driver {number}").run()
            break
        except (Killed, OSError):
            continue
        except Exception as error:
            # A driver that cannot start because the storage fails raises an error, and the next one tries again.
            assert "injected" in str(error), error
    SmallJob(store, sink, name="last").run()
    assert sink.output == list(range(RECORDS))


# ------------------------------------------------------------------------------------ object stores, many drivers


@pytest.mark.heavy  # a whole job for each call to the storage
def test_on_an_object_store_another_driver_may_come_at_any_call():
    """Run as above, but without exclusive creation: two drivers may even claim the same term."""

    def counted():
        steps = []
        SmallJob(object_store(FakeObjects(hook=lambda: steps.append(1))), Sink(), name="only").run()
        return len(steps)

    total = counted()
    for asleep_at in range(1, total + 1):
        objects, sink, steps = {}, Sink(), [0]

        def hook(objects=objects, sink=sink, steps=steps, asleep_at=asleep_at):
            steps[0] += 1
            if steps[0] == asleep_at:
                SmallJob(object_store(FakeObjects(objects)), sink, name="second").run()

        with contextlib.suppress(Fenced):
            SmallJob(object_store(FakeObjects(objects, hook=hook)), sink, name="first").run()
        assert sink.output == list(range(RECORDS)), f"asleep at call {asleep_at}"
        third = SmallJob(object_store(FakeObjects(objects)), sink, name="third")
        assert third.position == RECORDS
        third.run()
        assert sink.output == list(range(RECORDS))


def play_on_an_object_store(seed, *, stale):
    chance = random.Random(seed)
    stage, objects, sink = Stage(chance, deaths=chance.choice([0.0, 0.003, 0.02])), {}, Sink()
    for name in "abcd"[: chance.randint(2, 4)]:
        hook = stage.hook(name)
        access = FakeObjects(objects, hook=hook, stale=random.Random(seed) if stale else None)

        def run(access=access, hook=hook, name=name):
            SmallJob(object_store(access), sink, name=name, step=hook).run()

        stage.add(name, run)
    errors = stage.play()
    assert all(isinstance(e, Fenced) for e in errors.values()), errors
    SmallJob(object_store(FakeObjects(objects)), sink, name="last").run()
    assert sink.output == list(range(RECORDS)), f"seed {seed}: " + repr(sink.output)
    return len(errors)


@pytest.mark.heavy  # sixty orders of several jobs
@pytest.mark.parametrize("stale", [False, True], ids=["listing", "stale listing"])
def test_many_drivers_at_once_on_an_object_store_make_one_history(stale):
    fenced = sum(play_on_an_object_store(seed, stale=stale) for seed in range(60))
    assert fenced > 30


@pytest.mark.soak
@pytest.mark.parametrize("stale", [False, True], ids=["listing", "stale listing"])
def test_many_drivers_at_once_on_an_object_store_in_thousands_of_orders(stale):
    for seed in range(1_000, 6_000):
        play_on_an_object_store(seed, stale=stale)
