"""A job that fails with one error again and again says so in its log."""

import logging

from ekorn.common import RestartStrategies
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.recovery.repeated_failures import RepeatedFailures
from ekorn.errors import JobExecutionError, UserFunctionError
from ekorn.testing.local_run import collect_locally


def failed(operator, message):
    return UserFunctionError(operator, None, 0, "1", "", "ValueError", message)


def test_failures_are_counted_while_they_stay_the_same():
    failures = RepeatedFailures()
    assert failures.advice_after(failed("map", "no")) == ""
    assert "ended 2 attempts in a row" in failures.advice_after(failed("map", "no"))
    assert "ended 3 attempts in a row" in failures.advice_after(failed("map", "no"))
    assert failures.advice_after(failed("map", "other")) == ""
    assert failures.advice_after(failed("filter", "other")) == ""
    assert failures.advice_after(OSError("lost")) == ""
    assert "ended 2 attempts in a row" in failures.advice_after(OSError("lost"))


def test_the_log_of_a_restarting_job_says_that_restarts_do_not_help(caplog):
    def raising(value):
        raise ValueError(value)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 0))
    with caplog.at_level(logging.WARNING, "ekorn"):
        try:
            collect_locally(env.from_collection([1]).map(raising))
        except JobExecutionError as error:
            assert error.restarts == 2
    restarts = [each.getMessage() for each in caplog.records if "restarts in" in each.getMessage()]
    assert len(restarts) == 2
    assert "in a row" not in restarts[0] and "the same error ended 2 attempts in a row" in restarts[1]
