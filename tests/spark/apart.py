"""A job of two pipelines without a connection, each in slots of its own: two regions.

Each is the job of `tally`. Beside the file sink, a sink without transactions notes every record that it is given, with
the attempt of its subtask: what a region does over and what it does not shows there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ekorn.common import Encoder, RestartStrategies, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSink
from ekorn.functions.sink_contract import SinkFunction
from tests.live_jobs import Held, limited
from tests.spark.checkpointed import checkpointed_environment
from tests.spark.tally import Tally, record

PARALLELISM = 2
NAMES = ("a", "b")  # the slots of the first are 0 and 1, those of the second 2 and 3


class Given(NamedTuple):
    """What the sinks without transactions of one pipeline were given."""

    times: Counter[int]  # by the number of the record
    attempts: frozenset[int]


class Note(SinkFunction):
    """Appends the attempt of its subtask and each record to a file of its own."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self, runtime_context):
        attempt, index = runtime_context.get_attempt_number(), runtime_context.get_index_of_this_subtask()
        self.attempt = attempt
        self.file = open(Path(self.folder) / f"{index}-{attempt}", "a", buffering=1)  # noqa: SIM115

    def invoke(self, value, context):
        self.file.write(f"{self.attempt},{value}\n")

    def close(self):
        self.file.close()


def build(
    records: int, per_second: float | Held, folder: Path, *, delay_ms: int = 700, execution: str = "continuous"
) -> StreamExecutionEnvironment:
    """Build the job, which writes below `folder`. A region that has failed waits for some time."""
    env = checkpointed_environment(
        folder, parallelism=PARALLELISM, interval_ms=200, restore=None, backend="hashmap", execution=execution
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, delay_ms))
    for name in NAMES:
        noted = folder / name / "noted"
        noted.mkdir(parents=True)
        source = DataGeneratorSource(record, records, limited(per_second))
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), f"numbers {name}").uid(f"numbers {name}")
        tallied = (
            numbers.slot_sharing_group(name)
            .key_by(lambda value: value[0])
            .process(Tally(), output_type=Types.STRING())
            .uid(f"tally {name}")
        )
        out = FileSink.for_row_format(str(folder / name / "out"), Encoder.simple_string_encoder()).build()
        tallied.sink_to(out).uid(f"files {name}")
        tallied.add_sink(Note(str(noted))).uid(f"note {name}")
    return env


def given(folder: Path, name: str) -> Given:
    """Return what the sinks without transactions of a pipeline have been given so far."""
    text = "".join(path.read_text() for path in (folder / name / "noted").iterdir())
    lines = [line.split(",") for line in text.splitlines()[:-1]]  # the last one may not be whole
    return Given(Counter(int(fields[2]) for fields in lines), frozenset(int(fields[0]) for fields in lines))
