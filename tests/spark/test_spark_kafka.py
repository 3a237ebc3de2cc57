"""Spark on both sides of a job, with Kafka and with files, and its driver killed in between."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn.testing.kafka.jars import download, jars
from tests.connectors.data_frames.row_files import committed_rows
from tests.servers.kafka.broker import Broker, kafka
from tests.servers.kafka.jars import SPARK_FOLDER, SPARK_LIST
from tests.servers.kafka.topics import new_topic, produce
from tests.spark.kafka_tally import record, verify
from tests.spark.processes import run_driver
from tests.spark.spark_pipelines import LINES

__all__ = ["kafka"]

RECORDS = 2_000
FILES = 5


class Driver:
    """A process that runs the pipelines, and what it has printed."""

    def __init__(self, **told: object) -> None:
        self.process = run_driver("from tests.spark.spark_pipelines import main; main()", stdin=subprocess.PIPE)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        self.read = self.checkpoints = 0
        self.lines: list[str] = []
        self.log: list[str] = []

    def until(self, condition: Callable[[Driver], bool]) -> bool:
        """Read what the driver prints until the condition holds; return False if the driver ends before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("PROGRESS"):
                self.read, self.checkpoints = map(int, line.split()[1:])
            elif line.startswith("READ"):
                self.lines = json.loads(line.removeprefix("READ"))
            else:
                self.log.append(line)
            if condition(self):
                return True
        return False


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_kill_of_the_driver_between_two_sides_of_spark_loses_and_repeats_nothing(
    kafka: Broker, tmp_path: Path
) -> None:
    topics = (new_topic(kafka, 2), new_topic(kafka))
    for partition in range(2):
        produce(kafka, topics[0], [record(n) for n in range(RECORDS) if n % 2 == partition], partition)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        lines = [record(n) for n in range(number, RECORDS, FILES)]
        (tmp_path / "in" / f"{number}.txt").write_text("\n".join(lines) + "\n")
    libraries = download(SPARK_FOLDER, listed=SPARK_LIST)
    told = {
        "servers": kafka.servers,
        "topics": topics,
        "folder": str(tmp_path),
        "jars": [str(libraries / jar.name) for jar in jars(SPARK_LIST)],
    }
    drivers = [Driver(**told, last=False)]
    try:
        assert drivers[0].until(lambda d: d.read > RECORDS // 2 and d.checkpoints > 1), "".join(drivers[0].log[-60:])
        drivers[0].process.kill()
        drivers[0].process.wait()
        drivers.append(Driver(**told, last=True))
        drivers[1].until(lambda d: bool(d.lines))
        log = "".join(drivers[1].log[-60:])
        assert verify(RECORDS, drivers[1].lines) == [], log
        assert verify(RECORDS, [row.line for row in committed_rows(tmp_path / "out", LINES)]) == [], log
    finally:
        for driver in drivers:
            driver.process.kill()


COUNTS = """
import json, os
from tests.manual.blocks import DOCS, blocks_run_by
from tests.spark.spark_pipelines import session
from tests.spark.test_spark_kafka import CLICKS

told = json.loads(input())
page = DOCS / "connectors" / "spark.md"
spark = session(told["jars"])
os.chdir(told["folder"])
setup = DOCS.parent / "tests" / "manual" / "setups" / "connectors" / "spark.py"
names = {"__name__": "__main__"}
exec(compile(setup.read_text(), str(setup), "exec"), names)
(block,) = blocks_run_by(told["test"], page)
text = block.text.replace("localhost:9092", told["servers"]).replace('"clicks"', json.dumps(told["topic"]))
exec(compile(text, str(page), "exec"), names)
with names["counted"].execute_and_collect() as results:
    print("COUNTED", sorted(tuple(next(results)) for _ in CLICKS), flush=True)
"""
CLICKS = ["ada", "ben", "ada"]


@pytest.mark.soak  # a session of its own, with jars that are downloaded
def test_the_block_of_the_page_counts_the_clicks_of_a_topic(kafka: Broker, tmp_path: Path) -> None:
    topic = new_topic(kafka)
    produce(kafka, topic, CLICKS)
    libraries = download(SPARK_FOLDER, listed=SPARK_LIST)
    told = {
        "test": __file__,
        "servers": kafka.servers,
        "topic": topic,
        "folder": str(tmp_path),
        "jars": [str(libraries / jar.name) for jar in jars(SPARK_LIST)],
    }
    driver = run_driver(COUNTS, stdin=subprocess.PIPE)
    said, _ = driver.communicate(json.dumps(told) + "\n", timeout=200)
    assert "COUNTED [('ada', 1), ('ada', 2), ('ben', 1)]" in said, said[-6000:]
