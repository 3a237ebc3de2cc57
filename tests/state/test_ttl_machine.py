"""Every kind of expiring state on the heap has what a dictionary of stamped values has."""

from typing import Any

from tests.state.ttl_machine import TtlMachine


def machine(kind):
    made: Any = type(f"Machine of {kind} state", (TtlMachine,), {"kind": kind})
    return made.TestCase


TestValue, TestList, TestMap = machine("value"), machine("list"), machine("map")
TestReducing, TestAggregating, TestFolding = machine("reducing"), machine("aggregating"), machine("folding")
