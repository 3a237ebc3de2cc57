"""The command `python -m tests.pyflink.own_tests`."""

import argparse
import os
from collections import Counter

from tests.pyflink.own_tests.running import FAILED, pyflink_folder, run

parser = argparse.ArgumentParser(description="Run PyFlink's own tests on Ekorn.")
parser.add_argument("--sources", default=os.environ.get("FLINK_SOURCES", ""), help="a copy of Flink's sources")
parser.add_argument("-k", default="", help="run the tests whose names contain this")
parser.add_argument("-v", action="store_true", help="show the whole error of each test that fails")
arguments = parser.parse_args()
outcomes = run(pyflink_folder(arguments.sources), arguments.k, say=True)
for outcome in outcomes:
    if arguments.v and outcome.result == FAILED:
        print(f"\n=== {outcome.test}\n{outcome.text}")
print(dict(Counter(outcome.result for outcome in outcomes)))
