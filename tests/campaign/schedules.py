"""Schedules: everything that a seed decides before anything runs.

A schedule is a job with its settings, and scenes. A scene is one life of a driver: faults at named points of the
protocol (`ekorn/faults.py`), acts while the driver runs, and damage to the checkpoints after its end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

Edition = Literal["processes", "spark", "cluster"]  # slots alone, an embedded Spark, a standalone cluster of Spark

Storage = Literal["directory", "path", "faulty", "s3"]

Source = Literal["generator", "topic", "table"]

Sink = Literal["files", "two-phase", "rows", "topic"]

Service = Literal["kafka", "postgres"]  # a system beside the job, as its source, its sink or both

# Points of the protocol in the driver, in the order in which a checkpoint passes them.
DRIVER_POINTS = (
    "driver-start",
    "driver-started",
    "driver-deploy",
    "driver-epoch",
    "before-metadata",
    "publish",
    "after-metadata",
    "discard",
    "before-notify",
    "notified",
    "driver-close",
    "delete-everything",
)
SLOT_POINTS = (
    "deploy",
    "restore",
    "restored",
    "epoch",
    "snapshot",
    "state-file",
    "state-written",
    "notify",
    "sink-commit",
    "sink-file",
    "sink-committed",
    "close",
)
TWO_PHASE_POINTS = ("sink-recover",)
# Of a job that runs continuously: the mark has come on every channel; it has come on some; it is acknowledged next.
CONTINUOUS_POINTS = ("epoch", "ahead", "acknowledge")
# Where the mark may overtake: it is passed on; blobs behind which it was to come are recorded; they are written next.
UNALIGNED_POINTS = ("epoch", "overtaken", "in-flight")
# Passed only during a restore.
RESTORE_POINTS = ("restore", "restored", "sink-recover")
# Where a process is stopped; it is continued when others have taken its place.
DRIVER_STOPS = (
    "driver-started",
    "before-metadata",
    "publish",
    "after-metadata",
    "discard",
    "before-notify",
    "notified",
)
SLOT_STOPS: tuple[str, ...] = ("epoch", "snapshot", "state-file", "state-written", "notify", "sink-commit", "sink-file")
SLOT_STOPS += ("sink-committed",)
# Where one side is stopped while the other is killed: steps of the driver for a killed slot, and the reverse.
DRIVER_STANDS = ("driver-epoch", "before-metadata", "publish", "after-metadata", "before-notify", "notified")
SLOT_STANDS = (*SLOT_STOPS, "deploy", "restore", "restored")
# Passed often; a process passes the other points only once or twice.
_OFTEN = {*DRIVER_STANDS, *SLOT_STOPS, "restore", "restored", "sink-recover"}
_STORAGE_CALLS = {"publish", "discard"}
# Passed only by sinks that write to the service.
SERVICE_POINTS: dict[str, tuple[str, ...]] = {
    "topic": ("kafka-flushed", "kafka-prepared"),
    "rows": ("jdbc-ledger", "jdbc-rows"),
}
STORAGE_FAULTS = ("errors", "lasting-errors", "full", "read-only", "slow")
DAMAGES = ("truncate", "tear", "flip", "delete", "swap", "foreign", "garbage", "clutter")


@dataclass(frozen=True)
class Act:
    """Something that is done to the job while a driver runs, after it has made some progress.

    Attributes:
        what: `kill-slot`, `kill-driver`, `stop-slot` (silent until it is given up, then continued), `thaw` (the same
            for a slot that a fault has stopped), `second-driver` (which must be refused), `usurper` (the driver is
            stopped, one on another host takes over, then the first is continued), `storage` (faults of the `faulty`
            storage, for a while). On Spark also `kill-worker` (one of Spark's Python workers), `stop-workers` (all
            of them are silent until the job has restarted), `kill-java` (the driver's Java process; the driver must
            end with an error). On a cluster also `kill-executor`. With Kafka also `pause-broker` (it is silent for a
            while), `restart-broker` (it is killed, and started again) and `add-partition` (to the topic that the job
            reads); with PostgreSQL also `restart-database`.
        after: Records that the driver must have read before.
        detail: For `storage`: what fails. For the others `at-point`, which means: for `usurper`, a fault stops the
            driver; for `kill-driver`, kill it when a fault has stopped a slot; for `kill-slot`, kill it when a fault
            has stopped the driver, and then continue the driver. On Spark, for `kill-driver`: `with-java`, its Java
            process at the same moment; for `kill-executor`: `with-slots`, also the slots that it started.
        checkpoints: Checkpoints that the driver must have completed before.
    """

    what: str
    after: int
    detail: str = ""
    checkpoints: int = 0

    @property
    def name(self) -> str:
        """The kind of act with its detail."""
        return f"{self.what} {self.detail}".strip()


@dataclass(frozen=True)
class Damage:
    """Damage to the newest checkpoint while no driver runs."""

    how: str  # one of DAMAGES
    what: str  # metadata, state
    all_of_them: bool = False  # every retained checkpoint


@dataclass(frozen=True)
class Scene:
    """One life of a driver."""

    parallelism: int
    faults: tuple[str, ...] = ()
    acts: tuple[Act, ...] = ()
    damage: Damage | None = None


@dataclass(frozen=True)
class Schedule:
    """A whole run, made from its seed. Fields that `driver.Run` has too are passed to every driver."""

    seed: int
    kind: str
    records: int
    storage: Storage
    engine: str
    backend: str
    incremental: bool
    asynchronous: bool
    compression: bool
    roll: bool
    retained: int
    inline_bytes: int
    interval_ms: int
    timeout_ms: int
    concurrent: int
    local_copies: bool
    sink: Sink
    buckets: int
    scenes: tuple[Scene, ...]
    services: tuple[Service, ...] = ()
    source: Source = "generator"
    partitions: int = 1
    grows: bool = False  # the source has no end: the job is cancelled when its output is complete
    execution: str = "epochs"
    unaligned: bool = False
    aligned_timeout_ms: int = 0

    @property
    def on_spark(self) -> bool:
        return self.engine in ("spark", "cluster")

    @property
    def command(self) -> str:
        """The command that plays the schedule again."""
        options = {"spark": "--spark ", "cluster": "--spark --cluster "}.get(self.engine, "")
        options += "".join(f"--{service} " for service in self.services)
        if self.kind == "columns":
            options += "--columns "
        if self.kind == "regions":
            options += "--regions "
        elif self.execution == "continuous":
            options += "--unaligned " if self.unaligned else "--continuous "
        return f"python -m tests.campaign {options}{self.seed}"

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.kind}, {self.records} records, {self.storage}, {self.engine} slots, "
            f"{self.backend}, {'incremental' if self.incremental else 'full'}, {'roll' if self.roll else 'keep'}, "
            f"retained {self.retained}, every {self.interval_ms} ms, at most {self.concurrent} at once"
            f"{', local copies' if self.local_copies else ''}, {self.sink} in {self.buckets} buckets"
        ]
        if self.source != "generator":
            lines.append(
                f"  from a {self.source} of {self.partitions} partitions{', which grows' if self.grows else ''}"
            )
        for number, scene in enumerate(self.scenes):
            told = [f"  scene {number}: parallelism {scene.parallelism}", *scene.faults]
            told += [f"{act.name} after {act.after} and {act.checkpoints} checkpoints" for act in scene.acts]
            told += [f"then {scene.damage}"] if scene.damage is not None else []
            lines.append("; ".join(told))
        return "\n".join(lines)


def continuous(made: Schedule) -> Schedule:
    """Return a schedule for a job that runs continuously. Some faults at a mark happen while marks are aligned."""
    points = {"epoch": CONTINUOUS_POINTS[made.seed % len(CONTINUOUS_POINTS)]}
    return replace(made, execution="continuous", scenes=_moved(made.scenes, points))


def in_regions(made: Schedule) -> Schedule:
    """Return a schedule for a job of several regions that runs continuously."""
    return replace(continuous(made), kind="regions")


def in_columns(made: Schedule) -> Schedule:
    """Return a schedule for a job on columns. Its form changes from life to life, unless records are in flight."""
    return replace(made, kind="columns")


def unaligned(made: Schedule) -> Schedule:
    """Return a schedule for a continuous job whose marks overtake: at once, or after some time. One at a time."""
    points = {"epoch": UNALIGNED_POINTS[made.seed % len(UNALIGNED_POINTS)]}
    if made.seed % 2:
        points["snapshot"] = "in-flight"
    return replace(
        made,
        execution="continuous",
        unaligned=True,
        aligned_timeout_ms=(0, 0, 5, 20)[made.seed // 2 % 4],
        concurrent=1,
        scenes=_moved(made.scenes, points),
    )


def _moved(scenes: tuple[Scene, ...], points: dict[str, str]) -> tuple[Scene, ...]:
    """Let faults happen at other points."""

    def moved(fault: str) -> str:
        where, _, rest = fault.partition(":")
        return f"{points.get(where, where)}:{rest}"

    return tuple(replace(scene, faults=tuple(map(moved, scene.faults))) for scene in scenes)


KINDS = ("allround",) * 6 + ("windows", "connected", "broadcast", "loop", "async")


def schedule(seed: int, edition: Edition = "processes") -> Schedule:
    """Make the schedule of a seed. A change here changes the schedule of every seed.

    A driver on Spark takes seconds to start, so schedules on Spark have fewer records and fewer lives.
    """
    chance, other = random.Random(seed), random.Random(-1 - seed)
    storage: Storage = chance.choices(("directory", "path", "faulty", "s3"), (45, 20, 27, 8))[0]
    made = Schedule(
        seed=seed,
        kind=chance.choice(KINDS),
        records=chance.choice((600, 900, 1_500)),
        storage=storage,
        engine=chance.choice(("process", "process", "registering")),
        backend=chance.choice(("hashmap", "rocksdb")),
        incremental=chance.random() < 0.6,
        asynchronous=chance.random() < 0.8,
        compression=chance.random() < 0.2,
        roll=chance.random() < 0.6,
        retained=chance.randint(1, 3),
        inline_bytes=chance.choice((0, 0, 20_480)),
        interval_ms=chance.choice((20, 40, 80)),
        timeout_ms=chance.choice((300, 5_000)) if storage == "faulty" else 10_000,
        concurrent=other.choice((1, 1, 2)),
        local_copies=other.random() < 0.25,
        sink=other.choice(("files", "files", "two-phase")),
        buckets=other.choice((1, 3)),
        scenes=(),
    )
    if edition != "processes":
        made = replace(made, engine=edition, records=min(made.records, 900))
    lives = chance.randint(1, 3 if edition == "processes" else 2)
    scenes = tuple(_scene(chance, made) for _ in range(lives))
    if scenes[-1].damage is not None:  # the next driver finds the damage
        made = replace(made, retained=max(made.retained, chance.choice((1, 2, 3))))
    if any(act.detail == "slow" for scene in scenes for act in scene.acts):
        made = replace(made, timeout_ms=300)  # less than a slow call takes
    return replace(made, scenes=scenes)


def with_services(made: Schedule, services: tuple[Service, ...]) -> Schedule:
    """Return a schedule whose job reads from services, writes to them, or both, with faults of the services too.

    The rest of the schedule stays as it is. With two services the job reads from one and writes to the other.
    """
    chance = random.Random(f"{' '.join(services)} {made.seed}")
    source, sink = _source_and_sink(chance, made, services)
    grows = source != "generator" and chance.random() < 0.5
    partitions = chance.choice((1, 2, 3)) if source != "generator" else 1
    if grows and sink == "two-phase":
        sink = "files"  # the older sink completes files by their age
    made = replace(
        made,
        services=services,
        source=source,
        sink=sink,
        grows=grows,
        partitions=partitions,
        kind="unordered" if grows or partitions > 1 else made.kind,
        roll=made.roll or grows,  # otherwise files are complete at the end of the input alone
    )
    scenes = list(made.scenes)
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(scenes))
        act = Act(chance.choice(_service_acts(made)), chance.randint(made.records // 10, made.records // 2))
        scenes[at] = _with_act(scenes[at], act)
    if sink in SERVICE_POINTS and chance.random() < 0.4:
        at = chance.randrange(len(scenes))
        fault = f"{chance.choice(SERVICE_POINTS[sink])}:*:{chance.randint(1, 4)}:{chance.choice(('kill', 'error'))}"
        scenes[at] = replace(scenes[at], faults=(*scenes[at].faults, fault))
    return replace(made, scenes=tuple(scenes))


def _with_act(scene: Scene, act: Act) -> Scene:
    """Return a scene with one more act: the first, unless another act must continue the driver before."""
    stands = any(fault.split(":")[0] in DRIVER_POINTS and fault.endswith(":stop") for fault in scene.faults)
    return replace(scene, acts=(*scene.acts, act) if stands else (act, *scene.acts))


def _source_and_sink(chance: random.Random, made: Schedule, services: tuple[Service, ...]) -> tuple[Source, Sink]:
    ends: dict[Service, tuple[Source, Sink]] = {"kafka": ("topic", "topic"), "postgres": ("table", "rows")}
    if len(services) > 1:
        first, second = chance.sample(services, 2)
        return ends[first][0], ends[second][1]
    source, sink = ends[services[0]]
    return chance.choice(((source, sink), (source, sink), (source, made.sink), ("generator", sink)))


def _service_acts(made: Schedule) -> list[str]:
    acts = []
    if "kafka" in made.services:
        acts += ["pause-broker", "restart-broker"]
    if "postgres" in made.services:
        acts += ["restart-database"]
    if made.source == "topic" and made.grows:
        acts += ["add-partition"] * 2
    return acts


def _scene(chance: random.Random, made: Schedule) -> Scene:
    """Make one life of a driver, without acts that would end it before its faults can happen."""
    acts: list[Act] = []
    faults: list[str] = []
    damage = None
    mark = chance.randint(made.records // 10, made.records // 2)
    match _what(chance, made):
        case "points":
            for _ in range(chance.randint(1, 3)):
                faults.append(_fault(chance, made, DRIVER_POINTS + SLOT_POINTS))
            acts += _provoke(faults, mark, chance.choice(("kill-slot", "kill-driver")))
        case "stands":
            if chance.random() < 0.5:
                faults.append(_stop(chance, SLOT_STANDS))
                acts += _provoke(faults, mark, "kill-slot")
                acts.append(Act("kill-driver", 0, "at-point"))
            else:
                faults.append(_stop(chance, DRIVER_STANDS))
                acts.append(Act("kill-slot", 0, "at-point"))
        case "kills":
            acts += [Act("kill-slot", mark), Act(chance.choice(("kill-slot", "kill-driver")), mark + 100)]
        case "stops":
            if chance.random() < 0.3:
                acts.append(Act("stop-slot", mark))
            else:
                faults.append(_stop(chance, SLOT_STOPS))
                acts.append(Act("thaw", 0))
        case "drivers":
            match chance.choice(("second-driver", "usurper", "at-point", "at-point")):
                case "at-point":
                    faults.append(_stop(chance, DRIVER_STOPS))
                    acts.append(Act("usurper", 0, "at-point"))
                case what:
                    acts.append(Act(what, mark))
        case "storage":
            acts.append(Act("storage", mark, chance.choice(STORAGE_FAULTS)))
            if chance.random() < 0.5:  # a fault that happens after a slot was lost
                faults.append(_fault(chance, made, SLOT_POINTS))
                acts += _provoke(faults, mark + 100, "kill-slot")
        case "damage":
            if chance.random() < 0.3:
                faults.append(f"{chance.choice(('after-metadata', 'before-notify'))}:*:{chance.randint(2, 4)}:kill")
            acts.append(Act("kill-driver", mark, checkpoints=chance.randint(1, 3)))
            damage = Damage(
                chance.choice(DAMAGES), chance.choice(("metadata", "state")), all_of_them=chance.random() < 0.15
            )
        case "workers":
            acts.append(Act(chance.choice(("kill-worker", "stop-workers")), mark))
        case "java":
            acts.append(Act("kill-java", mark))
        case "executors":
            acts.append(Act("kill-executor", mark, chance.choice(("", "with-slots"))))
        case what:
            raise AssertionError(what)
    if damage is None and not faults and chance.random() < 0.25:
        acts.append(Act("kill-driver", mark + 200))
    if made.on_spark:
        acts = [_perhaps_with_java(chance, act) for act in acts]
    return Scene(chance.choice((1, 1, 2, 2, 3)), tuple(faults), tuple(acts), damage)


def _what(chance: random.Random, made: Schedule) -> str:
    """Choose the kind of a scene. Only the faulty storage fails; checkpoints on S3 are not damaged."""
    weights = {"points": 30, "stands": 12, "kills": 12, "stops": 10, "drivers": 12, "storage": 0, "damage": 14}
    weights |= {"workers": 24, "java": 8} if made.on_spark else {}
    weights |= {"executors": 30} if made.engine == "cluster" else {}
    match made.storage:
        case "faulty":
            weights["storage"] = 45
        case "path":  # every driver has a directory of its own
            weights["drivers"] = 0
        case "s3":
            weights["damage"] = 0
    return chance.choices(tuple(weights), tuple(weights.values()))[0]


def _perhaps_with_java(chance: random.Random, act: Act) -> Act:
    """Let a killed driver take its Java process along in half of the cases; in the others it ends by itself."""
    alone = act.name != "kill-driver" or chance.random() < 0.5
    return act if alone else replace(act, detail="with-java")


def _provoke(faults: list[str], mark: int, what: str) -> list[Act]:
    """Return an act that makes the job restore, if one of the faults needs a restore."""
    if not any(fault.split(":")[0] in RESTORE_POINTS for fault in faults):
        return []
    return [Act(what, mark, checkpoints=1)]


def _stop(chance: random.Random, points: tuple[str, ...]) -> str:
    point = chance.choice(points)
    return f"{point}:*:{chance.randint(1, 3) if point in _OFTEN else 1}:stop"


def _fault(chance: random.Random, made: Schedule, points: tuple[str, ...]) -> str:
    point = chance.choice(points + (TWO_PHASE_POINTS if made.sink == "two-phase" else ()))
    count = chance.randint(1, 4) if point in _OFTEN else 1
    if point.startswith("sink-") and not made.roll and made.sink == "files":
        count = 1  # the only commit is at the end
    what = chance.choice(("kill", "kill", "kill", "error", "full", "exit"))
    if point in DRIVER_POINTS and point not in _STORAGE_CALLS and what in ("error", "full"):
        what = "kill"  # the driver calls nothing there that could fail
    return f"{point}:*:{count}:{what}"
