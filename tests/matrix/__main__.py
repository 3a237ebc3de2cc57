"""Run the tests on every Python and Spark version, and restore the savepoints of each on each.

    python -m tests.matrix                                 everything: hours
    python -m tests.matrix --tests fast --python 3.12 --python 3.13 --spark 4.3
    python -m tests.matrix --tests none --python 3.11 --spark 4.1 --spark 4.2 --spark 4.3

Prints a line a run and a table of who restored what. Logs go to `.venvs/matrix-logs/`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from tests.matrix.environments import ROOT, Environment

PYTHONS = ("3.11", "3.12", "3.13")
SPARKS = ("4.1", "4.2", "4.3")
BACKENDS = ("hashmap", "rocksdb")  # a savepoint of one is restored in the other
LOGS = ROOT / ".venvs" / "matrix-logs"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
FAST = (*PYTEST, "-n", "2", "-m", "not soak and not spark and not long", "--hypothesis-profile=fast", "tests")


def main() -> int:
    """Run what the command line asks for; return 1 when anything failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.matrix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", metavar="X.Y", help=f"default: {', '.join(PYTHONS)}")
    parser.add_argument("--spark", action="append", metavar="X.Y", help=f"default: {', '.join(SPARKS)}")
    parser.add_argument(
        "--tests",
        choices=["all", "fast", "none"],
        default="all",
        help="fast: those without Spark, once per Python; all: those of tests/spark in every environment too",
    )
    given = parser.parse_args()
    pythons, sparks = given.python or PYTHONS, given.spark or SPARKS
    environments = [Environment(python, spark) for python, spark in product(pythons, sparks)]
    LOGS.mkdir(parents=True, exist_ok=True)
    for environment in environments:
        environment.prepare()
    results = []
    if given.tests != "none":
        results += [run(environment, "fast", *FAST) for environment in environments if environment.spark == sparks[-1]]
    if given.tests == "all":
        results += [run(environment, "spark", *PYTEST, "tests/spark") for environment in environments]
    results += exchange_savepoints(environments)
    return 0 if all(results) else 1


def run(environment: Environment, what: str, *arguments: str) -> bool:
    """Run one program in one environment and print how it went."""
    log = LOGS / f"{environment}-{what.replace(' ', '-')}.log"
    started = time.monotonic()
    passed = environment.run(*arguments, log=log)
    took = f"{time.monotonic() - started:.0f} s"
    print(
        f"{environment}: {what}: {'passed' if passed else f'FAILED, see {log.relative_to(ROOT)}'} ({took})", flush=True
    )
    return passed


def exchange_savepoints(environments: list[Environment]) -> list[bool]:
    """Let every environment write a savepoint and every environment restore it; print the table."""
    results: dict[tuple[Environment, Environment], bool] = {}
    program = ("-m", "tests.matrix.exchange")
    with tempfile.TemporaryDirectory(prefix="matrix-") as scratch:
        for number, writer in enumerate(environments):
            first, second = BACKENDS if number % 2 == 0 else BACKENDS[::-1]
            place, kept = Path(scratch, str(writer)), Path(scratch, f"{writer}-kept")
            if not run(writer, f"write {first}", *program, "write", str(place), first):
                results |= {(writer, reader): False for reader in environments}
                continue
            place.rename(kept)
            for reader in environments:
                # The sink's state names its part files by absolute path: every restore finds them in the same place.
                shutil.copytree(kept, place)
                what = f"restore {second} from {writer}"
                results[writer, reader] = run(reader, what, *program, "restore", str(place), second)
                shutil.rmtree(place)
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
