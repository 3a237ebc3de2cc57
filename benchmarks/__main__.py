"""`make bench`: records per second on this machine, in one run, against PyFlink, Flink in the JVM and PySpark.

    python -m benchmarks --pyflink .venvs/flink/bin/python [--quick] [--only epoch,checkpoints] [--full-state]

Every figure comes from a process of its own, and both engines of Ekorn are compared in one. The processes run one
after another, on two cores. A slow peer receives fewer records than Ekorn. A peer that exceeds the time limit is given
an upper bound of its rate. Both favour the peer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import flink_java

REPOSITORY = Path(__file__).parent.parent


@dataclass(frozen=True)
class Peer:
    """An API of another engine that runs a workload."""

    engine: str
    api: str
    records: dict[int, int]  # number of keys -> number of records

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

CONNECTORS = {
    "database-write": 500_000,
    "database-read": 2_000_000,
    "files-write": 4_000_000,
    "files-read": 4_000_000,
    "frame-read": 4_000_000,
    "frame-write": 1_000_000,
}


def main() -> None:
    """Run the chosen benchmarks and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pyflink", help="the Python of an environment with apache-flink; without it PyFlink is left out"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, to check that everything runs")
    parser.add_argument("--only", help="the parts to run, separated by commas; all of them without it")
    parser.add_argument(
        "--full-state", action="store_true", help="measure the state backends with up to 20 million keys"
    )
    parser.add_argument("--workloads", help="the workloads of the throughput table, separated by commas")
    parser.add_argument("--limit-seconds", type=float, default=120.0, help="the time limit of one run of a peer")
    options = parser.parse_args()
    parts = {
        "throughput": throughput,
        "columns": columns,
        "nexmark": nexmark,
        "epoch": epoch,
        "latency": latency,
        "backlog": backlog,
        "first": first_result,
        "memory": memory,
        "linear": linear,
        "checkpoints": checkpoints,
        "backends": backends,
        "kafka": kafka,
        "connectors": connectors,
        "iterations": iterations,
        "datasets": datasets,
        "queries": queries,
    }
    for name in options.only.split(",") if options.only else parts:
        parts[name](options)


# ------------------------------------------------------------------------------------------------- throughput


def throughput(options: argparse.Namespace) -> None:
    """Print records per second, and the ratio to each peer."""
    heading("records per second, parallelism 2")
    wanted = options.workloads.split(",") if options.workloads else None
    for workload, keys, peers in WORKLOADS:
        if wanted is not None and workload not in wanted:
            continue
        ours = ekorn(workload, sized(6_000_000, options), keys)
        print(f"\n  {workload}, {keys:,} keys")
        show("ekorn", ours)
        best: dict[str, float] = {}
        for peer in peers:
            if peer.engine == "pyflink" and not options.pyflink:
                continue
            python = os.path.abspath(options.pyflink) if peer.engine == "pyflink" else sys.executable
            found = run(
                f"peers.{peer.engine}_jobs", "--workload", workload, "--api", peer.api, "--keys", keys,
                "--records", max(4_000, sized(peer.records[keys], options)), "--limit-seconds", options.limit_seconds,
                python=python,
            )  # fmt: skip
            show(peer.label(), found, ours)
            best[peer.engine] = max(best.get(peer.engine, 0.0), rate(found))
        for engine, theirs in best.items():
            print(f"    {rate(ours) / theirs:>10.1f} x the best of {engine}")


def columns(options: argparse.Namespace) -> None:
    """Print records per second on columns and on rows, and those of Flink's Java API, in the best of three turns."""
    heading("columns, records per second, parallelism 2")
    for workload in ("keyed-count", "tumbling"):
        for keys in (1_000, 100_000, 1_000_000):
            print(f"\n  {workload}, {keys:,} keys")
            records = sized(20_000_000, options)
            chosen = ("--workload", workload, "--records", records, "--keys", keys)
            ours = best_of(run("column_jobs", *chosen)["seconds"], records)
            show("ekorn, columns", ours)
            rows = ("--workload", workload, "--records", records // 5, "--keys", keys, "--api", "continuous")
            show("ekorn, rows", run("ekorn_jobs", *rows), ours)
            if options.pyflink:
                java = flink_java.run(os.path.abspath(options.pyflink), workload, records=records, keys=keys, turns=3)
                show("Flink's Java DataStream API", best_of(java["seconds"], records), ours)


def best_of(seconds: list[float], records: int) -> dict[str, Any]:
    return {"records": records, "records_per_second": records / min(seconds)}


def nexmark(options: argparse.Namespace) -> None:
    """Print the rates of Nexmark's queries."""
    heading("Nexmark, events per second, parallelism 2")
    python = ["--pyflink", os.path.abspath(options.pyflink)] if options.pyflink else []
    printed("benchmarks.nexmark", "--events", str(sized(2_000_000, options)), *python)


def ekorn(workload: str, records: int, keys: int) -> dict[str, Any]:
    return run("ekorn_jobs", "--workload", workload, "--records", records, "--keys", keys)


def show(label: str, found: dict[str, Any], ours: dict[str, Any] | None = None) -> None:
    bound = "at most " if found.get("timed_out") else ""
    ratio = f"   ekorn is {rate(ours) / rate(found):,.1f} x" if ours is not None else ""
    print(f"    {label:<36}{bound:>8}{rate(found):>12,.0f}/s   ({found['records']:,} records){ratio}", flush=True)


def rate(found: dict[str, Any]) -> float:
    return float(found.get("records_per_second") or found["records_per_second_at_most"])


# ------------------------------------------------------------------------------------------------ other figures


def epoch(options: argparse.Namespace) -> None:
    """Print the time of an epoch without records, and of a Spark job with the same two stages that does nothing."""
    heading("an empty epoch (two levels, two subtasks each)")
    found = run("epoch_cost", "--rounds", 20 if options.quick else 100)
    print(f"    ekorn epoch   {found['epoch_ms']:>7.1f} ms (median)")
    print(f"    bare Spark job {found['bare_ms']:>7.1f} ms (median), same shape: ratio {found['ratio']:.2f}")


def latency(options: argparse.Namespace) -> None:
    """Print the age of records at the sink, on both engines and on PyFlink in both of its modes."""
    heading("from source to sink at 1,000 records/s (keyed count), the second half of a minute")
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("", ()),
        (", a checkpoint every second", ("--checkpoint-ms", 1_000)),
        (", three levels", ("--levels", 3)),
    ]
    engines: list[tuple[str, str, tuple[object, ...], str]] = [
        (f"ekorn {execution}", "latency", ("--execution", execution), sys.executable)
        for execution in ("continuous", "epochs")
    ]
    if options.pyflink:
        python = os.path.abspath(options.pyflink)
        engines += [
            (f"pyflink {api}", "peers.pyflink_latency", ("--api", api), python) for api in ("thread", "process")
        ]
    for engine, module, chosen, python in engines:
        for label, settings in cases:
            _show_ages(engine + label, module, *chosen, *settings, options=options, python=python)
    _show_ages("ekorn continuous, timers after their time", "latency", "--timers", options=options)


def _show_ages(
    label: str, module: str, *settings: object, options: argparse.Namespace, python: str = sys.executable
) -> None:
    found = run(module, "--seconds", 10 if options.quick else 60, *settings, python=python)
    print(f"    {label:<48}p50 {found['p50_ms']:>8.1f} ms, p99 {found['p99_ms']:>8.1f} ms", flush=True)


def backlog(options: argparse.Namespace) -> None:
    """Print records per second under a backlog on both engines: the median of some turns in one Spark session."""
    heading("continuously as a part of epochs, records per second under a backlog")
    for workload in dict.fromkeys(name for name, _, _ in WORKLOADS):
        found = run("engines", "--workload", workload, "--records", sized(4_000_000, options))
        continuously, in_epochs = found["continuous_per_second"], found["epochs_per_second"]
        print(f"    {workload:<18}{continuously:>12,.0f}/s of {in_epochs:>12,.0f}/s: {found['part']:.2f}", flush=True)


def queries(options: argparse.Namespace) -> None:
    """Print point reads of state beside a job in one slot, and what is left of the job's throughput."""
    heading("point reads from one slot beside a keyed count: 20,000 a second are asked for")
    turns = 2 if options.quick else 5
    for label, settings in {
        "continuous, a key a call": ("--execution", "continuous"),
        "continuous, the slot alone": ("--execution", "continuous", "--own-core"),
        "continuous, 100 keys a call": ("--execution", "continuous", "--keys-at-once", 100),
        "continuous, 4 clients": ("--execution", "continuous", "--clients", 4),
        "continuous, RocksDB": ("--execution", "continuous", "--backend", "rocksdb"),
        "epochs, a key a call": ("--execution", "epochs"),
        "epochs, RocksDB": ("--execution", "epochs", "--backend", "rocksdb"),
    }.items():
        found = run("queries", "--turns", turns, *settings)
        reads = f"{found['reads_per_second']:>8,.0f}/s, p50 {found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms"
        left = f"{found['asked']:,.0f} of {found['alone']:,.0f} records/s ({found['part']:.0%})"
        print(f"    {label:<30}{reads}; the job keeps {left}", flush=True)


def first_result(options: argparse.Namespace) -> None:
    """Print the time from `execute()` to the first record in the driver."""
    heading("from execute() to the first result")
    for execution in ("epochs", "continuous"):
        found = run("first_result", "--execution", execution)
        print(f"    {execution + ', with a running Spark session':<44}{found['warm_seconds']:.2f} s")
        print(f"    {execution + ', with Spark to be started':<44}{found['cold_seconds']:.2f} s", flush=True)


def kafka(options: argparse.Namespace) -> None:
    """Print the rate from a topic of Kafka through a keyed count to another topic, and the ratio to each peer."""
    heading("from Kafka through a keyed count to Kafka (the broker is on the same two cores)")
    ours = run("kafka", "--records", sized(6_000_000, options))
    show("ekorn, exactly once", ours)
    show(
        "ekorn continuous, exactly once",
        run("kafka", "--records", sized(6_000_000, options), "--execution", "continuous"),
    )
    spark = run("kafka", "--engine", "pyspark", "--records", sized(1_000_000, options))
    show("pyspark applyInPandasWithState", spark, ours)
    if options.pyflink:
        flink = ("--engine", "pyflink", "--python", os.path.abspath(options.pyflink))
        show("pyflink, exactly once", run("kafka", *flink, "--records", sized(200_000, options)), ours)


def connectors(options: argparse.Namespace) -> None:
    """Print the rates of databases, files and DataFrames."""
    heading("rows and lines per second, parallelism 2")
    for what, records in CONNECTORS.items():
        show(what, run("connectors", "--what", what, "--records", sized(records, options)))


def iterations(options: argparse.Namespace) -> None:
    """Print the time of a delta and of a bulk iteration over a graph with a long tail."""
    heading("connected components of a graph with a long tail")
    found = run("iterations", "--vertices", sized(200_000, options))
    print(f"    delta iteration {found['delta']:>7.1f} s ({found['supersteps']} supersteps)")
    print(f"    bulk iteration  {found['bulk']:>7.1f} s: {found['ratio']:.1f} times as long")


def datasets(options: argparse.Namespace) -> None:
    """Print the time of DataSet programs as a part of the better time of RDDs and DataFrames written by hand."""
    heading("DataSet programs, as a part of the better time of hand-written PySpark")
    found = run("data_sets", "--records", sized(1_000_000, options))
    for name, ratio in found["ratios"].items():
        print(f"    {name:<14}{ratio:>6.2f} ({found['records']:,} records)")


def memory(options: argparse.Namespace) -> None:
    """Print the resident memory of the slots per million keys of heap state with a long value."""
    heading("memory of heap state")
    found = run("state_memory", "--keys", sized(3_000_000, options))
    print(
        f"    {found['mb_per_million_keys']:.0f} MB per million keys ({found['keys']:,} keys, {found['key_kind']} keys)"
    )


def linear(options: argparse.Namespace) -> None:
    """Print the rate with ten times the records, and with ten times the keys: it should hardly change."""
    heading("cost grows linearly (keyed count)")
    base = ekorn("keyed-count", sized(3_000_000, options), 10_000)
    more_records = ekorn("keyed-count", sized(30_000_000, options), 10_000)
    more_both = ekorn("keyed-count", sized(30_000_000, options), 100_000)
    for label, found in (("base", base), ("10 x the records", more_records), ("10 x records, 10 x keys", more_both)):
        print(f"    {label:<26}{rate(found):>12,.0f}/s   {rate(found) / rate(base):.2f} of the base", flush=True)


def checkpoints(options: argparse.Namespace) -> None:
    """Print the rate with a checkpoint every second and the rate without, on both state backends."""
    heading("a checkpoint every second (keyed count, 100,000 keys)")
    for backend, records in (("hashmap", 12_000_000), ("rocksdb", 12_000_000)):
        found = run("checkpoint_cost", "--records", sized(records, options), "--backend", backend)
        print(
            f"    {backend:<10}{found['with_per_second']:>12,.0f}/s with, {found['without_per_second']:>12,.0f}/s "
            f"without: {found['ratio']:.2f}; one every {found['seconds_between_checkpoints']:.1f} s",
            flush=True,
        )


def backends(options: argparse.Namespace) -> None:
    """Print the figures of RocksDB and of the heap: rates, checkpoints, restores, rescales and memory."""
    heading("state backends (one process, without Spark)")
    size = ["--full"] if options.full_state else ["--keys", str(sized(1_000_000, options))]
    printed("benchmarks.state_backends", *size, "--records", str(sized(2_000_000, options)))


# ------------------------------------------------------------------------------------------------------ running


def run(module: str, *arguments: object, python: str = sys.executable) -> dict[str, Any]:
    """Run a module of this package in a process of its own, and return the JSON of its last line."""
    command = [python, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{' '.join(command)} gave no result:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def printed(module: str, *arguments: str) -> None:
    """Run a module in a process of its own, and print its lines while it runs, without those for programs."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.strip() and not line.startswith("{"):  # JSON lines are for programs
                print(f"    {line}", end="", flush=True)
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")


def sized(records: int, options: argparse.Namespace) -> int:
    return records // 10 if options.quick else records


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


if __name__ == "__main__":
    main()
