"""RabbitMQ on Spark: slots that are killed around acknowledgements and during a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from ekorn.common import Configuration, RestartStrategies, SimpleStringSchema, Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.rabbitmq import RMQSource
from ekorn.datastream.state import ValueStateDescriptor
from tests.servers.rabbitmq import Queue, queue, rabbitmq_server

__all__ = ["queue", "rabbitmq_server"]

COUNT = 200


class UntilEnd(SimpleStringSchema):
    def is_end_of_stream(self, next_element):
        return next_element == "end"


class CountsItsKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


def test_killed_slots_lose_no_message_and_process_none_twice(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faults").mkdir()
    faults = ["rabbitmq-acknowledge:*:2:kill", "rabbitmq-acknowledged:*:2:kill", "state-written:1:3:kill"]
    monkeypatch.setenv("EKORN_FAULT", ",".join(faults))
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path / "faults"))
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    env.enable_checkpointing(50).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    queue.publish(*(str(number) for number in range(COUNT)), *("0", "1"), "end")  # two more, with ids of their own
    source = RMQSource(queue.server.config(prefetch_count=100), queue.name, True, UntilEnd())
    counted = env.add_source(source, "in").key_by(lambda text: text).process(CountsItsKey())
    with counted.execute_and_collect("from a queue") as records:
        found = sorted(records, key=lambda each: (int(each[0]), each[1]))
    assert len(list((tmp_path / "faults").iterdir())) == len(faults), "every slot was killed where it should be"
    assert found == sorted([*((str(n), 1) for n in range(COUNT)), ("0", 2), ("1", 2)], key=lambda e: (int(e[0]), e[1]))
    assert queue.count() == 0
