"""A slot is killed while requests are in flight: every record has its results once."""

import asyncio
import os
import signal

from ekorn.common import RestartStrategies, Time, Types, WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.testing.process_engine import on_process_engine
from tests.live_jobs import until

RECORDS = 900


class Slow(AsyncFunction):
    """Answers take longer than an epoch waits for them: requests are always in flight. The last wait for the kill."""

    def __init__(self, killed):
        self._killed = killed

    async def async_invoke(self, value):
        await asyncio.sleep(0.08 + value % 7 / 100)
        while value > RECORDS - 50 and not self._killed.exists():
            await asyncio.sleep(0.01)
        return [value, -value]


def test_a_killed_slot_loses_and_repeats_nothing_of_what_was_in_flight(tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    env.enable_checkpointing(50)
    source = DataGeneratorSource(lambda n: n + 1, RECORDS, RateLimiterStrategy.per_second(1_500))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    asked = AsyncDataStream.unordered_wait(numbers.rebalance(), Slow(tmp_path / "killed"), Time.seconds(60), 500)
    with on_process_engine():
        records = asked.execute_and_collect()
        client = records.job_client
        until(lambda: client.get_progress().checkpoints_completed >= 3)
        os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
        (tmp_path / "killed").touch()
        found = list(records)
    assert client.get_progress().status is JobStatus.FINISHED
    assert client.get_progress().restarts >= 1
    assert sorted(found) == sorted(range(-RECORDS, 0)) + list(range(1, RECORDS + 1))
