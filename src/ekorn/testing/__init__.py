"""Harnesses and engines for tests of functions, pipelines and programs without Spark: see docs/testing.md."""

from ekorn.testing.annotations import check_annotations
from ekorn.testing.batch_harness import KeyedBatchHarness
from ekorn.testing.harness import Harness
from ekorn.testing.harnesses import (
    BroadcastHarness,
    KeyedOneInputHarness,
    KeyedTwoInputHarness,
    OneInputHarness,
    TwoInputHarness,
)
from ekorn.testing.inspection import RegisteredTimer
from ekorn.testing.local_run import collect_locally, on_local_engine

__all__ = [
    "BroadcastHarness",
    "Harness",
    "KeyedBatchHarness",
    "KeyedOneInputHarness",
    "KeyedTwoInputHarness",
    "OneInputHarness",
    "RegisteredTimer",
    "TwoInputHarness",
    "check_annotations",
    "collect_locally",
    "on_local_engine",
]
