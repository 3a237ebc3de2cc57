"""Nexmark on Ekorn, in columns and in rows, beside Flink SQL and Spark Structured Streaming, on the same files.

    python -m benchmarks.nexmark [--pyflink .venvs/flink/bin/python] [--events 2000000] [--queries q0,q5] [--check]

Each engine runs in a process of its own, one after another, with parallelism 2. The rate is that of all events of the
files, of people, auctions and bids, whether or not a query reads them, in the best of some turns. The start of a job
counts, and the start of the engine does not. With `--check` the answers are compared row by row with those of SQLite.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark

from benchmarks.nexmark.answers import Answers
from benchmarks.nexmark.column_queries import QUERIES
from benchmarks.nexmark.events import write
from ekorn.testing.kafka.jars import download

REPOSITORY = Path(__file__).parents[2]
FLINK_JARS = Path(__file__).parents[1] / "peers" / "flink_parquet_jars.txt"
FORMS = ("columns", "rows")


def main() -> None:
    """Run the chosen queries, and print a table of rates, or what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pyflink", help="the Python of an environment with apache-flink; without it Flink is left out"
    )
    parser.add_argument("--events", type=int, help="2,000,000 if left out; to check 100,000")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="compare answers instead of rates")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.check:
            # Ten times as slow a stream as in the measurements: sessions end before the last bid.
            write(Path(folder), options.events or 100_000, rate=1_000)
            raise SystemExit(check(Path(folder), options))
        events = options.events or 2_000_000
        write(Path(folder), events)
        rates(Path(folder), events, options)


def engines(options: argparse.Namespace) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return the command and the environment variables of each engine."""
    ours = [sys.executable, "-m", "benchmarks.nexmark.jobs"]
    found: dict[str, tuple[list[str], dict[str, str]]] = {form: (ours, {}) for form in FORMS}
    if options.pyflink:
        command = [os.path.abspath(options.pyflink), "-m", "benchmarks.peers.nexmark_flink"]
        found["Flink SQL"] = command, {"HADOOP_CLASSPATH": hadoop_class_path()}
    return found


def hadoop_class_path() -> str:
    """Return the jars that Flink's Parquet format needs: its own, and those of Hadoop, which PySpark brings."""
    cached = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ekorn" / "flink-parquet"
    jars = [*download(cached, listed=FLINK_JARS).glob("*.jar")]
    of_spark = Path(pyspark.__file__).parent / "jars"
    for name in ("hadoop-client-api", "hadoop-client-runtime"):
        jars += of_spark.glob(f"{name}-*.jar")
    return os.pathsep.join(map(str, jars))


def rates(folder: Path, events: int, options: argparse.Namespace) -> None:
    """Print the events per second of each query and engine."""
    found: dict[str, dict[str, float]] = {}
    for engine, (command, variables) in engines(options).items():
        arguments = ["rates", str(folder), *([engine] if engine in FORMS else [])]
        for line in told([*command, *arguments, options.queries, "--turns", str(options.turns)], variables):
            found.setdefault(line["query"], {})[engine] = events / min(line["seconds"])
    spark = [sys.executable, "-m", "benchmarks.peers.nexmark_spark", str(folder), options.queries]
    for line in told([*spark, "--turns", str(options.turns)], {}):
        found[line["query"]]["Spark"] = events / min(line["seconds"])
    shown = (*engines(options), "Spark")
    print("query" + "".join(f"{engine:>14}" for engine in shown))
    for query, of_engine in found.items():
        cells = (f"{of_engine[engine]:>14,.0f}" if engine in of_engine else " " * 14 for engine in shown)
        print(f"{query:<5}" + "".join(cells), flush=True)


def check(folder: Path, options: argparse.Namespace) -> int:
    """Print which answers are those of SQLite; return how many are not."""
    answers, different = Answers(folder), 0
    asked = [query for query in options.queries.split(",") if query != "q12"]  # whose windows follow the clock
    for engine, (command, variables) in engines(options).items():
        with tempfile.TemporaryDirectory() as into:
            arguments = [
                "answers",
                str(folder),
                *([engine] if engine in FORMS else []),
                ",".join(asked),
                "--into",
                into,
            ]
            for line in told([*command, *arguments], variables):
                rows = json.loads((Path(into) / f"{line['query']}.json").read_text())
                found, expected = Counter({tuple(row[:-1]): row[-1] for row in rows}), answers.of(line["query"])
                equal = found == expected
                different += not equal
                verdict = (
                    "equal" if equal else f"{(found - expected).total()} rows more, {(expected - found).total()} less"
                )
                print(f"    {line['query']:<5}{engine:<12}{line['rows']:>9,} rows: {verdict}", flush=True)
    return different


def told(command: list[str], variables: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Run a command, and return the lines of JSON that it prints, while it runs."""
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command, cwd=REPOSITORY, env=os.environ | variables, stdout=subprocess.PIPE, stderr=log, text=True
        ) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        if running.wait():
            log.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {running.returncode}:\n{log.read()[-3000:]}")


if __name__ == "__main__":
    main()
