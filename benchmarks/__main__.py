"""`make bench`: records per second on this machine, in one run, against PyFlink and PySpark's own Python state APIs.

    python -m benchmarks --pyflink .venvs/flink/bin/python [--quick] [--only epoch,checkpoints] [--full-state]

Every figure comes from a process of its own, one after another, on two cores. Peers get fewer records than Tamias
where they are slow, and a time limit after which an upper bound of their rate is taken: always in their favour.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """One way to run a workload on another engine."""

    engine: str
    api: str
    records: dict[int, int]  # by number of keys

    def label(self) -> str:
        return f"{self.engine} {self.api}"


FLINK = [Peer("pyflink", api, {1_000: 100_000, 100_000: 20_000}) for api in ("process", "thread")]
SPARK_STATE = [
    Peer("pyspark", "transformWithState", {1_000: 400_000, 100_000: 100_000}),
    Peer("pyspark", "transformWithStateInPandas", {1_000: 400_000, 100_000: 50_000}),
    Peer("pyspark", "applyInPandasWithState", {1_000: 400_000, 100_000: 50_000}),
]
WORKLOADS: list[tuple[str, int, list[Peer]]] = [
    ("keyed-count", 1_000, FLINK + SPARK_STATE),
    ("keyed-count", 100_000, FLINK + SPARK_STATE),
    ("rolling-reduce", 1_000, [*FLINK, SPARK_STATE[0]]),
    ("tumbling", 1_000, FLINK),
    ("sliding", 1_000, FLINK),
    ("session", 1_000, FLINK),
    ("timers", 1_000, FLINK),
    ("co-process", 1_000, FLINK),
    ("broadcast", 1_000, FLINK),
    ("stateless-chain", 1_000, [*FLINK, Peer("pyspark", "mapInPandas", {1_000: 2_000_000})]),
]


def main() -> None:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyflink", help="the Python of an environment that has apache-flink; without it no PyFlink")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records: to see that everything runs")
    parser.add_argument("--only", default="throughput,epoch,first,memory,linear,checkpoints,backends")
    parser.add_argument("--full-state", action="store_true", help="the state backends at up to 20 million keys")
    parser.add_argument("--workloads", help="of the throughput table only these, with commas between")
    parser.add_argument("--limit-seconds", type=float, default=120.0, help="for one run of a peer")
    options = parser.parse_args()
    parts = {
        "throughput": throughput,
        "epoch": epoch,
        "first": first_result,
        "memory": memory,
        "linear": linear,
        "checkpoints": checkpoints,
        "backends": backends,
    }
    for name in options.only.split(","):
        parts[name](options)


# ------------------------------------------------------------------------------------------------- throughput


def throughput(options: argparse.Namespace) -> None:
    """Records per second, and how many times that of each peer."""
    heading("records per second, parallelism 2")
    wanted = options.workloads.split(",") if options.workloads else None
    for workload, keys, peers in WORKLOADS:
        if wanted is not None and workload not in wanted:
            continue
        ours = tamias(workload, sized(6_000_000, options), keys)
        print(f"\n  {workload}, {keys:,} keys")
        show("tamias", ours)
        best: dict[str, float] = {}
        for peer in peers:
            if peer.engine == "pyflink" and not options.pyflink:
                continue
            python = options.pyflink if peer.engine == "pyflink" else sys.executable
            script = HERE / "peers" / f"{peer.engine}_jobs.py"
            found = run(
                python, script, "--workload", workload, "--api", peer.api, "--keys", keys,
                "--records", max(4_000, sized(peer.records[keys], options)), "--limit-seconds", options.limit_seconds,
            )  # fmt: skip
            show(peer.label(), found, ours)
            best[peer.engine] = max(best.get(peer.engine, 0.0), rate(found))
        for engine, theirs in best.items():
            print(f"    {rate(ours) / theirs:>10.1f} x the best of {engine}")


def tamias(workload: str, records: int, keys: int) -> dict[str, Any]:
    return run(sys.executable, HERE / "tamias_jobs.py", "--workload", workload, "--records", records, "--keys", keys)


def show(label: str, found: dict[str, Any], ours: dict[str, Any] | None = None) -> None:
    bound = "at most " if found.get("timed_out") else ""
    ratio = f"   tamias is {rate(ours) / rate(found):,.1f} x" if ours is not None else ""
    print(f"    {label:<36}{bound:>8}{rate(found):>12,.0f}/s   ({found['records']:,} records){ratio}", flush=True)


def rate(found: dict[str, Any]) -> float:
    return float(found.get("records_per_second") or found["records_per_second_at_most"])


# ------------------------------------------------------------------------------------------------ other figures


def epoch(options: argparse.Namespace) -> None:
    """The cost of an epoch without records, beside a Spark job of the same two stages that does nothing."""
    heading("an empty epoch (two levels, two subtasks each)")
    found = run(sys.executable, HERE / "epoch_cost.py", "--rounds", 20 if options.quick else 100)
    print(f"    tamias epoch   {found['epoch_ms']:>7.1f} ms (median)")
    print(f"    bare Spark job {found['bare_ms']:>7.1f} ms (median), same shape: ratio {found['ratio']:.2f}")


def first_result(options: argparse.Namespace) -> None:
    """From `execute()` to the first record in the driver's hands."""
    heading("from execute() to the first result")
    found = run(sys.executable, HERE / "first_result.py")
    print(f"    with a running Spark session   {found['warm_seconds']:.2f} s")
    print(f"    with Spark to be started       {found['cold_seconds']:.2f} s")


def memory(options: argparse.Namespace) -> None:
    """Resident memory of the slots per million keys of heap state with a long value."""
    heading("memory of heap state")
    found = run(sys.executable, HERE / "state_memory.py", "--keys", sized(3_000_000, options))
    print(
        f"    {found['mb_per_million_keys']:.0f} MB per million keys ({found['keys']:,} keys, {found['key_kind']} keys)"
    )


def linear(options: argparse.Namespace) -> None:
    """Ten times the records, ten times the keys: the rate should hardly change."""
    heading("cost grows linearly (keyed count)")
    base = tamias("keyed-count", sized(3_000_000, options), 10_000)
    more_records = tamias("keyed-count", sized(30_000_000, options), 10_000)
    more_both = tamias("keyed-count", sized(30_000_000, options), 100_000)
    for label, found in (("base", base), ("10 x the records", more_records), ("10 x records, 10 x keys", more_both)):
        print(f"    {label:<26}{rate(found):>12,.0f}/s   {rate(found) / rate(base):.2f} of the base", flush=True)


def checkpoints(options: argparse.Namespace) -> None:
    """The rate with a checkpoint every second, beside the rate without, on both state backends."""
    heading("a checkpoint every second (keyed count, 100,000 keys)")
    for backend, records in (("hashmap", 12_000_000), ("rocksdb", 12_000_000)):
        found = run(
            sys.executable, HERE / "checkpoint_cost.py", "--records", sized(records, options), "--backend", backend
        )
        print(
            f"    {backend:<10}{found['with_per_second']:>12,.0f}/s with, {found['without_per_second']:>12,.0f}/s "
            f"without: {found['ratio']:.2f}; one every {found['seconds_between_checkpoints']:.1f} s",
            flush=True,
        )


def backends(options: argparse.Namespace) -> None:
    """RocksDB beside the heap: rates, sizes and durations of checkpoints, restores and rescales, memory."""
    heading("state backends (one process, without Spark)")
    size = ["--full"] if options.full_state else ["--keys", str(sized(1_000_000, options))]
    command = [sys.executable, "-m", "benchmarks.state_backends", *size, "--records", str(sized(2_000_000, options))]
    with subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.strip() and not line.startswith("{"):  # those are for programs
                print(f"    {line}", end="", flush=True)
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")


# ------------------------------------------------------------------------------------------------------ running


def run(python: str, script: Path, *arguments: object) -> dict[str, Any]:
    """Run a measuring script; the last line it prints is its result."""
    command = [str(python), str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{' '.join(command)} gave no result:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def sized(records: int, options: argparse.Namespace) -> int:
    return records // 10 if options.quick else records


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


if __name__ == "__main__":
    main()
