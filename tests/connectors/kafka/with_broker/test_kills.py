"""`KafkaSink` with transactions in slot processes of which one is killed at each named step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connectors.kafka.with_broker.sinks import writing
from tests.connectors.killed_slots import COMMIT_STEPS, RECORDS, run_with_kills
from tests.servers.kafka.topics import new_topic, values, wait_until_nothing_is_open

STEPS = {"kafka-flushed": "kafka-flushed:*:1:kill", "kafka-prepared": "kafka-prepared:*:1:kill", **COMMIT_STEPS}


@pytest.mark.parametrize("step", STEPS)
def test_a_slot_that_is_killed_at_a_step_loses_no_record_and_writes_none_twice(
    step: str, kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(kafka)
    sink = writing(kafka, topic).build()
    run_with_kills(STEPS[step], tmp_path, monkeypatch, lambda stream: stream.map(str).sink_to(sink))
    wait_until_nothing_is_open(kafka.servers, topic)
    assert sorted(map(int, values(kafka, topic))) == list(range(RECORDS))
