"""A job that fails with one error again and again says so in its log."""

import logging
import re

import pytest

from ekorn.common import Configuration, RestartStrategies
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.recovery.repeated_failures import RepeatedFailures
from ekorn.errors import EpochStalledError, JobExecutionError, SlotLostError, SlotMemoryError, UserFunctionError
from ekorn.testing.local_run import collect_locally


def failed(operator, message, *, line=None, record="1", kind="ValueError", outside=False):
    return UserFunctionError(operator, None, 0, record, "", kind, message, True, None, line, outside)


def test_failures_are_counted_while_they_stay_the_same():
    failures = RepeatedFailures()
    assert failures.advice_after(failed("map", "no")) == ""
    assert failures.advice_after(failed("map", "no")) == "; the same failure ended 2 attempts in a row"
    assert failures.advice_after(failed("map", "no")) == "; the same failure ended 3 attempts in a row"
    assert failures.advice_after(failed("map", "other")) == ""
    assert failures.advice_after(failed("map", "other", record="2")) == ""
    assert failures.advice_after(failed("filter", "other")) == ""
    assert failures.advice_after(OSError("lost")) == ""
    assert "ended 2 attempts in a row" in failures.advice_after(OSError("lost"))


def test_the_third_failure_at_one_line_is_the_program_s_whatever_the_record():
    failures = RepeatedFailures()
    assert failures.advice_after(failed("price", "no 1", line="price() at shop.py:7", record="1")) == ""
    assert "fault" not in failures.advice_after(failed("price", "no 2", line="price() at shop.py:7", record="2"))
    assert failures.advice_after(failed("price", "no 3", line="price() at shop.py:7", record="3")) == (
        "; the same failure ended 3 attempts in a row: the program is at fault, not the machine, so restarts do not "
        "help. The line is price() at shop.py:7. End the job (Ctrl-C keeps its checkpoints), correct the function and "
        "start the program again with ekorn run --resume; set ekorn.on-record-error to skip to leave such records out; "
        "or set restart-strategy.type to none to end the job at its first failure"
    )
    assert failures.advice_after(failed("price", "no", line="price() at shop.py:9")) == ""


def test_the_advice_is_given_in_full_once():
    failures = RepeatedFailures()
    bug = failed("price", "no", line="price() at shop.py:7")
    said = [failures.advice_after(bug) for _ in range(6)]
    assert [("set restart-strategy.type" in each) for each in said] == [False, False, True, False, False, False]
    assert said[3] == (
        "; the same failure ended 4 attempts in a row: restarts do not help until price() at shop.py:7 is corrected"
    )
    failures.advice_after(OSError("lost"))
    again = [failures.advice_after(bug) for _ in range(4)]
    assert again == said[:4]


def test_too_little_memory_is_explained_once():
    failures = RepeatedFailures()
    said = [failures.advice_after(SlotMemoryError(0, "it used 2 gb", "ekorn.slot.memory")) for _ in range(4)]
    assert "start the program again" in said[2]
    assert said[3].endswith("4 attempts in a row: restarts do not help until ekorn.slot.memory is raised")


def test_without_a_record_nothing_can_be_skipped():
    failures = RepeatedFailures()
    said = [failures.advice_after(failed("alarm", "no", line="on_timer() at a.py:3", record=None)) for _ in range(3)]
    assert "the program is at fault" in said[2] and "on-record-error" not in said[2]


@pytest.mark.parametrize("between", [SlotLostError(0, "exit code -9"), EpochStalledError(3, 60.0, [])])
def test_a_failure_of_the_machine_between_two_bugs_is_not_one_of_them(between):
    failures = RepeatedFailures()
    bug = failed("price", "no", line="price() at shop.py:7")
    assert [failures.advice_after(each) for each in (bug, bug, between)][2] == ""
    assert failures.advice_after(bug) == ""


def test_a_lost_slot_is_never_the_program_s_fault():
    failures = RepeatedFailures()
    said = [failures.advice_after(SlotLostError(0, "exit code -9")) for _ in range(5)]
    assert said[4] == "; the same failure ended 5 attempts in a row"


def test_an_exception_of_a_service_or_a_disk_blames_what_the_line_uses():
    failures = RepeatedFailures()
    lost = failed("look up", "refused", kind="ConnectionRefusedError", line="ask() at shop.py:9", outside=True)
    assert [failures.advice_after(lost) for _ in range(3)][2] == (
        "; the same failure ended 3 attempts in a row: ask() at shop.py:9 does not get what it asks for; look at the "
        "file, service or memory that it uses"
    )


def test_the_log_of_a_restarting_job_says_that_restarts_do_not_help(caplog):
    def raising(value):
        raise ValueError(value)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    with caplog.at_level(logging.WARNING, "ekorn"):
        try:
            collect_locally(env.from_collection([1]).map(raising))
        except JobExecutionError as error:
            assert error.restarts == 3
    restarts = [each.getMessage() for each in caplog.records if "restarts in" in each.getMessage()]
    assert len(restarts) == 3
    assert "in a row" not in restarts[0] and restarts[1].endswith("the same failure ended 2 attempts in a row")
    line = f"raising() at {__file__}:{raising.__code__.co_firstlineno + 1}"
    assert f"the program is at fault, not the machine, so restarts do not help. The line is {line}." in restarts[2]


def test_a_job_with_checkpoints_waits_longer_before_each_restart_without_being_told_to(caplog):
    def raising(value):
        raise ValueError(value)

    delays = {"initial-backoff": "4 ms", "backoff-multiplier": "2", "jitter-factor": "0", "max-backoff": "10 ms"}
    limits = {"attempts-before-reset-backoff": "4", "reset-backoff-threshold": "1 h"}
    keys = {f"restart-strategy.exponential-delay.{name}": value for name, value in (delays | limits).items()}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(keys)).set_parallelism(1)
    env.enable_checkpointing(1000)  # no strategy is named
    with caplog.at_level(logging.WARNING, "ekorn"), pytest.raises(JobExecutionError) as raised:
        collect_locally(env.from_collection([1]).map(raising))
    assert raised.value.restarts == 4
    assert re.findall(r"restarts in (\d+) ms", caplog.text) == ["4", "8", "10", "10"]
