"""Nexmark's queries on Ekorn and embedded Spark: how long they take, or their answers.

python -m benchmarks.nexmark.jobs rates FOLDER columns q0,q1 [--turns 2] [--api epochs]
python -m benchmarks.nexmark.jobs answers FOLDER rows q0,q1 --into FOLDER
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.ekorn_jobs import environment
from benchmarks.nexmark import column_queries, row_queries
from benchmarks.nexmark.answers import last_of_keys, normal
from benchmarks.nexmark.streams import Discard, Events, Form
from benchmarks.peers.measuring import tell

QUERIES = {"rows": row_queries.QUERIES, "columns": column_queries.QUERIES}


def seconds_of(folder: Path, form: Form, query: str, api: str) -> float:
    """Run a query whose results are dropped."""
    env = environment(2, api)
    QUERIES[form][query](Events(env, folder, form)).sink_to(Discard())
    started = time.perf_counter()
    env.execute(query)
    return time.perf_counter() - started


def write_answer(folder: Path, form: Form, query: str, api: str, into: Path) -> int:
    """Write the rows that hold at the end, and how often they occur; return their number."""
    with QUERIES[form][query](Events(environment(2, api), folder, form)).execute_and_collect() as results:
        found = last_of_keys(query, normal(results))
    (into / f"{query}.json").write_text(json.dumps([[*row, count] for row, count in found.items()]))
    return found.total()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rates", "answers"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("form", choices=tuple(QUERIES))
    parser.add_argument("queries")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--api", choices=("continuous", "epochs"), default="continuous")
    parser.add_argument("--into", type=Path)
    given = parser.parse_args()
    for query in given.queries.split(","):
        if given.what == "rates":
            seconds = [seconds_of(given.folder, given.form, query, given.api) for _ in range(given.turns)]
            tell({"query": query, "seconds": seconds})
        else:
            rows = write_answer(given.folder, given.form, query, given.api, given.into)
            tell({"query": query, "rows": rows})


if __name__ == "__main__":
    main()
