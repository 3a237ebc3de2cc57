"""Storage that is full, read-only, slow or failing: what the job does, and which files remain."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ekorn.common.job_status import JobStatus
from ekorn.testing.local_run import on_local_engine
from tests.campaign import damage
from tests.campaign.driver import Run, environment
from tests.campaign.driver_life import Driver
from tests.campaign.faulty_storage import CONTROL, register, set_faults
from tests.campaign.jobs import verify
from tests.campaign.zygote import Zygote
from tests.live_jobs import until
from tests.small_disk import Disk, small_disk

RECORDS = 1_500
LONG = 5_000


@pytest.fixture
def disk() -> Iterator[Disk]:
    with small_disk() as mounted:
        yield mounted


def start(zygote: Zygote, folder: Path, checkpoints: str, *, environment: dict[str, str] | None = None, **run: Any):
    settings: dict[str, Any] = {"records": RECORDS, "per_second": 800, "job_id": uuid.uuid4().hex} | run
    wanted = Run(kind="allround", output=str(folder / "out"), checkpoints=checkpoints, **settings)
    return Driver(zygote, wanted, folder, {"EKORN_FAULT": "", **(environment or {})})


def finish(driver: Driver, folder: Path, records: int = RECORDS) -> None:
    """Wait for the end of the job, and check that its output is exact."""
    driver.until(lambda d: False)
    assert driver.done is not None, driver.failed or driver.tail()
    verdict = verify("allround", records, folder / "out")
    assert verdict.exact, verdict


def intact(checkpoint: Path) -> bool:
    return all((checkpoint.parent / path).is_file() for path in damage.state_files(checkpoint))


# ----------------------------------------------------------------------------------------------- full and read-only


def test_when_the_checkpoint_storage_is_full_the_last_checkpoint_stays_and_the_job_goes_on(
    disk: Disk, tmp_path: Path, zygote: Zygote
) -> None:
    driver = start(zygote, tmp_path, str(disk.path / "checkpoints"), records=LONG)
    assert driver.until(lambda d: d.progress.get("checkpoints", 0) >= 2)
    disk.fill()
    failed, read = driver.progress["failed"], driver.progress["read"]

    def has_gone_on_without_room(d: Driver) -> bool:
        disk.fill()  # a checkpoint that was under way leaves the room of the one before it
        return d.progress["failed"] >= failed + 2 and d.progress["read"] > read + 50

    assert driver.until(has_gone_on_without_room)
    kept = damage.newest(disk.path / "checkpoints")
    assert kept is not None and intact(kept)
    disk.free()
    completed = driver.progress["checkpoints"]
    assert driver.until(lambda d: d.progress["checkpoints"] > completed)
    finish(driver, tmp_path, LONG)
    assert "No space left on device" in driver.log.read_text()


def test_when_the_disk_under_a_slot_is_full_the_job_goes_on_once_there_is_room(
    disk: Disk, tmp_path: Path, zygote: Zygote
) -> None:
    """RocksDB keeps its files on that disk, and copies them to checkpoints."""
    driver = start(
        zygote,
        tmp_path,
        str(tmp_path / "checkpoints"),
        environment={"TMPDIR": str(disk.path)},
        backend="rocksdb",
        restarts=1_000,
    )
    assert driver.until(lambda d: d.progress.get("checkpoints", 0) >= 2)
    assert any(disk.path.iterdir()), "the slots' folder is elsewhere"
    disk.fill()
    trouble = driver.progress["failed"] + driver.progress["restarts"]

    def has_trouble(d: Driver) -> bool:
        disk.fill()
        return d.progress["failed"] + d.progress["restarts"] > trouble

    assert driver.until(has_trouble)
    disk.free()
    finish(driver, tmp_path)


def test_a_read_only_checkpoint_directory_is_refused_before_anything_is_read(
    disk: Disk, tmp_path: Path, zygote: Zygote
) -> None:
    disk.make_read_only()
    started = time.monotonic()
    driver = start(zygote, tmp_path, str(disk.path / "checkpoints"))
    assert not driver.until(lambda d: d.progress.get("read", 0) > 0)
    assert driver.failed is not None and "cannot write checkpoints" in driver.failed
    assert "Read-only file system" in driver.failed
    assert time.monotonic() - started < 30  # the refusal is immediate; starting a process takes time


def test_a_job_outlives_a_checkpoint_directory_that_is_read_only_for_a_while(
    disk: Disk, tmp_path: Path, zygote: Zygote
) -> None:
    driver = start(zygote, tmp_path, str(disk.path / "checkpoints"), records=LONG)
    assert driver.until(lambda d: d.progress.get("checkpoints", 0) >= 2)
    disk.make_read_only()
    failed = driver.progress["failed"]
    assert driver.until(lambda d: d.progress["failed"] > failed)
    subprocess.run(["mount", "-o", "remount,rw", str(disk.path)], check=True)
    finish(driver, tmp_path, LONG)


# ---------------------------------------------------------------------------------- slow and failing, in this process


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control file of `faulty://`."""
    register()
    control = tmp_path / "storage.json"
    monkeypatch.setenv(CONTROL, str(control))
    return control


def submitted(tmp_path: Path, **run: Any):
    """Start a job on the local engine with its checkpoints on the faulty storage."""
    settings: dict[str, Any] = {"records": RECORDS, "per_second": 1_000, "interval_ms": 20, "parallelism": 2} | run
    settings |= {"output": str(tmp_path / "out"), "checkpoints": f"faulty://{tmp_path}/checkpoints"}
    with on_local_engine():
        return environment(Run(kind="allround", job_id="c" * 32, **settings)).execute_async("storage")


def test_storage_slower_than_the_timeout_costs_checkpoints_and_nothing_else(tmp_path: Path, faulty: Path) -> None:
    client = submitted(tmp_path, timeout_ms=150, records=1_000_000)
    until(lambda: client.get_progress().checkpoints_completed >= 2)
    set_faults(str(faulty), delay_ms=250)
    failed, read = client.get_progress().checkpoints_failed, client.get_progress().records_read
    until(lambda: client.get_progress().checkpoints_failed >= failed + 2)
    assert client.get_progress().records_read > read
    set_faults(str(faulty))
    completed = client.get_progress().checkpoints_completed
    until(lambda: client.get_progress().checkpoints_completed >= completed + 3)
    client.cancel().result()
    until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
    assert damage.orphans(tmp_path / "checkpoints" / ("c" * 32)) == []


@pytest.mark.parametrize("rate", [0.1, *[pytest.param(rate, marks=pytest.mark.soak) for rate in (0.01, 0.2)]])
def test_storage_that_fails_now_and_then_still_completes_checkpoints(tmp_path: Path, faulty: Path, rate: float) -> None:
    client = submitted(tmp_path, records=LONG)  # long enough for many checkpoints on a slow machine
    try:
        set_faults(str(faulty), rate=rate)
        client.get_job_execution_result().result()
    finally:
        set_faults(str(faulty))
    progress = client.get_progress()
    attempted = progress.checkpoints_completed + progress.checkpoints_failed
    assert progress.checkpoints_completed >= 0.8 * attempted
    assert progress.checkpoints_completed >= 2
    assert verify("allround", LONG, tmp_path / "out").exact


def test_a_storage_that_fails_at_the_first_start_costs_a_restart(tmp_path: Path, faulty: Path) -> None:
    # The driver first reads who began before it: a fault of that reading ends the job before it has started.
    set_faults(str(faulty), rate=1.0, path="owner/start", writes_only=True)
    client = submitted(tmp_path)
    until(lambda: client.get_progress().restarts >= 1)
    set_faults(str(faulty))
    until(lambda: client.get_progress().checkpoints_completed >= 1)
    assert list((tmp_path / "checkpoints").glob("*/owner/start-*"))  # a later driver reads where this one began
    client.get_job_execution_result().result()
    assert verify("allround", RECORDS, tmp_path / "out").exact


def test_a_job_outlives_a_burst_of_errors(tmp_path: Path, faulty: Path) -> None:
    client = submitted(tmp_path)
    until(lambda: client.get_progress().checkpoints_completed >= 2)
    set_faults(str(faulty), rate=1.0)
    until(lambda: client.get_progress().checkpoints_failed >= 1)
    set_faults(str(faulty))
    client.get_job_execution_result().result()
    assert verify("allround", RECORDS, tmp_path / "out").exact
