"""Whole jobs with checkpoints at a URL: taken, restored, refused at submission, and without leaking secrets."""

from __future__ import annotations

import logging
import os
import pickle
import time
import uuid
from pathlib import Path

import pytest

from ekorn.checkpoint.ownership import LEASE_MS
from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.datastream import ExternalizedCheckpointRetention, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import MapFunction
from ekorn.errors import CheckpointError, ConfigurationError, EkornError
from ekorn.storage.file_store import open_files
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.process_engine import on_process_engine
from tests.driver.submitted_jobs import noted_handles
from tests.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY

RECORDS = 1_500


def environment(address: str, restore: str | None = None, *, create_subdir: bool = True) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.create-subdir", str(create_subdir).lower())
    configuration.set_string("execution.checkpointing.dir", address)
    configuration.set_string("execution.checkpointing.data-inline-threshold", "0")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.enable_checkpointing(100)
    env.get_checkpoint_config().set_externalized_checkpoint_retention(
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    if restore is not None:
        env.set_restore_path(restore)
    return env


def counts(env: StreamExecutionEnvironment, per_second: float = 2_000):
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(per_second))
    return (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .uid("numbers")
        .key_by(lambda n: n % 5)
        .map(lambda n: (n % 5, 1))
        .key_by(lambda v: v[0])
        .sum(1)
        .uid("count")
    )


def last_counts(records) -> dict[int, int]:
    return {key: max(count for k, count in records if k == key) for key in range(5)}


def until(condition, within_s: float = 60.0) -> bool:
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)  # the state of other processes has to be polled
    return False


def test_a_job_with_checkpoints_on_s3_survives_a_killed_slot_and_a_new_driver(s3_url, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    address = s3_url("job")
    with on_process_engine(), noted_handles() as handles:
        # Slow enough for a loaded machine: if all records were read before the kill, nothing would be left to restore.
        first = counts(environment(address), per_second=50).execute_and_collect()
        handle = handles[0]
        assert until(lambda: handle.progress().checkpoints_completed >= 2)
        os.kill(handle.progress().slot_pids[0], 9)
        assert until(lambda: handle.progress().restarts == 1 and handle.progress().status is JobStatus.RUNNING)
        completed = handle.progress().checkpoints_completed
        assert until(lambda: handle.progress().checkpoints_completed > completed)
        first.close()  # cancels the job; the checkpoint is kept
        path = handle.progress().last_checkpoint_path
        assert path is not None and path.startswith(f"s3://{BUCKET}/")
        job, chk = path.rsplit("/", 2)[1:]
        with counts(environment(s3_url("job2"), restore=s3_url(f"job/{job}/{chk}"))).execute_and_collect() as records:
            found = list(records)
    assert last_counts(found) == dict.fromkeys(range(5), RECORDS // 5)
    assert len(found) < RECORDS  # the job did not start from the beginning
    # Neither the log nor a stored file holds the keys.
    store = open_files(address)
    kept = b"".join(store.read(p) for p in every_file(store))
    for secret in (ACCESS_KEY, SECRET_KEY):
        assert secret not in caplog.text + str(handle.progress())
        assert secret.encode() not in kept


def every_file(store, directory: str = "") -> list[str]:
    found = []
    for name in store.list(directory):
        path = f"{directory}/{name}" if directory else name
        below = every_file(store, path)
        found += below or [path]
    return [p for p in found if _is_file(store, p)]


def _is_file(store, path: str) -> bool:
    try:
        store.size(path)
    except FileNotFoundError:
        return False
    return True


def test_a_second_driver_on_the_same_directory_is_refused_on_s3_too(s3_url) -> None:
    address = s3_url("one")
    env = environment(address, create_subdir=False)
    with on_process_engine(), noted_handles() as handles:
        first = counts(env, per_second=500).execute_and_collect()
        assert until(lambda: handles[0].progress().checkpoints_completed >= 1)
        second = environment(address, create_subdir=False)
        started = time.monotonic()
        with pytest.raises(CheckpointError, match=f"in use by the driver with process id {os.getpid()}"):
            counts(second).execute_and_collect()
        assert time.monotonic() - started < LEASE_MS / 1000, "it waits for no lease"
        first.close()


def test_memory_is_a_directory_for_jobs_in_this_process_only() -> None:
    address = f"memory://{uuid.uuid4().hex}/checkpoints"
    with on_local_engine(), counts(environment(address), per_second=1e9).execute_and_collect() as records:
        assert last_counts(list(records)) == dict.fromkeys(range(5), RECORDS // 5)
    with on_process_engine(), pytest.raises(ConfigurationError, match="in the memory of this process"):
        counts(environment(address)).execute_and_collect()


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        ("nosuch://bucket/dir", ConfigurationError, "neither pyarrow nor fsspec"),
        ("s3:///dir", ConfigurationError, "Missing bucket"),
        ("missing bucket", CheckpointError, "not found"),
        ("/proc/nowhere/dir", CheckpointError, "cannot write checkpoints"),
    ],
)
def test_a_directory_that_cannot_be_used_is_refused_before_anything_runs(s3_url, address, error, words) -> None:
    read = []
    env = environment(s3_url(bucket="nobucket") if address == "missing bucket" else address)
    env.from_collection([1]).map(read.append).print()
    with on_local_engine(), pytest.raises(error) as raised:
        env.execute()
    assert words in str(raised.value)
    assert SECRET_KEY not in str(raised.value)
    assert not read


class Fails(MapFunction):
    def map(self, value):
        raise ValueError("on purpose")


def test_the_error_of_a_job_and_what_slots_are_told_keep_the_secret(s3_url, tmp_path: Path) -> None:
    env = environment(s3_url("job"))
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.from_collection([1]).map(Fails()).print()
    with on_process_engine(), pytest.raises(EkornError, match="on purpose") as raised:
        env.execute()
    assert SECRET_KEY.encode() not in pickle.dumps(raised.value)
