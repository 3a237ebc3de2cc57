"""A sink that sends batches and loses nothing when the job fails, because its buffer is operator state.

    python examples/buffering_sink.py [--seconds 6]

The sink buffers seven readings, then sends them as one file. A checkpoint keeps the buffered readings. Half-way the
job fails: it restores its last checkpoint with the buffer of that time, and reads the later readings again. A batch
that was sent before is sent again under the same name and with the same readings, so sending it twice does no harm.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from ekorn.common import RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import CheckpointedFunction, CheckpointListener, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import MapFunction, SinkFunction
from ekorn.datastream.state import ListStateDescriptor

BATCH = 7
PER_SECOND = 25
CHECKPOINT_MS = 250


class BufferingSink(SinkFunction, CheckpointedFunction):
    """Sends `threshold` readings at a time."""

    def __init__(self, threshold: int, outbox: str) -> None:
        self.threshold = threshold
        self.outbox = outbox
        self.buffered: list[int] = []

    def invoke(self, value, context):
        self.buffered.append(value)
        if len(self.buffered) == self.threshold:
            self.send()

    def send(self):
        """Write the batch to a file named after its first reading, and a line to the log."""
        Path(self.outbox, f"batch-{self.buffered[0]:05}.json").write_text(json.dumps(self.buffered))
        with Path(self.outbox, "log").open("a") as log:
            print(f"sent {self.buffered[0]} {self.buffered[-1]}", file=log)
        self.buffered.clear()

    def snapshot_state(self, context):
        """Replace the list, which holds the buffer of the last checkpoint."""
        self.waiting.clear()
        self.waiting.add_all(self.buffered)

    def initialize_state(self, context):
        descriptor = ListStateDescriptor("buffered-elements", Types.LONG())
        self.waiting = context.get_operator_state_store().get_list_state(descriptor)
        if context.is_restored():
            self.buffered.extend(self.waiting.get())
            with Path(self.outbox, "log").open("a") as log:
                print(f"restored {json.dumps(self.buffered)}", file=log)

    def finish(self):
        """Send the remaining readings at the end of the input."""
        if self.buffered:
            self.send()


class FailsOnce(MapFunction, CheckpointListener):
    """Fails once, half-way; a file records that it has failed."""

    def __init__(self, when: int, marker: str) -> None:
        self.when = when
        self.marker = Path(marker)
        self.checkpoints = 0

    def map(self, value):
        if value >= self.when and self.checkpoints and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError(f"failing on purpose at reading {value}")
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        self.checkpoints += 1


def batches(readings: int, per_second: int, checkpoint_ms: int, outbox: str) -> list[list[int]]:
    """Run the job and return the batches; the log in the folder tells what happened on the way."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.enable_checkpointing(checkpoint_ms)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    limit = RateLimiterStrategy.per_second(per_second)
    source = DataGeneratorSource(lambda n: n, readings, limit, Types.LONG())
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "readings")
    failing = stream.map(FailsOnce(readings // 2, str(Path(outbox, "failed"))), Types.LONG())
    failing.add_sink(BufferingSink(BATCH, outbox))
    env.execute("buffering sink")
    return [json.loads(file.read_text()) for file in sorted(Path(outbox).glob("batch-*"))]


def main(arguments: list[str]) -> int:
    """Print the log of the sink, and whether every reading is in exactly one batch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6)
    readings = int(parser.parse_args(arguments).seconds * PER_SECOND)
    with tempfile.TemporaryDirectory() as outbox:
        sent = batches(readings, PER_SECOND, CHECKPOINT_MS, outbox)
        show(Path(outbox, "log").read_text().splitlines())
    right = [reading for batch in sent for reading in batch] == list(range(readings))
    print(f"{readings} readings, {'each in exactly one batch' if right else 'SOME LOST OR TWICE'}")
    return 0 if right else 1


def show(log: list[str]) -> None:
    """Print a line for each batch that was sent or sent again, and for each restore."""
    sent = set()
    for line in log:
        what, _, rest = line.partition(" ")
        if what == "restored":
            print(f"  ↺  failed; restored with {len(json.loads(rest))} waiting: {rest}")
        else:
            first, last = map(int, rest.split())
            print(f"  {'■' * (last - first + 1):<{BATCH}}  {first:>4} to {last:>4}{'  again' if first in sent else ''}")
            sent.add(first)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
