"""A job with many lives: stopped, drained, cancelled, killed, and started again from what the last life left.

Everything about a schedule follows from its seed. Two transactional sinks record every record: whatever happens on the
way, each record must be committed once in the end.
"""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ekorn.checkpoint.savepoint_files import dispose_savepoint
from ekorn.common import Encoder, JobStatus, WatermarkStrategy
from ekorn.common.job_id import JobID
from ekorn.datastream import ExternalizedCheckpointRetention
from ekorn.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from ekorn.datastream.functions import MapFunction
from ekorn.datastream.state import ListStateDescriptor
from ekorn.driver.job_handle import JobHandle
from ekorn.functions.sink_contract import TwoPhaseCommitSinkFunction
from ekorn.functions.state.checkpointed import CheckpointedFunction
from ekorn.testing.scripted import Crash, DriverDied, Point, Script, ScriptedSource, split_evenly, start_scripted
from tests.driver.savepoint_programs import Ask, counting, environment

LONG, SHORT, APART = list(range(40)), list(range(100, 105)), list(range(200, 230))
MODULUS = 5
MOST_LIVES = 8
POINTS: tuple[Point, ...] = (
    *("before-deploy", "after-deploy", "before-epoch", "in-epoch", "after-epoch"),
    *("before-notify", "in-notify", "after-notify"),
)


class Till(TwoPhaseCommitSinkFunction):
    """Keeps the committed records, by transaction."""

    committed: dict[int, list] = {}
    numbers = itertools.count()

    def begin_transaction(self):
        return [next(Till.numbers), []]

    def invoke(self, transaction, value, context):  # type: ignore[override]
        transaction[1].append(value)

    def pre_commit(self, transaction):
        pass

    def commit(self, transaction):
        Till.committed.setdefault(transaction[0], list(transaction[1]))

    def abort(self, transaction):
        pass


class Keeper(MapFunction, CheckpointedFunction):
    """Keeps the records it has seen in split and in union list state."""

    restored: list[tuple[str, list, list]] = []

    def __init__(self, name):
        self.name = name

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split"))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.seen = list(self.split.get())
        Keeper.restored.append((self.name, self.seen[:], list(self.union.get())))

    def map(self, value):
        self.seen.append(value)
        return value

    def snapshot_state(self, context):
        self.split.update(self.seen)
        self.union.update(self.seen)


class Stumble(MapFunction):
    """Fails on some records the first time they arrive."""

    ahead: set[int] = set()

    def map(self, value):
        if value in Stumble.ahead:
            Stumble.ahead.remove(value)
            raise RuntimeError(f"stumbled over {value}")
        return value


def program(env, out, rolling_policy):
    """Draw two sources, one of which ends early, a stateful operator in the chain of the other, and one after both.

    A separate pipeline beside them is a region of its own.
    """

    def source(splits, name):
        scripted = ScriptedSource(splits, (2,))
        return env.from_source(scripted, WatermarkStrategy.no_watermarks(), name).uid(name)

    long = source(split_evenly(LONG, 3), "long").map(Keeper("in the chain")).uid("in the chain").map(Stumble())
    both = long.union(source([SHORT], "short")).map(Keeper("behind both")).uid("behind both")
    counting(both, modulus=MODULUS).add_sink(Till()).uid("till")
    apart = source(split_evenly(APART, 2), "apart").map(Stumble()).map(Keeper("apart")).uid("keeper apart")
    apart.add_sink(Till()).uid("till apart")
    files = FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).with_rolling_policy(rolling_policy)
    both.sink_to(files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()).uid("files")


@dataclass
class Lives:
    """The lives of one job, from the first to the one that reads all input."""

    seed: int
    base: Path
    origin: str | None = None  # the path that the next life starts from
    when_dead: Callable[[], None] = lambda: None  # called when a driver has died, before the next one starts
    job_id: JobID = field(default_factory=JobID.generate)
    story: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.chance = random.Random(self.seed)
        self.rolling_policy = self.chance.choice(
            [RollingPolicy.on_checkpoint_rolling_policy(), RollingPolicy.default_rolling_policy(part_size=20)]
        )
        self.out = self.base / "out"
        self.out.mkdir()
        Till.committed = {}

    def run(self):
        """Live until all input is read."""
        for life in range(MOST_LIVES):
            if self._live(life, may_end_early=life < MOST_LIVES - 1):
                return

    def _live(self, life, *, may_end_early):
        """Run one life; return whether it was the last."""
        chance = self.chance
        end = chance.choice(["stop", "drain", "cancel", "retained", "dies", "dies"]) if may_end_early else "finish"
        deeds = self._savepoints_on_the_way()
        last = None
        if end in {"stop", "drain", "cancel"}:
            last = Ask(self.base / "savepoints", then=end, native=chance.random() < 0.3)
            deeds[chance.randint(1, 7)] = last
        elif end == "retained":
            deeds[chance.randint(1, 7)] = lambda handle: handle.cancel()
        env, script = self._environment(), self._script(deeds, driver_dies=end == "dies")
        claim_mode = chance.choice(["NO_CLAIM", "CLAIM"])
        self.story.append(f"life {life}: {end}, parallelism {env.get_parallelism()}, {claim_mode}, {script}")
        Keeper.restored = []
        Stumble.ahead = set(chance.sample([*LONG, *APART], chance.choice([0, 0, 1, 3])))
        try:
            run = start_scripted(env, script, job_id=self.job_id, restore_path=self.origin, claim_mode=claim_mode)
        except DriverDied:
            self.when_dead()
            return False  # the next driver continues the same job
        finally:
            self._check_operator_state()
        if run.status is JobStatus.FAILED:
            run.handle.wait(0)
        ending = last if last is not None and last.future is not None and last.error is None else None
        if run.status is JobStatus.FINISHED and ending is None:
            return True
        self.origin = ending.path if ending is not None else self._retained()
        self.job_id = JobID.generate()
        return False

    def _environment(self):
        chance = self.chance
        env = environment(
            self.base / "checkpoints",
            restarts=30,
            parallelism=chance.choice([1, 1, 2, 3, 5]),
            timeout="300 ms",
            max_concurrent_checkpoints=chance.choice([1, 1, 2, 3]),
            tolerable_failed_checkpoints=1000,
            num_retained=chance.choice([1, 2]),
            prefer_checkpoint_for_recovery=chance.choice([True, False]),
            data_inline_threshold=chance.choice([0, 20_000]),
        )
        env.set_max_parallelism(8)
        retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        program(env, self.out, self.rolling_policy)
        return env

    def _script(self, deeds, *, driver_dies):
        chance = self.chance
        crashes = [Crash(chance.choice(POINTS), chance.randint(1, 12)) for _ in range(chance.choice([0, 0, 1, 2, 3]))]
        return Script(
            checkpoints=[*(chance.random() < 0.7 for _ in range(7)), True],
            crashes=crashes,
            kill=chance.random() < 0.6,
            driver_dies=driver_dies,
            deeds=deeds,
            failed_snapshots=set(chance.sample(range(1, 60), chance.choice([0, 0, 4]))),
            late_snapshots={n: chance.randint(1, 3) for n in chance.sample(range(1, 60), chance.choice([0, 0, 8]))},
        )

    def _savepoints_on_the_way(self):
        """Return deeds that take savepoints while the job keeps running, and dispose of some of them."""
        deeds: dict[int, Callable[[JobHandle], object]] = {}
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            ask, epoch = Ask(self.base / "savepoints"), self.chance.randint(1, 6)
            deeds[epoch] = ask
            if self.chance.random() < 0.4:
                deeds[epoch + 2] = partial(_dispose, ask)
        return deeds

    def _retained(self):
        """Return the newest checkpoint of a cancelled job, or what the job itself started from if it has none.

        A noted savepoint counts as well: a restart may have restored it and committed what it held.
        """
        job = self.base / "checkpoints" / str(self.job_id)
        found = {int(path.parent.name.partition("-")[2]): path.parent for path in job.glob("chk-*/_metadata")}
        noted = {int(note.name): Path(json.loads(note.read_text())["path"]) for note in job.glob("savepoints/*")}
        found |= {number: path for number, path in noted.items() if (path / "_metadata").exists()}
        return str(found[max(found)]) if found else self.origin

    def _check_operator_state(self):
        for name, split, union in Keeper.restored:
            assert len(set(union)) == len(union), f"{name}: an element of union state came twice"
            assert set(split) <= set(union), f"{name}: a part is not in the whole"

    def outcome(self):
        """Return the records that are too many and those that are missing, for both sinks."""
        values = [*LONG, *SHORT]  # the separate pipeline writes to the till without counting
        keys = Counter(value % MODULUS for value in values)
        counts = [(key, n + 1) for key, many in keys.items() for n in range(many)]
        parts = [path for path in self.out.iterdir() if not path.name.startswith(".")]
        lines = [int(line) for path in parts for line in path.read_text().split()]
        return {
            "till": _difference((v for vs in Till.committed.values() for v in vs), [*counts, *APART]),
            "files": _difference(lines, values),
        }


def _dispose(ask, handle):
    if ask.future is not None and ask.future.done() and ask.error is None:
        dispose_savepoint(ask.path)


def _difference(found, expected):
    found, expected = Counter(found), Counter(expected)
    return {"too many": list((found - expected).elements()), "missing": list((expected - found).elements())}
