"""The last lines that a slot has logged."""

import io
import logging

import pytest

from ekorn.slot.recent_log import RecentLog, RecentOutput


@pytest.fixture
def logger():
    found = logging.Logger("of this test")
    return found


def test_the_last_lines_are_kept_and_the_oldest_forgotten(logger):
    log = RecentLog(most_characters=30)
    log.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(log)
    assert log.read() == ("", 0)
    for number in range(10):
        logger.warning("line %d", number)
    text, last_ms = log.read()
    assert text == "WARNING line 8\nWARNING line 9\n" and last_ms > 0


def test_a_line_that_is_too_long_is_cut(logger):
    log = RecentLog(most_characters=10)
    logger.addHandler(log)
    logger.error("x" * 100)
    assert log.read().text == "x" * 10 + "\n"


def test_what_is_printed_is_passed_on_and_the_last_of_it_is_kept():
    stream = io.StringIO()
    output = RecentOutput(stream, most_characters=10)
    assert output.read() == ("", 0)
    print("one two three", file=output)
    print("four", "five", file=output)
    output.flush()
    assert stream.getvalue() == "one two three\nfour five\n"
    assert output.read().text == "four five\n" and output.read().last_ms > 0


def test_any_amount_of_output_is_kept_up_to_the_bound():
    output = RecentOutput(io.StringIO(), most_characters=10_000)
    for number in range(20_000):
        print(number, file=output)
    assert output.read().text == "".join(f"{number}\n" for number in range(20_000))[-10_000:]


def test_a_line_that_cannot_be_formatted_is_reported_and_left_out(logger, monkeypatch):
    log, reported = RecentLog(), []
    monkeypatch.setattr(log, "handleError", reported.append)
    logger.addHandler(log)
    logger.error("%d", "no number")
    assert [record.msg for record in reported] == ["%d"]
    assert log.read() == ("", 0)
    logger.error("%d", 7)
    assert log.read().text == "7\n"


def test_texts_that_are_written_together_are_all_kept():
    stream = io.StringIO()
    output = RecentOutput(stream)
    output.writelines(["one\n", "two\n"])
    assert stream.getvalue() == output.read().text == "one\ntwo\n"
    assert RecentOutput(None).write("three") == 5
