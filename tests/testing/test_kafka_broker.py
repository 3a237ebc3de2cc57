"""A broker of Kafka for tests and first steps: it starts as the manual shows, keeps its data if asked."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ekorn.errors import ConfigurationError
from ekorn.testing.kafka import kafka_broker
from ekorn.testing.kafka.jars import broker_version, download
from tests.manual.blocks import DOCS, ROOT, blocks_run_by
from tests.manual.page_run import commands_of, same
from tests.servers.kafka.jars import FOLDER
from tests.servers.kafka.topics import lines_by_partition
from tests.servers.ports import free_ports

CHAPTER = DOCS / "tutorial" / "8-fraud_on_kafka.md"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the broker find the jars that the tests have downloaded."""
    (tmp_path / "cache" / "ekorn").mkdir(parents=True)
    (tmp_path / "cache" / "ekorn" / f"kafka-{broker_version()}").symlink_to(download(FOLDER))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.long
@pytest.mark.usefixtures("cache")
def test_a_broker_starts_as_the_tutorial_shows_and_keeps_its_data(tmp_path: Path) -> None:
    (block,) = blocks_run_by(__file__, CHAPTER)
    ((command, shown),) = commands_of(block.text)
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, *command.split()[1:], "--port", str(port), "--folder", str(tmp_path / "kafka")],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.readline() + process.stdout.readline()
    assert same(shown.replace("9092", str(port)), said), said
    producer = Producer({"bootstrap.servers": f"localhost:{port}"})
    producer.produce("nuts", "acorn")
    assert producer.flush(60) == 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    with kafka_broker(folder=tmp_path / "kafka") as address:  # on another port
        assert lines_by_partition(address, "nuts") == [["acorn"]]


def test_a_port_that_is_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} of localhost is in use"), kafka_broker(port):
            pass


def test_a_machine_without_java_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="Java 17 or newer"), kafka_broker():
        pass
