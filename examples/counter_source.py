"""A source with a checkpointed offset: counters that continue after a failure without a gap or a repetition.

    python examples/counter_source.py [--seconds 6]

Three counters count, each in its own subtask. A checkpoint keeps the offset of each counter, as a list of one number
(`ListCheckpointed`). A counter emits a number and advances its offset under the checkpoint lock, so no checkpoint falls
between the two. Half-way the job fails. The counters and the state of the function that checks them are restored from
the last checkpoint: the function sees every number once and in order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from ekorn.common import RestartStrategies, Types
from ekorn.datastream import CheckpointListener, ListCheckpointed, StreamExecutionEnvironment
from ekorn.datastream.functions import KeyedProcessFunction, ParallelSourceFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor

COUNTERS = 3
PER_SECOND = 60


class CounterSource(ParallelSourceFunction, ListCheckpointed):
    """Counts from 0 to an end, one number after the other."""

    def __init__(self, end: int, pause_s: float) -> None:
        self.end = end
        self.pause_s = pause_s
        self.offset = 0
        self.running = True

    def open(self, runtime_context):
        self.counter = runtime_context.get_index_of_this_subtask()

    def run(self, ctx):
        while self.running and self.offset < self.end:
            with ctx.get_checkpoint_lock():
                ctx.collect((self.counter, self.offset))
                self.offset += 1
            time.sleep(self.pause_s)

    def cancel(self):
        self.running = False

    def snapshot_state(self, checkpoint_id, timestamp):
        """Return the offset as a list of one element, because one number cannot be split."""
        return [self.offset]

    def restore_state(self, state):
        for offset in state:
            self.offset = offset


class Check(KeyedProcessFunction, CheckpointListener):
    """Emits for each counter its end, the number of wrong numbers, and where it continued after a restart."""

    def __init__(self, end: int, marker: str) -> None:
        self.end = end
        self.marker = Path(marker)
        self.checkpoints = 0

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()
        self.expected = runtime_context.get_state(ValueStateDescriptor("expected", Types.LONG(), 0))
        self.wrong = runtime_context.get_state(ValueStateDescriptor("wrong", Types.LONG(), 0))
        self.went_on = runtime_context.get_list_state(ListStateDescriptor("went on", Types.TUPLE([Types.LONG()] * 2)))

    def process_element(self, value, ctx):
        counter, number = value
        self.fail_once(number)
        if self.attempt and self.attempt not in {attempt for attempt, _ in self.went_on}:
            self.went_on.add((self.attempt, number))
        if number != self.expected.value():
            self.wrong.update(self.wrong.value() + 1)
        self.expected.update(number + 1)
        if number == self.end - 1:
            yield counter, number + 1, self.wrong.value(), [at for _, at in self.went_on]

    def fail_once(self, number: int) -> None:
        """Fail half-way, after a checkpoint; a file records that it has happened."""
        if number >= self.end // 2 and self.checkpoints and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError(f"failing on purpose at number {number}")

    def notify_checkpoint_complete(self, checkpoint_id):
        self.checkpoints += 1


def counted(end: int, pause_s: float, checkpoint_ms: int) -> list[tuple[int, int, int, list[int]]]:
    """Run the job and return the results of `Check` for all counters."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(COUNTERS)
    env.enable_checkpointing(checkpoint_ms)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    with tempfile.TemporaryDirectory() as folder:
        numbers = env.add_source(CounterSource(end, pause_s), "counters")
        checked = numbers.key_by(lambda number: number[0]).process(Check(end, str(Path(folder, "failed"))))
        with checked.execute_and_collect("counter source") as results:
            return sorted(results)


def main(arguments: list[str]) -> int:
    """Draw a line for each counter, with a mark where it continued after the failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6)
    end = int(parser.parse_args(arguments).seconds * PER_SECOND)
    results = counted(end, 1 / PER_SECOND, 300)
    for counter, total, wrong, went_on in results:
        line = ["━"] * 60
        for at in went_on:
            line[at * 60 // end] = "↺"
        where = ", ".join(map(str, went_on)) or "-"
        print(f"  counter {counter}  {''.join(line)}  {total} numbers, {wrong} wrong; went on at {where}")
    right = [result[:3] for result in results] == [(counter, end, 0) for counter in range(COUNTERS)]
    print("every number came once and in order" if right else "SOME NUMBERS WERE LOST, OR CAME TWICE")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
