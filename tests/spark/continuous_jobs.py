"""Small jobs that run continuously, each for a promise that only a running job can keep; each returns what it found.

They run in slot processes (`slot/test_continuous_promises.py`) and on Spark (`spark/test_continuous_promises.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ekorn.common import Duration, JobStatus, Time, Types, WatermarkStrategy
from ekorn.common.accumulators import IntCounter
from ekorn.datastream import (
    AsyncDataStream,
    CheckpointedFunction,
    CheckpointingMode,
    CheckpointListener,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import AsyncFunction, MapFunction, SourceFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.functions.watermark_strategy import BoundedOutOfOrdernessWatermarks, WatermarkOutput
from ekorn.program.running.job_client import JobClient
from tests import live_jobs
from tests.live_jobs import Held, Tracks, comes_to_rest, generated, until
from tests.spark import tally

Found = dict[str, Any]


def environment(folder: Path | None, parallelism: int, interval_ms: int = 100, **keys: Any) -> Any:
    directory = None if folder is None else folder / "checkpoints"
    keys = {"ekorn__execution": "continuous", **keys}
    return live_jobs.environment(directory, parallelism=parallelism, interval_ms=interval_ms, restarts=10, **keys)


def end(client: JobClient) -> None:
    client.cancel().result()
    until(lambda: client.get_job_status().result() is JobStatus.CANCELED)


def more_checkpoints(client: JobClient, count: int) -> None:
    """Wait until so many more checkpoints are complete."""
    wanted = client.get_progress().checkpoints_completed + count
    until(lambda: client.get_progress().checkpoints_completed >= wanted)


# ------------------------------------------------------------------------------------------------------ a slow service


class Ask(AsyncFunction):
    """Answers once a file is there."""

    def __init__(self, asked: Tracks, gate: Path) -> None:
        self.asked, self.gate = asked, gate

    async def async_invoke(self, value: Any) -> list[Any]:
        self.asked(value)
        while not self.gate.exists():
            await asyncio.sleep(0.01)
        return [value]


def slow_service(folder: Path) -> Found:
    """Let a service with room for two requests hold its answers back, beside another pipeline of the same slot."""
    env = environment(None, 1)
    asked, answered, noted = (Tracks(folder / name) for name in ("asked", "answered", "noted"))
    gate = folder / "gate"
    numbers = env.from_collection(list(range(20)))
    answers = AsyncDataStream.ordered_wait(numbers, Ask(asked, gate), Time.seconds(600), 2)
    answers.map(answered).filter(lambda n: False).print()
    source = DataGeneratorSource(noted, 1 << 40, RateLimiterStrategy.per_second(5_000))
    others = env.from_source(source, WatermarkStrategy.no_watermarks(), "others")
    others.key_by(lambda n: 0).filter(lambda n: False).print()
    client = env.execute_async()
    until(lambda: asked.count == 2)
    before = noted.count
    until(lambda: noted.count > before + 2_000)
    while_held = asked.count
    gate.touch()
    until(lambda: answered.count == 20)
    end(client)
    return {"asked while held": while_held, "asked": asked.count}


# ------------------------------------------------------------------------------------------------ an alignment group


class Steps(Source):
    """Has the numbers 0, 10, 20, ...: as many as there are bytes in a file, or without an end."""

    def __init__(self, read: Tracks, room: Path | None = None) -> None:
        self.read, self.room = read, room

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        return [Split("only", None)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _StepReader(self.read, self.room)


class _StepReader(SplitReader):
    def __init__(self, read: Tracks, room: Path | None) -> None:
        self._read, self._room, self._next = read, room, 0

    def read(self, max_records: int) -> Batch:
        if self._room is not None and self._next >= self._room.stat().st_size:
            return Batch([])
        self._next += 1
        return Batch([self._read(10 * (self._next - 1))])

    def position(self) -> Any:
        return self._next

    @property
    def finished(self) -> bool:
        return False


def alignment_group(folder: Path) -> Found:
    """Let a fast source wait for a slow one of its group, and read on when that one has caught up."""
    env = environment(None, 1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    strategy = strategy.with_watermark_alignment("group", Duration.of_millis(1_000))
    fast, slow, room = Tracks(folder / "fast"), Tracks(folder / "slow"), folder / "room"
    room.write_bytes(bytes(50))
    for name, source in (("fast", Steps(fast)), ("slow", Steps(slow, room))):
        env.from_source(source, strategy, name).key_by(lambda n: n).filter(lambda n: False).print()
    client = env.execute_async()
    until(lambda: slow.count == 50 and fast.count > 150)
    until(lambda: comes_to_rest(fast))
    paused = fast.count
    room.write_bytes(bytes(paused))
    until(lambda: fast.count > paused)
    end(client)
    return {"slow": slow.count, "paused": paused, "went on": fast.count > paused}


# ------------------------------------------------------------------------------------- union, split and broadcast state


class Keeps(MapFunction, CheckpointedFunction):
    """Keeps its records in a split list and a union list, the checkpoint in broadcast state; notes a restore."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, runtime_context: Any) -> None:
        self.seen = list(self.split.get())
        if self.restored:
            found = {"split": self.seen, "union": sorted(self.union.get()), "broadcast": dict(self.rules.items())}
            (self.folder / f"restored-{runtime_context.get_index_of_this_subtask()}").write_text(json.dumps(found))

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.split = store.get_list_state(ListStateDescriptor("split", Types.INT()))
        self.union = store.get_union_list_state(ListStateDescriptor("union", Types.INT()))
        self.rules = store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
        self.restored = context.is_restored()

    def map(self, value: int) -> int:
        self.seen.append(value)
        return value

    def snapshot_state(self, context: Any) -> None:
        self.split.update(self.seen)
        self.union.update(self.seen)
        self.rules.put("checkpoint", context.get_checkpoint_id())


def operator_state(folder: Path) -> Found:
    """Stop a job of two subtasks with a savepoint, and start it with three."""

    def start(parallelism: int, restore: str | None = None) -> JobClient:
        env: StreamExecutionEnvironment = environment(folder, parallelism)
        if restore is not None:
            env.set_restore_path(restore)
        kept = generated(env, 400, Held(folder, 100)).rebalance().map(Keeps(folder)).uid("keeps")
        kept.filter(lambda n: False).print()
        return env.execute_async()

    client = start(2)
    until(lambda: client.get_progress().records_read == 100)
    path = client.stop_with_savepoint(False, str(folder / "savepoints")).result()
    again = start(3, path)
    Held(folder, 0).let_go()
    again.get_job_execution_result().result()
    return {"restored": [json.loads(each.read_text()) for each in sorted(folder.glob("restored-*"))]}


def verify_operator_state(found: Found) -> None:
    restored = found["restored"]
    everything = restored[0]["union"]
    assert everything and [each["union"] for each in restored] == [everything] * 3, "union: everything for everyone"
    assert sorted(n for each in restored for n in each["split"]) == everything, "split: each element once"
    assert sorted(len(each["split"]) for each in restored) == [33, 33, 34]
    assert restored[0]["broadcast"] and len({json.dumps(each["broadcast"]) for each in restored}) == 1


# --------------------------------------------------------------------------- finished subtasks, listeners, accumulators


FEW, MANY = 60, 1_000


class Once(SourceFunction):
    """Emits its records each time it is run: it has no state to restore."""

    def __init__(self, read: Tracks) -> None:
        self.read = read

    def run(self, ctx: Any) -> None:
        for n in range(FEW):
            ctx.collect(self.read(n))

    def cancel(self) -> None:
        """Do nothing: the source ends by itself."""


class Counts(KeyedProcessFunction, CheckpointListener):
    """Counts the records of a key in state, and all records in an accumulator; notes completed checkpoints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.all = IntCounter()
        runtime_context.add_accumulator("all", self.all)
        index, attempt = runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number()
        self.heard = self.folder / f"heard-{attempt}-{index}"

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.all.add(1)
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        with self.heard.open("a") as file:
            file.write(f"{checkpoint_id}\n")


def finished_source(folder: Path) -> Found:
    """Kill a slot after one of two sources has finished; collect the counts of both."""
    env, held, read = environment(folder, 2), Held(folder, 200), Tracks(folder / "few")
    few = env.add_source(Once(read), "few", Types.LONG()).uid("few")
    both = few.union(generated(env, MANY, held))
    records = both.key_by(lambda n: n % 7).process(Counts(folder)).uid("counts").execute_and_collect()
    client = records.job_client
    until(lambda: read.count == FEW)
    more_checkpoints(client, 3)
    until(lambda: client.get_accumulators().result().get("all", 0) > FEW)
    os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
    until(lambda: client.get_progress().restarts > 0)
    more_checkpoints(client, 1)
    held.let_go()
    found = Counter(map(tuple, records))
    expected = Counter(n % 7 for source in (FEW, MANY) for n in range(source))
    wrong = found - Counter((key, n) for key, count in expected.items() for n in range(1, count + 1))
    heard = [[int(line) for line in each.read_text().splitlines()] for each in folder.glob("heard-*")]
    result = client.get_job_execution_result().result()
    return {
        "read": read.count,
        "collected": found.total(),
        "wrong": wrong.total(),
        "in order": all(ids == sorted(set(ids)) for ids in heard),
        "heard": len(heard),
        "accumulated": result.get_accumulator_result("all"),
        "restarts": client.get_progress().restarts,
    }


def verify_finished_source(found: Found) -> None:
    assert found["restarts"] >= 1
    assert found["read"] == FEW, "a source that has finished is not read again"
    assert (found["collected"], found["wrong"]) == (FEW + MANY, 0)
    assert found["heard"] >= 2 and found["in order"], "the subtasks of both attempts heard of checkpoints"
    assert 0 < found["accumulated"] < FEW + MANY, "accumulators are those of the last attempt, as in Flink"


# ------------------------------------------------------------------------- what is ahead waits, or counts twice


QUICK, SLOW = 40_000, 10_000


class Wait(MapFunction):
    """Lets every record wait for two milliseconds while a file exists, and drops its payload."""

    def __init__(self, held_up: Path) -> None:
        self.held_up = held_up

    def map(self, value: Any) -> Any:
        if self.held_up.exists():
            time.sleep(0.002)
        return value[0], b""


def ahead(folder: Path, mode: CheckpointingMode) -> Found:
    """Kill a slot while the marks of one channel are behind a full queue, and others ahead of them; sum the counts."""
    env = environment(folder, 2, ekorn__exchange__slot_memory="16 kb")
    env.get_checkpoint_config().set_checkpointing_mode(mode)
    held_up, held = folder / "slow", Held(folder, QUICK // 2, per_second=500)
    held_up.touch()
    source = DataGeneratorSource(lambda n: (n % 10, bytes(500)), QUICK, held)
    quick = env.from_source(source, WatermarkStrategy.no_watermarks(), "quick").uid("quick").set_parallelism(1)
    source = DataGeneratorSource(lambda n: (n % 10, bytes(20_000)), SLOW)
    slow = env.from_source(source, WatermarkStrategy.no_watermarks(), "slow").uid("slow").set_parallelism(1)
    slowed = slow.rebalance().map(Wait(held_up)).set_parallelism(1).uid("wait")
    counts = slowed.union(quick).key_by(lambda value: value[0]).process(Counts(folder)).uid("counts").name("counts")
    records = counts.execute_and_collect()
    client = records.job_client
    found: Found = {}
    more_checkpoints(client, 1)
    if mode is CheckpointingMode.EXACTLY_ONCE:
        until(lambda: _on_disk(client))
        found["held"] = _of_subtasks(client, "counts", "alignmentHeldBlobs")
        found["aligned ms"] = _of_subtasks(client, "counts", "alignmentTimeMs")
    more_checkpoints(client, 1)
    os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
    until(lambda: client.get_progress().restarts > 0)
    held_up.unlink()
    held.let_go()
    last: Counter[int] = Counter()
    for key, count in records:
        last[key] = max(last[key], count)
    return {"counted": last.total(), "restarts": client.get_progress().restarts, **found}


def _on_disk(client: JobClient) -> bool:
    """Return whether a slot has written blobs to a file without a name."""
    for pid in client.get_progress().slot_pids:
        with suppress(OSError):  # the process or the file is gone
            for each in Path(f"/proc/{pid}/fd").iterdir():
                name = os.readlink(each)
                if "/slot-" in name and name.endswith("(deleted)") and each.stat().st_size:
                    return True
    return False


def _of_subtasks(client: JobClient, chain: str, name: str) -> list[float]:
    """Return a figure of each subtask of a chain."""
    metrics = client.get_metrics()
    return [v for k, v in metrics.items() if k.startswith(chain) and k.endswith(name) and k.split(".")[-2].isdigit()]


# ------------------------------------------------------------------------------------------------- timers, watermarks


class Emitting(BoundedOutOfOrdernessWatermarks):
    """Counts how often it is asked for a watermark."""

    def __init__(self, asked: Tracks) -> None:
        super().__init__(0)
        self.asked = asked

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        self.asked(None)
        super().on_periodic_emit(output)


class Alarm(KeyedProcessFunction):
    """Emits when its timers fire: one by the clock, one by watermarks."""

    def process_element(self, value: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 100)
        timers.register_event_time_timer(ctx.timestamp() - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "event" if timestamp == 4_999 else "processing"


def clocks(folder: Path) -> Found:
    """Let timers of both kinds fire after the only record of a source, and count watermarks against epochs."""
    env, asked = environment(None, 1), Tracks(folder / "asked")
    env.get_config().set_auto_watermark_interval(20)
    source = DataGeneratorSource(lambda n: n, 1 << 40, RateLimiterStrategy.per_second(0.001))
    strategy = WatermarkStrategy.for_generator(lambda context: Emitting(asked)).with_timestamp_assigner(
        lambda value, _: 5_000
    )
    numbers = env.from_source(source, strategy, "numbers")
    with numbers.key_by(lambda n: n).process(Alarm()).execute_and_collect() as records:
        fired = sorted([next(records), next(records)])
        progress = records.job_client.get_progress
        first, before = progress().epochs, asked.count
        until(lambda: progress().epochs >= first + 10)
        return {"fired": fired, "epochs": progress().epochs - first, "emitted": asked.count - before}


# ---------------------------------------------------------------------------------------------- several checkpoints


def several_checkpoints(folder: Path) -> Found:
    """Kill a slot while the marks of two checkpoints are on their way."""
    (folder / "slow").touch()
    env = tally.build(5_000, 2_500, folder, execution="continuous", interval_ms=50, held_up_by=folder / "slow")
    env.get_checkpoint_config().set_max_concurrent_checkpoints(3)
    client = env.execute_async()
    more_checkpoints(client, 1)
    handle: Any = client._handle  # no public method of a client tells how many checkpoints are in flight
    until(lambda: handle.view.statistics.checkpoints.in_progress > 1)
    os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
    until(lambda: client.get_progress().restarts > 0)
    (folder / "slow").unlink()
    client.get_job_execution_result().result()
    return {"wrong": tally.verify(5_000, folder), "restarts": client.get_progress().restarts}
