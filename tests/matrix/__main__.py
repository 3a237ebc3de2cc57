"""Run tests on versions of Python and Spark, and restore the savepoints of each on each.

    python -m tests.matrix                      each Python with the newest Spark, each Spark with the oldest Python
    python -m tests.matrix --python 3.12 --spark 4.1     the combinations that are named
    python -m tests.matrix --tests none                  only the savepoints
    python -m tests.matrix --tests all                   every test of tests/spark and tests/journeys; hours

Prints a line a run and a table of who restored what. Logs go to `.venvs/matrix-logs/`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from tests.matrix.environments import ROOT, Environment
from tests.matrix.exchange import RESTORED

PYTHONS = ("3.11", "3.12", "3.13")
SPARKS = ("4.1", "4.2", "4.3")
BACKENDS = ("hashmap", "rocksdb")  # a savepoint of one is restored in the other
LOGS = ROOT / ".venvs" / "matrix-logs"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
FAST = (*PYTEST, "-n", "2", "@tests/fast.args")
# What a version of Spark can break: jobs on an embedded session and on the user's own, and savepoints of live jobs.
OWN_SESSION = "test_jobs_run_on_the_session_of_the_user_and_leave_it_as_it_was"
REPRESENTATIVE = (
    "tests/spark/test_jobs.py",
    "tests/spark/test_savepoints.py",
    f"tests/journeys/test_pyspark_user.py::{OWN_SESSION}",
)


def main() -> int:
    """Run what the command line asks for; return 1 when anything failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.matrix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", metavar="X.Y", help=f"known: {', '.join(PYTHONS)}")
    parser.add_argument("--spark", action="append", metavar="X.Y", help=f"known: {', '.join(SPARKS)}")
    parser.add_argument(
        "--tests",
        choices=["representative", "fast", "all", "none"],
        default="representative",
        help="fast: make test-fast on each Python; representative: also some of tests/spark in each environment",
    )
    given = parser.parse_args()
    environments = choose(given.python, given.spark)
    LOGS.mkdir(parents=True, exist_ok=True)
    for environment in environments:
        environment.prepare()
    results = []
    if given.tests != "none":
        newest = {environment.python: environment for environment in environments}
        results += [run(environment, "fast", *FAST, "tests") for environment in newest.values()]
    if given.tests in ("representative", "all"):
        on_spark = REPRESENTATIVE if given.tests == "representative" else ("tests/spark", "tests/journeys")
        results += [run(environment, "spark", *PYTEST, *on_spark) for environment in environments]
    results += exchange_savepoints(environments)
    return 0 if all(results) else 1


def choose(pythons: Sequence[str] | None, sparks: Sequence[str] | None) -> list[Environment]:
    """Return the combinations that were named.

    Where none was, these are each Python with the newest Spark and each Spark with the oldest Python. Of the
    environments of one Python the one with the newest Spark is the last.
    """
    if pythons or sparks:
        return [Environment(python, spark) for python, spark in product(pythons or PYTHONS, sparks or SPARKS)]
    oldest, newest = PYTHONS[0], SPARKS[-1]
    return [Environment(p, s) for p, s in product(PYTHONS, SPARKS) if p == oldest or s == newest]


def run(environment: Environment, what: str, *arguments: str) -> bool:
    """Run one program in one environment and print how it went."""
    log = log_of(environment, what)
    started = time.monotonic()
    passed = environment.run(*arguments, log=log)
    took = f"{time.monotonic() - started:.0f} s"
    print(
        f"{environment}: {what}: {'passed' if passed else f'FAILED, see {log.relative_to(ROOT)}'} ({took})", flush=True
    )
    return passed


def log_of(environment: Environment, what: str) -> Path:
    return LOGS / f"{environment}-{what}.log"


def exchange_savepoints(environments: list[Environment]) -> list[bool]:
    """Let every environment write a savepoint and every environment restore it; print the table."""
    results = dict.fromkeys(product(environments, environments), False)
    program = ("-m", "tests.matrix.exchange")
    with tempfile.TemporaryDirectory(prefix="matrix-") as scratch:
        written: dict[Environment, list[str]] = {}
        for number, writer in enumerate(environments):
            first, second = BACKENDS if number % 2 == 0 else BACKENDS[::-1]
            if run(writer, "write", *program, "write", f"{scratch}/{writer}", first):
                written[writer] = [f"{scratch}/{writer}", second]
        savepoints = [argument for pair in written.values() for argument in pair]
        for reader in environments:
            run(reader, "restore", *program, "restore", *savepoints)
            restored = log_of(reader, "restore").read_text().splitlines()
            results |= {(writer, reader): f"{RESTORED} {pair[0]}" in restored for writer, pair in written.items()}
    print_table(environments, results)
    return list(results.values())


def print_table(environments: list[Environment], results: dict[tuple[Environment, Environment], bool]) -> None:
    """Print which environment (column) restored the savepoint of which (row)."""
    width = max(len(str(environment)) for environment in environments)
    print(" ".join(f"{name:<{width}}" for name in ["written by", *map(str, environments)]))
    for writer in environments:
        cells = ["restored" if results[writer, reader] else "FAILED" for reader in environments]
        print(" ".join(f"{cell:<{width}}" for cell in [str(writer), *cells]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
