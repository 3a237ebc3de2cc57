"""RocksDB and the heap, compared in one process without Spark: throughput, checkpoints, restores, memory.

    python -m benchmarks.state_backends [--keys 1000000] [--records 2000000] [--only throughput,...] [--full]

    throughput     records per second of a count per key, through the operator that a job would have
    checkpoints    a full checkpoint, then fifty more, each after a change of 1 in 100 keys at random: bytes written,
                   the pause of the subtask, the time of writing, bytes on disk, and the cost of a read
    restore        the time to restore one checkpoint into one subtask, and into two, by number of keys
    memory         the resident memory of a process, by number of keys in RocksDB

`--full` measures the sizes that the documentation names: 5,000,000 keys in checkpoints and restores, 20,000,000 in
memory; it takes half an hour on two cores. Rates and the cost of a read are in processor time, so that other load does
not change them; durations are in wall-clock time. Every figure of `memory` is from a process of its own. The output is
one line of JSON per figure, and a table at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ekorn.clock import SystemClock
from ekorn.common import Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.graph.addresses import SubtaskId
from ekorn.keygroups import KeyGroupRange, key_group_range
from ekorn.slot.host import SlotHost
from ekorn.slot_protocol.deployment import Deployment
from ekorn.state.canonical_format import PAYLOAD_BYTES
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.rocksdb.rocksdb_backend import RocksDBKeyedBackend
from ekorn.state.snapshots import KeyedFiles, OperatorRestore, StateFile
from ekorn.state.state_files import write_state
from ekorn.storage.file_store import FileStore, open_files

GROUPS = 128
EVERYTHING = KeyGroupRange(0, GROUPS - 1)
BATCH = 1000
SERIES = 50
FULL = {"throughput": 1_000_000, "checkpoints": 5_000_000, "restore": 5_000_000, "memory": 20_000_000}
BACKENDS = ("heap", "rocksdb")
Figure = dict[str, Any]


class Count(KeyedProcessFunction):
    """Reads and writes state once per record, and emits nothing."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update((self.count.value() or 0) + 1)


def make(backend: str, folder: str, groups: KeyGroupRange = EVERYTHING) -> KeyedStateBackend:
    """Create an empty backend."""
    if backend == "heap":
        return HeapStateBackend(tracked=True)
    return RocksDBKeyedBackend(tempfile.mkdtemp(dir=folder), max_parallelism=GROUPS, key_groups=groups)


# ---------------------------------------------------------------------------------------------------------- throughput


def throughput(folder: str, keys: int, records: int) -> Iterator[Figure]:
    """Measure the rate with few keys, many keys and the given number; flushing to disk at the end is included."""
    for count in dict.fromkeys((1_000, 100_000, keys)):
        for backend in BACKENDS:
            yield {
                "figure": "throughput",
                "backend": backend,
                "keys": count,
                "records_per_cpu_second": round(measure_throughput(backend, count, records)),
            }


def measure_throughput(backend: str, keys: int, records: int) -> float:
    """Return the records per second of processor time, with keys at random."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(10_000)
    stream = env.from_collection([("0", 1)], Types.PICKLED_BYTE_ARRAY()).key_by(lambda r: r[0])
    stream.process(Count()).filter(lambda r: False).print()
    graph = env.job_graph("bench")
    host = SlotHost(0, SystemClock(), lambda event: None)
    name = "rocksdb" if backend == "rocksdb" else "hashmap"
    host.deploy(Deployment("0" * 32, graph, 0, state_backend=name), [SubtaskId(v.id, 0) for v in graph.vertices])
    (subtask,) = [s for s in host.subtasks.values() if s.operators[0].backend is not None]
    chance = random.Random(7)
    names = [f"user-{n}" for n in range(keys)]
    runs = [[(name, 1) for name in chance.choices(names, k=BATCH)] for _ in range(records // BATCH)]
    started = time.process_time()
    for run in runs:
        subtask.intake.process(run, None)
    if backend == "rocksdb":  # the heap has nothing to flush
        subtask.operators[0].backend.rocks.flush()  # type: ignore[union-attr]
    taken = time.process_time() - started
    host.shutdown()
    return records / taken


# --------------------------------------------------------------------------------------------------------- checkpoints


class Target:
    """Writes the files of one checkpoint."""

    payload_bytes = PAYLOAD_BYTES

    def __init__(self, store: FileStore, checkpoint_id: int) -> None:
        self._store, self._checkpoint_id, self._number = store, checkpoint_id, 0
        self.bytes_written = 0

    def shared(self, label: str) -> str:
        return self._name("shared")

    def exclusive(self, label: str) -> str:
        return self._name(f"chk-{self._checkpoint_id}")

    def _name(self, folder: str) -> str:
        self._number += 1
        return f"{folder}/{self._checkpoint_id}-{random.getrandbits(64):016x}"

    def write(self, path: str, payload: bytes) -> StateFile:
        self.bytes_written += len(payload)
        return write_state(self._store, path, payload, 20 * 1024)


def fill(backend: KeyedStateBackend, keys: Any, value: int) -> None:
    """Set the value of each key."""
    state, cell = backend.state(ValueStateDescriptor("count")), backend.cell
    for key in keys:
        cell[0] = key
        state.update(value)


def checkpoint(
    backend: KeyedStateBackend, checkpoint_id: int, store: FileStore, groups: KeyGroupRange = EVERYTHING
) -> tuple[KeyedFiles, Figure]:
    """Take a checkpoint and complete it."""
    target, started = Target(store, checkpoint_id), time.perf_counter()
    captured = backend.snapshot(checkpoint_id)
    stood_still = time.perf_counter() - started
    captured.key_groups = groups
    files = captured.write(target)
    backend.snapshot_completed(checkpoint_id)
    figure = {
        "bytes": target.bytes_written,
        "sync_s": round(stood_still, 3),
        "async_s": round(time.perf_counter() - started - stood_still, 3),
    }
    return files, figure


def checkpoints(folder: str, keys: int, records: int) -> Iterator[Figure]:
    """Measure a first checkpoint, and a series of checkpoints, each after a change of 1 in 100 keys at random."""
    for kind in BACKENDS:
        backend, store, chance = make(kind, folder), open_files(tempfile.mkdtemp(dir=folder)), random.Random(7)
        about = {"figure": "checkpoint", "backend": kind, "keys": keys}
        fill(backend, range(keys), 1)
        _, full = checkpoint(backend, 1, store)
        yield {**about, "what": "everything", **full, **_at_rest(backend, keys)}
        later: list[Figure] = []
        for number in range(2, SERIES + 2):
            fill(backend, chance.sample(range(keys), keys // 100), number)
            later.append(checkpoint(backend, number, store)[1])
        by_bytes = sorted(later, key=_bytes)
        for what, one in (("first", later[0]), ("median", by_bytes[len(later) // 2]), ("worst", by_bytes[-1])):
            yield {**about, "what": f"1% changed, {what} of {SERIES}", **one, "percent": _percent(one["bytes"], full)}
        mean = round(sum(map(_bytes, later)) / len(later))
        above = sum(_bytes(one) > 0.03 * full["bytes"] for one in later)
        said = {"bytes": mean, "percent": _percent(mean, full), "above_3_percent": above}
        yield {**about, "what": f"1% changed, mean of {SERIES}", **said, **_at_rest(backend, keys)}
        backend.close()


def _percent(some: int, full: Figure) -> float:
    return round(100 * some / int(full["bytes"]), 2)


def _at_rest(backend: KeyedStateBackend, keys: int) -> Figure:
    """Return the size of RocksDB's files, and the cost of reading a key that is not cached in the backend."""
    if not isinstance(backend, RocksDBKeyedBackend):
        return {}
    rocks, chance = backend.rocks, random.Random(8)
    files, table = rocks.store.files(), rocks.by_name["count"]
    addresses = [table.address(chance.randrange(keys))[0] for _ in range(50_000)]
    for address in addresses[:10_000]:  # fills the block cache
        rocks.store.get(address)
    started = time.process_time()
    for address in addresses[10_000:]:
        rocks.store.get(address)
    read_us = (time.process_time() - started) / 40_000 * 1e6
    return {"files": len(files), "disk_bytes": sum(file.bytes for file in files), "read_us": round(read_us, 1)}


def _bytes(figure: Figure) -> int:
    return int(figure["bytes"])


# ------------------------------------------------------------------------------------------------- restore and rescale


def restore(folder: str, keys: int, records: int) -> Iterator[Figure]:
    """Measure restores from one subtask to one and to two, and from two to one, by size and across backends."""
    for count in dict.fromkeys((keys // 10, keys)):
        for before, after in (("heap", "heap"), ("rocksdb", "rocksdb"), ("heap", "rocksdb"), ("rocksdb", "heap")):
            store = open_files(tempfile.mkdtemp(dir=folder))
            for old in (1, 2):
                parts, infos = saved(before, folder, store, count, old)
                for new in (1, 2) if old == 1 else (1,):
                    ranges = [key_group_range(GROUPS, new, index) for index in range(new)]
                    seconds = max(restored(after, folder, store, _plan(parts, infos, mine), mine) for mine in ranges)
                    yield {
                        "figure": "restore",
                        "from": before,
                        "to": after,
                        "keys": count,
                        "parallelism": f"{old} -> {new}",
                        "seconds_of_slowest": round(seconds, 3),
                    }


def saved(backend: str, folder: str, store: FileStore, keys: int, parallelism: int) -> tuple[list[KeyedFiles], Any]:
    """Take a checkpoint of several subtasks, which together have all keys."""
    from ekorn.keygroups import key_group

    parts, infos = [], ()
    for index in range(parallelism):
        groups = key_group_range(GROUPS, parallelism, index)
        made = make(backend, folder, groups)
        fill(made, (key for key in range(keys) if groups[0] <= key_group(key, GROUPS) <= groups[1]), 1)
        parts.append(checkpoint(made, 1, store, groups)[0])
        infos = made.infos()  # type: ignore[assignment]
        made.close()
    return parts, infos


def _plan(parts: list[KeyedFiles], infos: Any, groups: tuple[int, int]) -> OperatorRestore:
    mine = tuple(p for p in parts if p.key_group_first <= groups[1] and groups[0] <= p.key_group_last)
    return OperatorRestore("operator", mine, (), infos, 1, GROUPS)


def restored(backend: str, folder: str, store: FileStore, plan: OperatorRestore, groups: tuple[int, int]) -> float:
    """Return the seconds until one restored subtask can read its first key."""
    started = time.perf_counter()
    made = make(backend, folder, groups)  # type: ignore[arg-type]
    made.restore(plan, store, groups)  # type: ignore[arg-type]
    made.state(ValueStateDescriptor("count"))
    taken = time.perf_counter() - started
    made.close()
    return taken


# -------------------------------------------------------------------------------------------------------------- memory


def memory(folder: str, keys: int, records: int) -> Iterator[Figure]:
    """Measure the resident memory of a process that counts keys, by number of keys."""
    for count in dict.fromkeys((1_000, keys)):
        command = [sys.executable, "-m", "benchmarks.state_backends", "--keys", str(count), "--only", "resident"]
        command += ["--folder", folder]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        yield json.loads(next(line for line in lines if line.startswith("{")))


def resident(folder: str, keys: int, records: int) -> Iterator[Figure]:
    """Count every key twice in this process, with checkpoints on the way, and sample the memory."""
    backend, store = make("rocksdb", folder), open_files(tempfile.mkdtemp(dir=folder))
    state, cell = backend.state(ValueStateDescriptor("count")), backend.cell
    highest, started, chance = 0.0, time.perf_counter(), random.Random(7)
    part = max(keys // 20, 1)
    for number, first in enumerate(range(0, keys, part), 1):
        for key in range(first, min(first + part, keys)):
            cell[0] = f"user-{key}"
            state.update(1)
        checkpoint(backend, number, store)
        highest = max(highest, resident_mb())
    first_s = time.perf_counter() - started
    started, again = time.perf_counter(), min(keys, 1_000_000)
    for _ in range(again):
        cell[0] = f"user-{chance.randrange(keys)}"
        state.update(state.value() + 1)
    highest = max(highest, resident_mb())
    backend.close()
    yield {
        "figure": "memory",
        "keys": keys,
        "resident_mb_at_most": round(highest),
        "seconds_to_write_all": round(first_s, 1),
        "random_updates_per_second": round(again / (time.perf_counter() - started)),
    }


def resident_mb() -> float:
    """Return the resident memory of this process in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


# ------------------------------------------------------------------------------------------------------------- running

FIGURES: dict[str, Callable[[str, int, int], Iterator[Figure]]] = {
    "throughput": throughput,
    "checkpoints": checkpoints,
    "restore": restore,
    "memory": memory,
    "resident": resident,
}


def main() -> None:
    """Measure the chosen figures and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--only", default="throughput,checkpoints,restore,memory")
    parser.add_argument("--full", action="store_true", help="the sizes of docs/state_backends.md instead of --keys")
    parser.add_argument("--folder", help="the folder of state and checkpoints; by default that of temporary files")
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for name in given.only.split(","):
            for figure in FIGURES[name](folder, FULL[name] if given.full else given.keys, given.records):
                print(json.dumps(figure), flush=True)
                found.append(figure)
    print()
    for figure in found:
        said = (f"{word} {value:,}" if isinstance(value, int) else f"{word} {value}" for word, value in figure.items())
        print("  ".join(said))


if __name__ == "__main__":
    main()
