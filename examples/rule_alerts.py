"""Alerts by rules that change while the job runs: broadcast state.

    python examples/rule_alerts.py

Readings of machines stream in, keyed by machine. Rules ("alert above 80 degrees") are a second stream that every
subtask gets. An alert names the rule and how many readings of the machine in a row broke it.
"""

from __future__ import annotations

import math

from ekorn.common import Types
from ekorn.datastream import DataStream, KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import MapStateDescriptor

READINGS = 60
MACHINES = ("press", "oven")
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
IN_A_ROW = MapStateDescriptor("in a row", Types.STRING(), Types.LONG())


def reading(number: int) -> tuple[str, int, int]:
    """Return machine, minute and degrees of a reading."""
    machine, minute = MACHINES[number % 2], number // 2
    return machine, minute, round(70 + 20 * math.sin(minute / 4 + (2 if machine == "oven" else 0)))


class Check(KeyedBroadcastProcessFunction):
    """Compares readings with the limits that hold now."""

    def open(self, runtime_context):
        self.in_a_row = runtime_context.get_map_state(IN_A_ROW)

    def process_element(self, value, ctx):
        machine, minute, degrees = value
        for name, limit in ctx.get_broadcast_state(LIMITS).items():
            if degrees <= limit:
                self.in_a_row.remove(name)
                continue
            count = (self.in_a_row.get(name) or 0) + 1
            self.in_a_row.put(name, count)
            yield machine, minute, name, degrees, count

    def process_broadcast_element(self, value, ctx):
        name, limit = value
        if limit is None:
            ctx.get_broadcast_state(LIMITS).remove(name)
            ctx.apply_to_keyed_state(IN_A_ROW, lambda machine, counts: counts.remove(name))
        else:
            ctx.get_broadcast_state(LIMITS).put(name, limit)


def alerts(readings: DataStream, rules: DataStream) -> DataStream:
    """Draw the job: alerts as machine, minute, rule, degrees and how many in a row."""
    by_machine = readings.key_by(lambda value: value[0])
    return by_machine.connect(rules.broadcast(LIMITS)).process(Check())


def found_alerts() -> list[tuple[str, int, str, int, int]]:
    """Run the job over all readings, with one rule, and return the alerts."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    rules = env.from_collection([("hot", 80)])
    readings = env.from_collection([reading(number) for number in range(READINGS)])
    with alerts(readings, rules).execute_and_collect("rule alerts") as results:
        return sorted(results, key=lambda alert: (alert[0], alert[1]))


def main() -> None:
    """Draw a line for each machine: a dot for a reading, a digit where an alert was raised."""
    found = {(machine, minute): count for machine, minute, _, _, count in found_alerts()}
    for machine in MACHINES:
        line = "".join(str(found.get((machine, minute), "."))[-1] for minute in range(READINGS // 2))
        print(f"{machine:<6} {line}")
    print(f"{len(found)} alerts: the digit counts readings above 80 degrees in a row")
    print("rules are records: send ('hot', 85) or ('hot', None) and the next readings are judged by it")


if __name__ == "__main__":
    main()
