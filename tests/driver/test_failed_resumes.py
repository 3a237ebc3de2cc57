"""A job that is resumed and fails before its next checkpoint keeps what it was resumed from."""

from pathlib import Path

import pytest

from ekorn.common import Configuration, Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.errors import JobCancelledError, JobExecutionError
from ekorn.testing import on_local_engine
from tests.live_jobs import Held, generated, until


class Remembers(KeyedProcessFunction):
    """Keeps the last number of a key, or its text."""

    def __init__(self, type_info, fails):
        self._type, self._fails = type_info, fails

    def open(self, runtime_context):
        if self._fails:
            raise OSError("the model cannot be loaded")
        self._last = runtime_context.get_state(ValueStateDescriptor("last", self._type))

    def process_element(self, value, ctx):
        self._last.update(value)
        yield value


def start(folder, held, *, type_info, resume=False, fails=False):
    options = {"execution.checkpointing.dir": f"{folder}/checkpoints", "restart-strategy.type": "none"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
    env.set_parallelism(1).enable_checkpointing(10)
    if resume:
        env.resume()
    numbers = generated(env, 2, held)
    numbers.key_by(lambda value: 0).process(Remembers(type_info, fails)).uid("last").print()
    return env.execute_async("numbers")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"type_info": Types.STRING()}, "was BIGINT and is STRING|was LONG and is STRING"),
        ({"fails": True}, "the model cannot be loaded"),
    ],
)
def test_what_a_job_was_resumed_from_stays_if_it_fails_before_its_next_checkpoint(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    def completed():
        return list(tmp_path.glob("checkpoints/*/chk-*/_metadata"))

    held = Held(tmp_path, 1)
    with on_local_engine():
        job = start(tmp_path, held, type_info=Types.LONG())
        until(completed)
        job._handle.requests.suspend()
        with pytest.raises(JobCancelledError):
            job.get_job_execution_result().result()
        with pytest.raises(JobExecutionError, match=said):
            start(
                tmp_path, held, **{"type_info": Types.LONG(), "resume": True, **change}
            ).get_job_execution_result().result()
        assert completed()
        held.let_go()
        start(tmp_path, held, type_info=Types.LONG(), resume=True).get_job_execution_result().result()
        assert not completed()  # it has finished, and its retention counts again
