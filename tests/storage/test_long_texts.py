"""The texts of exceptions are cut in the process that has them; the first long one is whole in a private file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ekorn.errors import JobExecutionError
from ekorn.storage.long_texts import LONGEST, LongTexts
from ekorn.testing.process_engine import on_process_engine
from tests import live_jobs


def test_short_texts_stay_and_write_no_file(tmp_path):
    texts = ("a" * LONGEST, "b")
    assert LongTexts(str(tmp_path)).cut(*texts) == texts
    assert not list(tmp_path.iterdir())


def test_long_texts_are_cut_and_the_first_is_kept_once(tmp_path):
    long = "first " + "x" * 1_000_000 + " last"
    texts = LongTexts(str(tmp_path))
    for attempt in range(3):
        trace, message = texts.cut(f"Traceback\n{long}", long)
        (file,) = tmp_path.iterdir()
        assert file.read_text() == f"Traceback\n{long}" and file.stat().st_mode & 0o777 == 0o600
        assert trace.startswith("Traceback\nfirst ") and trace.endswith(" last") and message.startswith("first ")
        whose = "the whole text is" if not attempt else "the whole text of the first such error is"
        for each in (trace, message):
            assert len(each) < LONGEST + 500 and f"characters are left out; {whose} in {file} ...]" in each
        assert str(len(long)) in message


def test_files_of_earlier_processes_do_not_add_up(tmp_path):
    for _ in range(12):
        LongTexts(str(tmp_path)).cut("x" * (LONGEST + 1))
    assert len(list(tmp_path.iterdir())) == 8


def test_a_folder_that_takes_no_file_does_not_hide_the_error(tmp_path):
    (text,) = LongTexts(str(tmp_path / "none")).cut("x" * (LONGEST + 1))
    assert "they could not be kept: No such file or directory" in text


@pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
def test_an_exception_with_a_long_text_leaves_a_slot_cut_and_its_file_outlives_the_job(
    continuous, tmp_path, caplog, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # that of the slots

    def fail(number):
        raise ValueError(f"the beginning {number:010d}" + "x" * 5_000_000)

    env = live_jobs.environment(None, restarts=3)
    live_jobs.generated(env, 10).map(fail).print()
    with on_process_engine(continuous=continuous), pytest.raises(JobExecutionError) as failed:
        env.execute("long")
    text = str(failed.value)
    assert "ValueError: the beginning 0000000000xxx" in text and len(text) < 5 * LONGEST
    assert sum(len(record.getMessage()) for record in caplog.records) < 20 * LONGEST
    (path,) = set(re.findall(r" is in (\S+\.txt) \.\.\.\]", text))
    assert len(Path(path).read_text()) > 5_000_000
