"""The error of a job has the source lines that only the driver knows."""

from __future__ import annotations

import linecache
from typing import Any, cast

import pytest

from ekorn.driver.recovery.failures import job_error
from ekorn.driver.statistics.failure_history import FailureHistory
from ekorn.errors import DeploymentError, UserFunctionError
from ekorn.storage.long_texts import LONGEST

TRACEBACK = """Traceback (most recent call last):
  File "<cell 1>", line 2, in price
  File "other.py", line 7, in total
    return a / b
  File "<cell 9>", line 1, in gone
ZeroDivisionError: division by zero"""


def test_the_lines_of_a_notebook_s_cells_are_added_to_the_traceback_of_a_slot():
    linecache.cache["<cell 1>"] = (30, None, ["def price(order):\n", "    return total(order)\n"], "<cell 1>")
    error = UserFunctionError("price", None, 0, "1", TRACEBACK, "ZeroDivisionError", "division by zero")
    failed = job_error("prices", error, log_path=None, restarts=0, refusal=None)
    assert str(failed.user_traceback).splitlines()[1:5] == [
        '  File "<cell 1>", line 2, in price',
        "    return total(order)",
        '  File "other.py", line 7, in total',
        "    return a / b",
    ]
    assert str(failed.user_traceback).splitlines()[5:] == TRACEBACK.splitlines()[4:]


@pytest.mark.parametrize("error", [DeploymentError("x" * 1_000_000), OSError("x" * 1_000_000)])
def test_the_text_of_a_failure_that_is_no_user_s_exception_is_cut_too(error: Exception) -> None:
    history = FailureHistory(cast(Any, None))
    history.add(error, frozenset(), None, 0)
    failed = job_error("prices", error, log_path=None, restarts=0, refusal=None)
    for text in (history.failures[0].trace, str(failed)):
        assert "characters are left out" in text and len(text) < LONGEST + 1000


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_a_failure_whose_text_cannot_be_made_is_named_by_its_class() -> None:
    assert "Silent" in str(job_error("prices", Silent(), log_path=None, restarts=0, refusal=None))


@pytest.mark.parametrize(
    ("error", "restarts", "is_said"),
    [
        (UserFunctionError("map", None, 0, "1", "", "KeyError", "'price'"), 0, False),
        (UserFunctionError("map", None, 0, "1", "", "OSError", "gone", reaches_outside=True), 0, True),
        (UserFunctionError("map", None, 0, "1", "", "KeyError", "'price'"), 2, True),
        (OSError("gone"), 0, True),
    ],
)
def test_why_a_job_is_not_restarted_is_said_where_a_restart_might_help(
    error: Exception, restarts: int, is_said: bool
) -> None:
    failed = job_error("prices", error, log_path=None, restarts=restarts, refusal="set restart-strategy.type")
    assert ("set restart-strategy.type" in str(failed)) is is_said
