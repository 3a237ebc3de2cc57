"""Harnesses and engines for tests of functions, pipelines and programs without Spark: see docs/testing.md."""

from tamias.testing.annotations import check_annotations
from tamias.testing.harness import Harness
from tamias.testing.harnesses import (
    BroadcastHarness,
    KeyedOneInputHarness,
    KeyedTwoInputHarness,
    OneInputHarness,
    TwoInputHarness,
)
from tamias.testing.inspection import RegisteredTimer
from tamias.testing.local_run import collect_locally, on_local_engine

__all__ = [
    "BroadcastHarness",
    "Harness",
    "KeyedOneInputHarness",
    "KeyedTwoInputHarness",
    "OneInputHarness",
    "RegisteredTimer",
    "TwoInputHarness",
    "check_annotations",
    "collect_locally",
    "on_local_engine",
]
