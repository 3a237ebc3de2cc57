"""With a signing key, forged state is refused before anything in it is unpickled, however right its checksums are."""

from __future__ import annotations

import contextlib
import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import WatermarkStrategy
from ekorn.common.job_id import JobID
from ekorn.datastream import DataStream
from ekorn.errors import EkornError, JobCancelledError
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.live_jobs import environment, expected_tally, tallied
from tests.reliability.forged_savepoints import Document, first_file, hostile_keys, replace_state, rewrite

KEYS, RECORDS = 5, 40


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_bytes(b"k" * 32)
    path.chmod(0o600)
    return path


def job(backend: str, key: Path | None, directory: Path | None = None, num_retained: int = 1) -> DataStream:
    keys: dict[str, Any] = {"state__backend__type": backend, "execution__checkpointing__data_inline_threshold": 0}
    keys["execution__checkpointing__num_retained"] = num_retained
    if key is not None:
        keys["ekorn__checkpoint__signing_key_file"] = key
    env = environment(directory, **keys)
    source = ScriptedSource([list(range(RECORDS))], [4])
    return tallied(env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers"), KEYS)


@pytest.fixture(scope="module", params=["hashmap", "rocksdb"])
def signed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, key: Path) -> tuple[str, Path]:
    """Return a backend's name and a folder with a signed savepoint and signed checkpoints."""
    folder, asked = tmp_path_factory.mktemp("signed"), []
    deed = {4: lambda handle: asked.append(handle.request_savepoint(str(folder), native=True, then="cancel"))}
    with contextlib.suppress(JobCancelledError):
        run_scripted(job(request.param, key, folder / "checkpoints"), Script(deeds=deed))
    Path(asked[0].result(0)).rename(folder / "savepoint")
    return request.param, folder


@pytest.fixture
def copy(signed: tuple[str, Path], tmp_path: Path) -> tuple[str, Path]:
    shutil.copytree(signed[1], tmp_path / "copy")
    return signed[0], tmp_path / "copy"


def restore(backend: str, key: Path | None, path: Path) -> Any:
    return run_scripted(job(backend, key), restore_path=str(path))


def refusal(backend: str, key: Path, path: Path) -> str:
    with pytest.raises(EkornError) as caught:
        restore(backend, key, path)
    return str(caught.value)


def document_of(savepoint: Path) -> Document:
    return json.loads((savepoint / "_metadata").read_bytes().partition(b"\n")[2])


def test_a_signed_savepoint_is_restored(signed: tuple[str, Path], key: Path) -> None:
    backend, folder = signed
    document = document_of(folder / "savepoint")
    assert len(document["hmac_sha256"]) == len(first_file(document)["sha256"]) == 64
    records = restore(backend, key, folder / "savepoint").records
    assert records == expected_tally(RECORDS, KEYS)[-len(records) :] and 0 < len(records) < RECORDS


def test_forged_state_with_right_checksums_runs_without_a_key_and_is_refused_with_one(
    copy: tuple[str, Path], key: Path, tmp_path: Path
) -> None:
    backend, folder = copy
    savepoint, mark = folder / "savepoint", tmp_path / "mark"
    described = replace_state(savepoint / first_file(document_of(savepoint))["path"], hostile_keys(mark))

    def forge(document: Document) -> None:
        first_file(document).pop("sha256")
        first_file(document).update(described)

    rewrite(savepoint, forge)
    assert "signing-key-file" in refusal(backend, key, savepoint)
    assert not mark.exists()
    if backend == "hashmap":  # the attack is real: without a key it succeeds
        restore(backend, None, savepoint)
        assert mark.exists()


TAMPERINGS: dict[str, Callable[[Document], object]] = {
    "another number": lambda d: d.update(checkpoint_id=d["checkpoint_id"] + 1),
    "another path": lambda d: first_file(d).update(path="elsewhere"),
    "no signature": lambda d: d.pop("hmac_sha256"),
    "another signature": lambda d: d.update(hmac_sha256="0" * 64),
    "another digest": lambda d: first_file(d).update(sha256="0" * 64),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_changed_metadata_is_refused(copy: tuple[str, Path], key: Path, tampering: str) -> None:
    backend, folder = copy
    rewrite(folder / "savepoint", TAMPERINGS[tampering])
    said = refusal(backend, key, folder / "savepoint")
    assert "_metadata" in said and "signing-key-file" in said


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_an_old_signed_checkpoint_that_is_put_back_under_another_number_is_not_taken_for_the_newest(
    backend: str, key: Path, tmp_path: Path
) -> None:
    """Whoever writes to the directory can put it back as what it is. The signature covers the number."""
    job_id = JobID.generate()
    with pytest.raises(DriverDied):
        dying = Script(crashes=[Crash("in-notify", 4)], driver_dies=True)
        start_scripted(job(backend, key, tmp_path, num_retained=10), dying, job_id=job_id)
    found = sorted((tmp_path / str(job_id)).glob("chk-*"), key=number_of)
    oldest, newest = found[0], found[-1]
    assert number_of(oldest) < number_of(newest)
    forged = oldest.with_name(f"chk-{number_of(newest) + 5}")
    shutil.copytree(oldest, forged)
    assert "checkpoint" in refusal(backend, key, forged)
    run = run_scripted(job(backend, key, tmp_path, num_retained=10), job_id=job_id)
    assert run.engine.restored_ids == [number_of(newest)]
    assert run.records == expected_tally(RECORDS, KEYS)[-len(run.records) :]


def number_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("chk-"))


def test_every_state_file_is_checked_against_its_digest(signed: tuple[str, Path], key: Path, tmp_path: Path) -> None:
    """Forge each file with the crc32 that the signed metadata expects: with RocksDB these are its sorted files."""
    backend, folder = signed
    savepoint = folder / "savepoint"
    files = [f.name for f in savepoint.iterdir() if f.name != "_metadata"]
    assert files
    for number, name in enumerate(files):
        copied = tmp_path / str(number)
        shutil.copytree(savepoint, copied)
        data = (copied / name).read_bytes()
        header, payload = data[:24], data[24:]
        forged = same_crc32(payload)
        assert forged != payload and zlib.crc32(forged) == zlib.crc32(payload) and len(forged) == len(payload)
        (copied / name).write_bytes(header + forged)
        said = refusal(backend, key, copied)
        assert "SHA-256" in said and name in said


def same_crc32(payload: bytes) -> bytes:
    """Return other bytes of the same size and crc32: crc32 is linear, so its polynomial may be added anywhere."""
    polynomial = 0x1DB710641  # reflected, 33 bits
    return (int.from_bytes(payload, "little") ^ polynomial).to_bytes(len(payload), "little")


def test_a_retained_checkpoint_is_refused_by_path_as_well(copy: tuple[str, Path], key: Path) -> None:
    backend, folder = copy
    for metadata in sorted((folder / "checkpoints").glob("*/chk-*/_metadata")):
        restore(backend, key, metadata.parent)
        rewrite(metadata.parent, lambda document: document.pop("hmac_sha256"))
        assert "signing-key-file" in refusal(backend, key, metadata.parent)
        return
    pytest.fail("the job retained no checkpoint")
