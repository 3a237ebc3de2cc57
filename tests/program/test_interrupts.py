"""Ctrl-C and SIGTERM end a job in one line that says how to resume it, and resuming needs no path."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import ConfigurationError
from ekorn.testing.local_run import on_local_engine
from tests.program.endless import PROGRAM, SOURCE, heed_interrupts, started, wait_for_checkpoint


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_job_in_one_line_and_resuming_continues_it(tmp_path, number):
    directory = tmp_path / "checkpoints"
    process = started(tmp_path)
    seen = wait_for_checkpoint(directory, process, set())
    process.send_signal(number)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    name = "Ctrl-C" if number is signal.SIGINT else "SIGTERM"
    assert said.startswith(f"ekorn: {name} ended job 'endless'; to resume it: ekorn run --resume ")
    assert said.count("\n") == 1 and "/chk-" in said
    assert out == "the state is empty\n"
    assert set(directory.glob("*/chk-*/_metadata")), "an interrupt keeps the checkpoints"

    process = started(tmp_path, "--resume")
    wait_for_checkpoint(directory, process, seen | set(directory.glob("*/chk-*/_metadata")))
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert out == "the state holds True\n"
    assert len(list(directory.iterdir())) == 1, "the resumed job has the id of the first"


RARELY = PROGRAM.replace("enable_checkpointing(20)", "enable_checkpointing(3_600_000)")


@pytest.mark.long
@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_job_without_a_checkpoint_since_its_start_is_continued_from_where_it_started(tmp_path, is_resumed):
    directory = tmp_path / "checkpoints"
    process = started(tmp_path)
    wait_for_checkpoint(directory, process, set())
    process.send_signal(signal.SIGINT)
    path = process.communicate(timeout=60)[1].rpartition("start from ")[2].strip()

    process = started(tmp_path, *["--resume"] if is_resumed else ["-s", path], program=RARELY)
    assert process.stdout is not None and process.stdout.readline() == "the state holds True\n"
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    script = tmp_path / "program.py"
    assert said == (
        f"ekorn: Ctrl-C ended job 'endless'; to resume it: ekorn run --resume {script}, or start from {path}\n"
        if is_resumed
        else f"ekorn: Ctrl-C ended job 'endless'; it has no checkpoint in a directory since it started from {path}; to "
        f"start from there again: ekorn run -s {path} {script}\n"
    )


@pytest.mark.long
def test_a_program_that_ends_over_a_running_job_says_so_and_ends_the_job(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace('env.execute("endless")', 'env.execute_async("endless")'))
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "checkpoints")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0
    assert done.stderr.startswith("ekorn: the program ended while job 'endless' was running, so the job ends too")
    _, ended = done.stderr.splitlines()
    assert ended.startswith("ekorn: job 'endless' has ended; it has no checkpoint in a directory")


def environment(directory: Path | None) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    if directory is not None:
        env.enable_checkpointing(1000).get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    env.from_collection([1]).map(lambda value: value)
    return env.resume()


def test_with_nothing_to_resume_the_job_starts_from_the_beginning_and_says_so(tmp_path, caplog):
    with on_local_engine():
        environment(tmp_path).execute("fresh")
    assert f"job fresh starts from the beginning: {tmp_path} holds no checkpoint of it" in caplog.text


def test_resuming_without_checkpoints_or_beside_a_path_is_refused(tmp_path):
    with (
        on_local_engine(),
        pytest.raises(ConfigurationError, match="cannot be resumed, because it keeps no checkpoints"),
    ):
        environment(None).execute()
    with on_local_engine(), pytest.raises(ConfigurationError, match="is to be resumed, and to start from"):
        environment(tmp_path).set_restore_path(str(tmp_path / "chk-1")).execute()


STARTS_SLOWLY = """
import signal, time
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.driver.submit import jobs_submitted_by

def slow(graph, settings):
    signal.raise_signal(signal.SIGINT)
    time.sleep(60)

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
with jobs_submitted_by(slow):
    env.execute("slow")
"""


def test_an_interrupt_while_the_job_starts_is_answered_in_one_line():
    done = subprocess.run(
        [sys.executable, "-c", STARTS_SLOWLY],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        preexec_fn=heed_interrupts,
    )
    assert done.stderr == "ekorn: Ctrl-C interrupted the start of the job; no record was read\n"
    assert done.returncode == 128 + signal.SIGINT
