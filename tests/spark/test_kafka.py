"""From Kafka to Kafka on Spark: `kill -9` of a slot and of the driver, and secrets that Spark does not see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.servers.kafka.broker import PASSWORD, USER, Broker, kafka
from tests.servers.kafka.topics import new_topic, produce, values, wait_until_nothing_is_open
from tests.spark import recording_daemon
from tests.spark.kafka_tally import PARTITIONS, record, verify
from tests.spark.processes import marked_processes, run_driver, slots_end

__all__ = ["kafka"]

RECORDS = 4_000

DRIVER = """
import json, sys, time
from pathlib import Path
from tests.spark.kafka_tally import build
told = json.loads(input())
env = build(
    told["servers"], tuple(told["topics"]), told["records"], Path(told["folder"]),
    parallelism=told["parallelism"], restore=told["restore"], secrets=told["secrets"], settings=told["settings"],
)
client = env.execute_async("kafka")
while not client.get_job_status().result().is_globally_terminal_state():
    p = client.get_progress()
    print("PROGRESS", json.dumps([p.records_read, p.checkpoints_completed, list(p.slot_pids)]), flush=True)
    time.sleep(0.05)
client.get_job_execution_result().result()
"""


class Driver:
    """A driver process, and the progress that it has printed."""

    def __init__(self, variables: dict[str, str] | None, **told: object) -> None:
        self.process = run_driver(DRIVER, stdin=subprocess.PIPE, env=variables)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")  # not an argument: command lines are for all to see
        self.process.stdin.flush()
        self.read = self.checkpoints = 0
        self.slots: list[int] = []
        self.log: list[str] = []

    def until(self, condition: Callable[[Driver], bool]) -> bool:
        """Read progress until the condition holds; return False if the driver ends before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("PROGRESS"):
                self.read, self.checkpoints, self.slots = json.loads(line.removeprefix("PROGRESS"))
            else:
                self.log.append(line)
            if condition(self):
                return True
        return False

    def finish(self) -> None:
        self.until(lambda driver: False)
        assert self.process.wait(30) == 0, "".join(self.log[-40:])


def write_slowly(kafka: Broker, topic: str, begun: threading.Event) -> None:
    """Write the records over some seconds, once the job reads."""
    begun.wait(120)
    for first in range(0, RECORDS, RECORDS // 40):
        numbers = range(first, first + RECORDS // 40)
        for partition in range(PARTITIONS):
            produce(kafka, topic, [record(n) for n in numbers if n % PARTITIONS == partition], partition)
        time.sleep(0.1)


def newest_checkpoint(folder: Path) -> str:
    done = [path.parent for path in (folder / "checkpoints").glob("*/chk-*/_metadata")]
    return str(max(done, key=lambda path: int(path.name.removeprefix("chk-"))))


def test_kills_of_a_slot_and_of_the_driver_lose_and_repeat_nothing_and_spark_sees_no_secrets(
    kafka: Broker,
    tmp_path: Path,
) -> None:
    topics = (new_topic(kafka, PARTITIONS), new_topic(kafka))
    secrets = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(kafka.certificate),
    }
    told: dict[str, object] = {
        "servers": kafka.secured,
        "topics": topics,
        "records": RECORDS,
        "folder": str(tmp_path),
        "secrets": secrets,
    }
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    told["settings"] = {"spark.python.daemon.module": "tests.spark.recording_daemon"}
    begun = threading.Event()
    writer = threading.Thread(target=write_slowly, args=(kafka, topics[0], begun))
    writer.start()
    drivers = [Driver({recording_daemon.FOLDER: str(recorded)}, **told, parallelism=3, restore=None)]
    try:
        assert drivers[0].until(lambda d: d.checkpoints > 0 and bool(d.slots)), "".join(drivers[0].log[-40:])
        begun.set()
        assert drivers[0].until(lambda d: d.read > 500)
        assert not [command for command, told_ in marked_processes() if PASSWORD.encode() in told_]
        os.kill(drivers[0].slots[0], signal.SIGKILL)
        checkpoints = drivers[0].checkpoints
        assert drivers[0].until(lambda d: d.checkpoints > checkpoints + 1 and d.read > 1_500)
        drivers[0].process.kill()
        drivers[0].process.wait()
        assert slots_end(drivers[0].slots)
        drivers.append(Driver(None, **(told | {"settings": {}}), parallelism=2, restore=newest_checkpoint(tmp_path)))
        drivers[1].finish()
        wait_until_nothing_is_open(kafka.servers, topics[1])
        assert verify(RECORDS, values(kafka, topics[1])) == []
        assert sorted(set(values(kafka, topics[1], "read_uncommitted"))) == sorted(values(kafka, topics[1]))
        assert b"".join(path.read_bytes() for path in recorded.iterdir()).count(b"EpochOrder") > 10
        held = [path for path in tmp_path.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
        assert held == []  # neither tasks nor checkpoints hold the password
        assert PASSWORD not in "".join(drivers[0].log + drivers[1].log)
    finally:
        begun.set()
        writer.join()
        for driver in drivers:
            driver.process.kill()  # one that a failed check left behind; the others have ended
