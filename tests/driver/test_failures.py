"""The error of a job has the source lines that only the driver knows."""

from __future__ import annotations

import linecache

from ekorn.driver.recovery.failures import job_error
from ekorn.errors import UserFunctionError

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
