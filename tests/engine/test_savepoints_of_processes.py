"""Savepoints and local recovery with slot processes: under load, at another parallelism, after a kill."""

import os
import signal

from ekorn.common import Encoder, JobStatus, WatermarkStrategy
from ekorn.datastream.connectors.datagen import DataGeneratorSource
from ekorn.datastream.connectors.file_system import FileSink, RollingPolicy
from ekorn.testing.process_engine import on_process_engine
from tests import live_jobs
from tests.live_jobs import WAIT_S, Held, limited, until


def environment(tmp_path, parallelism, **keys):
    env = live_jobs.environment(tmp_path / "checkpoints", parallelism=parallelism, interval_ms=50, restarts=5, **keys)
    env.set_default_savepoint_directory(str(tmp_path / "savepoints"))
    return env


def counts(env, directory, records, per_second):
    """Write the running count of each of seven keys to files."""
    source = DataGeneratorSource(lambda n: n, records, limited(per_second))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    counted = stream.map(lambda n: (n % 7, 1)).key_by(lambda v: v[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    sink = FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
    counted.uid("counts").map(str).sink_to(
        sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    )


def written(directory):
    lines = []
    for path in directory.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            lines += path.read_text().splitlines()
    return sorted(lines)


def expected(records):
    return sorted(str((key, n)) for key in range(7) for n in range(1, len(range(key, records, 7)) + 1))


def test_a_job_stopped_under_load_goes_on_at_another_parallelism(tmp_path):
    records, before, after = 700, 2, 3
    with on_process_engine():
        env = environment(tmp_path, before)
        counts(env, tmp_path / "out", records, Held(tmp_path, 200, per_second=1_000))
        client = env.execute_async()
        until(lambda: client.get_progress().records_read > 100)
        between = client.trigger_savepoint().result(WAIT_S)
        path = client.stop_with_savepoint(False).result(WAIT_S)
        assert client.get_job_status().result() is JobStatus.FINISHED
        assert between != path
        first = written(tmp_path / "out")
        assert 0 < len(first) < records
        env = environment(tmp_path, after)
        env.set_restore_path(path)
        counts(env, tmp_path / "out", records, per_second=1e6)
        env.execute()
    assert written(tmp_path / "out") == expected(records)


def test_a_killed_slot_finds_its_local_copies_and_nothing_is_lost(tmp_path):
    records = 700
    local = tmp_path / "local"
    keys = {
        "state__backend__local_recovery": "true",
        "taskmanager__state__local__root_dirs": str(local),
        "execution__checkpointing__data_inline_threshold": "0",
    }
    with on_process_engine():
        env = environment(tmp_path, 2, **keys)
        held = Held(tmp_path, 100)
        counts(env, tmp_path / "out", records, held)
        client = env.execute_async()
        until(lambda: client.get_progress().checkpoints_completed >= 2)
        assert [path for path in local.rglob("*") if path.is_file()]
        os.kill(client.get_progress().slot_pids[0], signal.SIGKILL)
        held.let_go()
        client.get_job_execution_result().result(WAIT_S)
        assert client.get_progress().restarts >= 1
    assert written(tmp_path / "out") == expected(records)
    assert not list(local.iterdir()), "copies go with the job"
