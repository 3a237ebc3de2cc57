"""Helpers of tests with running jobs: a job whose output is known, and a look at jobs and processes from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ekorn.clock import Clock
from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import (
    DataStream,
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiter, RateLimiterStrategy
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.graph.job_graph import JobGraph

WAIT_S = 60.0

E = TypeVar("E", bound=EpochSlotEngine)


def environment(
    directory: Path | str | None = None,
    *,
    parallelism: int = 1,
    interval_ms: int = 10,
    restarts: int = 0,
    **keys: Any,
) -> StreamExecutionEnvironment:
    """Make an environment that retains its checkpoints in a directory, or takes none without one.

    Args:
        directory: Where checkpoints go.
        parallelism: The parallelism of the job.
        interval_ms: The time between two checkpoints.
        restarts: How many restarts the job has.
        keys: Configuration keys, written with `__` for a dot and `_` for a dash.
    """
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), str(value))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    strategy = RestartStrategies.fixed_delay_restart(restarts, 0) if restarts else RestartStrategies.no_restart()
    env.set_restart_strategy(strategy)
    if directory is not None:
        env.enable_checkpointing(interval_ms)
        config = env.get_checkpoint_config()
        config.set_checkpoint_storage_dir(str(directory))
        config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    return env


class Held(RateLimiterStrategy):
    """Lets a source read a part of its records, and the others once they are let go: its job does not end before.

    Args:
        folder: Where a file is made when the others are let go.
        records: How many records are read before, by all readers together; as many again after each restart.
        per_second: The rate of those records. The others have none.
    """

    def __init__(self, folder: Path, records: int, per_second: float = 1e9) -> None:
        self._let_go, self._records = folder / "let-go", records
        self._rate = RateLimiterStrategy.per_second(per_second)

    def let_go(self) -> None:
        self._let_go.touch()

    def create_rate_limiter(self, share_count: int, clock: Clock) -> RateLimiter:
        rate = self._rate.create_rate_limiter(share_count, clock)
        assert rate is not None
        return _HeldLimiter(self._let_go, self._records // share_count, rate)


class _HeldLimiter(RateLimiter):
    def __init__(self, let_go: Path, records: int, rate: RateLimiter) -> None:
        self._let_go, self._left, self._rate = let_go, records, rate

    def take(self, wanted: int) -> int:
        if self._let_go.exists():
            return wanted
        taken = self._rate.take(min(wanted, self._left))
        self._left -= taken
        return taken


def limited(per_second: float | Held) -> RateLimiterStrategy:
    return per_second if isinstance(per_second, Held) else RateLimiterStrategy.per_second(per_second)


def generated(env: StreamExecutionEnvironment, records: int | None, per_second: float | Held = 1e9) -> DataStream:
    """Return the stream 0, 1, 2, ... at a rate. One subtask reads it, so that the numbers have one order."""
    source = DataGeneratorSource(lambda n: n, records, limited(per_second))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    return numbers.uid("numbers").set_parallelism(1)


class Tally(KeyedProcessFunction):
    """Keeps a count, a list and a map for each key, and yields a result that depends on all three."""

    def __init__(self, recent_count: int = 3) -> None:
        self.recent_count = recent_count

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.LONG()))
        self.parities = runtime_context.get_map_state(MapStateDescriptor("parities", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        recent = [*(self.recent.get() or ()), value][-self.recent_count :]
        self.recent.update(recent)
        self.parities.put(value % 2, (self.parities.get(value % 2) or 0) + 1)
        yield ctx.get_current_key(), value, count, sum(recent), sum(self.parities.values())


def tallied(stream: DataStream, keys: int) -> DataStream:
    return stream.key_by(lambda n: n % keys).process(Tally()).uid("tally").name("tally")


def expected_tally(records: int, keys: int, recent_count: int = 3) -> list[tuple[int, int, int, int, int]]:
    """Return what a `Tally` yields for 0, 1, 2, ... keyed by the remainder."""
    results = []
    for n in range(records):
        so_far = range(n % keys, n + 1, keys)
        results.append((n % keys, n, len(so_far), sum(so_far[-recent_count:]), len(so_far)))
    return results


@contextmanager
def engines(make: Callable[[JobGraph], E]) -> Iterator[list[E]]:
    """Run every job inside the block on an engine from `make`; list the engines that were made."""
    made: list[E] = []

    def engine_for(settings: Any) -> Callable[[JobGraph], E]:
        def one(graph: JobGraph) -> E:
            made.append(make(graph))
            return made[-1]

        return one

    with jobs_submitted_by(partial(submit, engine_for=engine_for)):
        yield made


def doors(engine: EpochSlotEngine) -> list[tuple[str, int]]:
    """Return the addresses on which the driver and its slots listen."""
    pool: Any = engine.pool
    return [pool.address, *(slot.address for slot in pool.slots)]


# ------------------------------------------------------------------------------------------------- seen from outside


def until(condition: Callable[[], object], within_s: float = WAIT_S) -> None:
    """Wait until another thread or process has made a condition true; fail if that takes too long."""
    limit = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < limit, f"the condition did not become true within {within_s} s"
        time.sleep(0.01)  # another process makes it true: there is nothing to wait on


def process_state(pid: int) -> str:
    """Return the state of a process as Linux has it: R, S, D, T (stopped), Z (dead), X if there is no such process."""
    return _stat(pid)[0]


def parent_of(pid: int) -> int:
    """Return the process id of a process's parent; 0 if there is no such process."""
    return int(_stat(pid)[1])


def is_running(pid: int) -> bool:
    return process_state(pid) not in ("Z", "X")


def open_files(folder: Path) -> set[str]:
    """Return the files in a folder that this process has open, deleted ones too."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile by another thread
            found.add(os.readlink(f"/proc/self/fd/{descriptor}"))
    return {path for path in found if path.startswith(f"{folder}/")}


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


class Tracks:
    """Counts calls in a file, from whatever process."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        path.write_bytes(b"")

    def __call__(self, value: Any) -> Any:
        with open(self.path, "ab", buffering=0) as file:
            file.write(b".")
        return value

    @property
    def count(self) -> int:
        return os.path.getsize(self.path)


def comes_to_rest(tracks: Tracks) -> bool:
    """Return whether nobody has called for a while."""
    before = tracks.count
    time.sleep(0.3)
    return before == tracks.count


class PickleBomb:
    """Creates a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))
