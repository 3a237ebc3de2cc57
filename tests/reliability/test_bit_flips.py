"""One flipped bit anywhere in a checkpoint is found before a record is processed, and never gives a wrong result."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import JobID, WatermarkStrategy
from ekorn.datastream import DataStream
from ekorn.errors import EkornError
from ekorn.testing.scripted import Crash, DriverDied, Run, Script, ScriptedSource, run_scripted, start_scripted
from tests.live_jobs import environment, expected_tally, tallied

KEYS, RECORDS = 5, 60
EXPECTED = expected_tally(RECORDS, KEYS)
SEEN: list[int] = []  # the numbers that the job under test has processed, in this process


def note(number: int) -> int:
    SEEN.append(number)
    return number


def job(directory: Path, backend: str, inline: int) -> DataStream:
    env = environment(
        directory,
        state__backend__type=backend,
        execution__checkpointing__num_retained=2,
        execution__checkpointing__data_inline_threshold=inline,
    )
    numbers = env.from_source(
        ScriptedSource([list(range(RECORDS))], [4]), WatermarkStrategy.no_watermarks(), "numbers"
    ).uid("numbers")
    return tallied(numbers.map(note).uid("note"), KEYS)


def interrupted(directory: Path, backend: str, inline: int, job_id: JobID) -> Path:
    """Run until the driver dies; return the newest checkpoint."""
    script = Script(crashes=[Crash("after-epoch", 9)], driver_dies=True)
    with pytest.raises(DriverDied):
        start_scripted(job(directory, backend, inline), script, job_id=job_id)
    newest = max(directory.glob("*/chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))
    return newest.parent


def files_of(checkpoint: Path) -> list[Path]:
    """Return the metadata of a checkpoint, its own files, and the shared files of its job."""
    return [checkpoint / "_metadata", *(p for p in checkpoint.parent.glob("shared/*")), *checkpoint.glob("[0-9]*")]


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def outcome(stream: DataStream, **settings: Any) -> Run | EkornError:
    SEEN.clear()
    try:
        return run_scripted(stream, **settings)
    except EkornError as error:
        return error


@pytest.mark.parametrize(
    ("backend", "inline", "flips"),
    [("hashmap", 0, 80), ("hashmap", 20_000, 40), ("rocksdb", 0, 80)],
    ids=["heap files", "inside the metadata", "rocksdb files"],
)
def test_two_hundred_flipped_bits_of_a_named_checkpoint_are_refused_before_a_record(
    tmp_path: Path, backend: str, inline: int, flips: int
) -> None:
    newest = interrupted(tmp_path, backend, inline, JobID.generate())
    needed = needed_by(newest)
    chance = random.Random(flips)
    for number in range(flips):
        victim = newest / "_metadata" if number % 4 == 0 or not needed else chance.choice(needed)
        data = victim.read_bytes()
        victim.write_bytes(flipped(data, chance.randrange(len(data) * 8)))
        found = outcome(job(tmp_path, backend, inline), restore_path=str(newest), job_id=JobID.generate())
        assert isinstance(found, EkornError), f"bit flip in {victim.name} went unseen"
        assert victim.name in str(found)
        assert SEEN == []
        victim.write_bytes(data)
    good = outcome(job(tmp_path, backend, inline), restore_path=str(newest), job_id=JobID.generate())
    assert isinstance(good, Run) and good.records == EXPECTED[-len(good.records) :]


def needed_by(checkpoint: Path) -> list[Path]:
    text = (checkpoint / "_metadata").read_bytes()
    return [path for path in files_of(checkpoint)[1:] if path.name.encode() in text]


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_job_that_finds_its_newest_checkpoint_damaged_goes_back_one_and_is_right(
    tmp_path: Path, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(backend)
    for number in range(3):
        directory, job_id = tmp_path / str(number), JobID.generate()
        newest = interrupted(directory, backend, 0, job_id)
        text = (newest.parent / f"chk-{int(newest.name[4:]) - 1}" / "_metadata").read_bytes()
        own = [path for path in needed_by(newest) if path.name.encode() not in text]  # not in the older one
        victim = chance.choice([newest / "_metadata", *own])
        data = victim.read_bytes()
        victim.write_bytes(flipped(data, chance.randrange(len(data) * 8)))
        caplog.clear()
        found = outcome(job(directory, backend, 0), job_id=job_id)
        assert isinstance(found, Run)
        assert found.records == EXPECTED[-len(found.records) :]
        assert f"checkpoint {newest.name[4:]} of" in caplog.text and "restoring the older checkpoint" in caplog.text
