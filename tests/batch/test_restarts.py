"""A DataSet program that fails is run again as the restart strategy says."""

import itertools

import pytest

from ekorn.clock import SystemClock
from ekorn.common import Configuration, RestartStrategies, Time
from ekorn.dataset import ExecutionEnvironment
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing import collect_locally


class FailsAtFirst:
    """Fails as often as it is told, whatever process or object calls it."""

    def __init__(self, notes, times, error=OSError):
        self.notes = notes
        self.times = times
        self.error = error

    def __call__(self, value):
        with open(self.notes, "a+") as file:
            file.write("x")
            file.seek(0)
            if len(file.read()) <= self.times:
                raise self.error("not yet")
        return value


@pytest.fixture
def env():
    return ExecutionEnvironment().set_parallelism(1)


def test_a_program_succeeds_at_last_and_leaves_one_result(env, tmp_path):
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 0))
    assert collect_locally(env.from_elements(7).map(FailsAtFirst(tmp_path / "notes", 2))) == [7]
    assert (tmp_path / "notes").read_text() == "xxx"


def test_the_strategy_of_the_configuration_counts(tmp_path):
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "1")
    configuration.set_string("restart-strategy.fixed-delay.delay", "0 ms")
    env = ExecutionEnvironment(configuration).set_parallelism(1)
    with pytest.raises(JobExecutionError, match="1 restart"):
        collect_locally(env.from_elements(7).map(FailsAtFirst(tmp_path / "notes", 9)))
    assert (tmp_path / "notes").read_text() == "xx"


def test_without_a_strategy_and_for_errors_of_the_program_there_is_one_attempt(env, tmp_path):
    with pytest.raises(JobExecutionError):
        collect_locally(env.from_elements(7).map(FailsAtFirst(tmp_path / "once", 1)))
    assert (tmp_path / "once").read_text() == "x"
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    with pytest.raises(JobExecutionError):
        collect_locally(env.from_elements(7).map(FailsAtFirst(tmp_path / "never", 9, InvalidProgramError)))
    assert (tmp_path / "never").read_text() == "x"


def test_what_is_no_strategy_is_refused(env):
    with pytest.raises(TypeError, match="RestartStrategies"):
        env.set_restart_strategy("fixed-delay")


def test_a_restart_does_not_wait_for_a_clock_that_is_set_back(env, tmp_path, monkeypatch):
    """An exponential delay is counted from the last planned restart, which would be an hour ahead."""
    hours_ms = itertools.count(1_800_000_000_000, -3_600_000)
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: next(hours_ms))
    delay = Time.milliseconds(1)
    env.set_restart_strategy(
        RestartStrategies.exponential_delay_restart(delay, Time.milliseconds(2), 2.0, Time.hours(2), 0.0)
    )
    began_s = SystemClock().monotonic()
    assert collect_locally(env.from_elements(7).map(FailsAtFirst(tmp_path / "notes", 3))) == [7]
    assert SystemClock().monotonic() - began_s < 1800
