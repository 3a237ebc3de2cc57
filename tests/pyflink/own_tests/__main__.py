"""The command `python -m tests.pyflink.own_tests`: ends with 1 if other tests fail than those in `expected`."""

import argparse
import importlib.util
import os
import sys
from collections import Counter

from tests.pyflink.own_tests.expected import EXPECTED
from tests.pyflink.own_tests.running import FAILED, PASSED, pyflink_folder, run

NEEDED = ["avro", "pytz", "pandas"]  # by the tests themselves
parser = argparse.ArgumentParser(description="Run PyFlink's own tests on Ekorn.")
parser.add_argument("--sources", default=os.environ.get("FLINK_SOURCES", ""), help="a copy of Flink's sources")
parser.add_argument("-k", default="", help="run the tests whose names contain this")
parser.add_argument("-v", action="store_true", help="show the whole error of each test that fails unexpectedly")
arguments = parser.parse_args()
missing = [package for package in NEEDED if importlib.util.find_spec(package) is None]
if missing:
    parser.error(f"PyFlink's tests import packages that are not installed: pip install {' '.join(missing)}")
outcomes = run(pyflink_folder(arguments.sources), arguments.k, say=True)
surprises = [
    outcome
    for outcome in outcomes
    if (outcome.result == FAILED and outcome.test not in EXPECTED)
    or (outcome.result == PASSED and outcome.test in EXPECTED)
]
print(dict(Counter(outcome.result for outcome in outcomes)))
for outcome in surprises:
    print(f"\nunexpected: {outcome.result} {outcome.test}  {outcome.why}\n{outcome.text if arguments.v else ''}")
sys.exit(1 if surprises or not outcomes else 0)
