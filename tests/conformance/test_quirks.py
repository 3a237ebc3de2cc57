"""Where PyFlink's result is an accident, Ekorn gives the result of the reference, computed by hand in this file."""

from typing import Any

import pytest

from tests.conformance.recorded_runs import run
from tests.recorded import program as programs

END = 2**63 - 1
GIVES: dict[str, list[Any]] = {
    # Within a key by timestamp: 3, 4, 12 and 14, 21. The rules of bb add up to 10 + 30, and there is none for ccc.
    "broadcast_keyed_timers_batch": [
        ("a", 101, 20, [1, 32, 4]),
        ("bb", 102, 40, [2, 8]),
        ("ccc", 103, None, [16]),
    ],
    # None is a value like any other (reference 05 §2).
    "broadcast_state_none": [("a", None, True, [None], False), ("b", None, True, [None, None], False)],
    # State is by value (reference 05 §2): even numbers are not put back.
    "broadcast_state_of_objects": [
        (1, [1], [1]),
        (2, [1, 2], [1]),
        (3, [1, 3], [1, 3]),
        (4, [1, 3, 4], [1, 3]),
        (5, [1, 3, 5], [1, 3, 5]),
    ],
    # "abc" puts a: 0, b: 1, c: 2; "bd" then b: 0, d: 1.
    "broadcast_state_put_all": [
        [("a", 0), ("b", 1), ("c", 2)],
        [("a", 0), ("b", 0), ("c", 2), ("d", 1)],
    ],
    # Functions see values, not keys.
    "connect_one_side_keyed_map": [(1, ("a", 1)), (1, ("b", 2)), (2, "x"), (2, "y")],
    # Keys are processed one by one; the windows of a key fire when its records have ended (reference 01 §9).
    "window_processing_time_batch": [("a", [1, 3, 4, 6, 7], END), ("b", [2, 5], END)],
    "window_processing_time_session_batch": [("a", [1, 3, 4, 6, 7], END), ("b", [2, 5], END)],
}


@pytest.mark.parametrize("name", GIVES)
def test_an_accident_of_pyflinks_is_not_repeated(name, capsys):
    program = programs.load(name, "ekorn")
    assert program.quirk
    found = run(program, capsys)["values"]
    expected = [repr(record) for record in GIVES[name]]
    assert found == expected if program.ordered else sorted(found) == sorted(expected)


def test_the_data_side_cannot_clear_a_broadcast_state(capsys):
    found = run(programs.load("broadcast_read_only_clear", "ekorn"), capsys)
    assert found["outcome"] == "failure"
    assert "broadcast state 'rules' can only be read here" in found["message"]
