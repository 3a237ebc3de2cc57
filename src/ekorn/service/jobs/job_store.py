"""The folder of the service: its programs, and a folder for each job with its record, program, log and last answers."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from ekorn.config import options
from ekorn.errors import ConfigurationError, EkornError
from ekorn.service.jobs.bundles import digest_of, unpack
from ekorn.service.jobs.job_record import JobRecord, NotedOutcome, decode_record, encode_record
from ekorn.storage.private_folder import PrivateFolder

__all__ = ["JobStore", "StoredProgram"]

_log = logging.getLogger(__name__)

PROGRAM = re.compile(r"[0-9a-f]{64}_[A-Za-z0-9_.-]{1,100}\.zip")
RECORD = "job.json"
SUBMISSION = "submission.json"
CHECKS, PLANS = "check-", "plan-"  # how the folders of checks, in those of their jobs, and of plans begin
_SCRIPT = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class StoredProgram(NamedTuple):
    """A program that the service has, and when it was uploaded, in milliseconds since 1970."""

    id: str
    uploaded_ms: int


class JobStore:
    """Files below the folder of the service, which only this user may enter.

    Raises:
        UnsafeFolderError: Another user owns the folder, or may enter it.
    """

    def __init__(self, folder: str) -> None:
        with PrivateFolder.opened(folder):
            pass
        self.folder = Path(folder)
        self._jobs = self.folder / "jobs"
        self._programs = self.folder / "programs"
        for each in (self._jobs, self._programs):
            each.mkdir(mode=0o700, exist_ok=True)

    # ---------------------------------------------------------------------------------------------------- programs

    def add_program(self, file: Path, digest: str, script: str) -> str:
        """Keep a program; return its id: the digest and the name of the script.

        Raises:
            ConfigurationError: The digest is not that of the file, or the name is no name of a script.
        """
        if not _SCRIPT.fullmatch(script):
            raise ConfigurationError(
                f"{script[:80]!r} is not the name of a script: use letters, digits, '_', '.' and '-'"
            )
        found = digest_of(file)
        if found != digest.lower():
            raise ConfigurationError(f"the program was damaged in transit: its digest is {found}, not {digest[:64]!r}")
        program = f"{found}_{script}.zip"
        # A name of its own: two clients may upload the same program at once.
        fresh = self._programs / f"{secrets.token_hex(8)}.new"
        try:
            shutil.copyfile(file, fresh)
            os.replace(fresh, self._programs / program)
        finally:
            fresh.unlink(missing_ok=True)
        return program

    def programs(self) -> list[StoredProgram]:
        """Return the programs that are kept, the newest first."""
        found = []
        for path in self._programs.iterdir():
            with contextlib.suppress(FileNotFoundError):  # the program was just deleted
                if PROGRAM.fullmatch(path.name):
                    found.append(StoredProgram(path.name, path.stat().st_mtime_ns // 1_000_000))
        return sorted(found, key=lambda each: each.uploaded_ms, reverse=True)

    def delete_program(self, program: str) -> None:
        """Delete a program. A program that does not exist is no error."""
        (self._programs / program).unlink(missing_ok=True)

    def drop_programs(self, needed: Collection[str], most: int) -> None:
        """Delete programs that no job needs, except for those that were uploaded last."""
        unneeded = [each.id for each in self.programs() if each.id not in needed]
        for program in unneeded[most:]:
            self.delete_program(program)

    def program(self, program: str) -> Path | None:
        """Return the file of a program; None if there is none."""
        path = self._programs / program
        return path if PROGRAM.fullmatch(program) and path.is_file() else None

    def unpack_program(self, record: JobRecord, most_bytes: int) -> Path:
        """Unpack the program of a job into the job's folder; return the path of its script.

        Raises:
            ConfigurationError: The program is gone, or cannot be unpacked.
        """
        folder = self.program_folder(record.job_id)
        shutil.rmtree(folder, ignore_errors=True)
        return self.unpack_into(record.program, record.script, folder, most_bytes)

    def unpack_into(self, program: str, script: str, folder: Path, most_bytes: int) -> Path:
        """Unpack a program into a new folder; return the path of its script.

        Raises:
            ConfigurationError: The program is gone, or cannot be unpacked.
        """
        archive = self.program(program)
        if archive is None:
            raise ConfigurationError(f"the program {program!r} no longer exists")
        if digest_of(archive) != program[:64]:
            raise ConfigurationError(f"the program {program!r} was damaged on the disk of the service")
        unpack(archive, folder, most_bytes)
        return folder / script

    # -------------------------------------------------------------------------------------------------------- jobs

    def job_folder(self, job_id: str) -> Path:
        """Return the folder of a job."""
        return self._jobs / job_id

    def program_folder(self, job_id: str) -> Path:
        """Return the folder that the program of a job is unpacked into."""
        return self.job_folder(job_id) / "program"

    def log(self, job_id: str) -> Path:
        """Return the log of a job's driver."""
        return self.job_folder(job_id) / "driver.log"

    def submission(self, job_id: str) -> Path:
        """Return the file that tells a driver what to run."""
        return self.job_folder(job_id) / SUBMISSION

    def archive(self, job_id: str) -> Path:
        """Return the file with the last answers of a driver."""
        return self.job_folder(job_id) / "answers.json"

    def answers(self, job_id: str) -> dict[str, Any]:
        """Return the last answers of a driver that has ended, by path; empty if the driver could not write them."""
        try:
            found = json.loads(self.archive(job_id).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def drop_answers(self, job_id: str) -> None:
        """Delete the last answers of the previous driver, so that they are not mistaken for those of the next one."""
        self.archive(job_id).unlink(missing_ok=True)

    # ------------------------------------------------------------------------- for services that share a storage

    is_shared = False  # whether another service reads these files and may continue the jobs

    host = ""  # this machine, if services on other machines read the records

    @property
    def settings_of_drivers(self) -> dict[str, str]:
        """The settings that every driver is given."""
        return {options.EXECUTIONS.key: "many"}

    def new_run(self) -> str:
        """Return a name for this start of a driver; empty if outcomes are not written to a shared storage."""
        return ""

    def watched_leader(self, run: str) -> dict[str, Any] | None:
        """Return what a driver needs to know to end together with the leader that started it; None without a leader."""
        return None

    def outcome(self, record: JobRecord) -> NotedOutcome | None:
        """Return how a job ended, as its driver recorded it on the shared storage; None if it recorded nothing."""
        return None

    def keep_answers(self, job_id: str) -> None:
        """Keep the last answers of a driver where other services find them."""

    # -------------------------------------------------------------------------------- what was cut short

    def drop_unfinished(self) -> list[Path]:
        """Remove the folders of checks and plans that a service which was killed has left; return them."""
        found = [*self._jobs.glob(f"*/{CHECKS}*"), *self.folder.glob(f"{PLANS}*")]
        for each in found:
            shutil.rmtree(each, ignore_errors=True)
        return found

    # --------------------------------------------------------------------------------------------------- the records

    def save(self, record: JobRecord) -> None:
        """Write the record of a job, whole or not at all."""
        folder = self.job_folder(record.job_id)
        folder.mkdir(mode=0o700, exist_ok=True)
        write_private(folder / RECORD, encode_record(record))

    def load(self) -> list[JobRecord]:
        """Return all jobs, in the order of submission. A record that cannot be read is left out, and logged."""
        found = []
        for path in self._jobs.glob(f"*/{RECORD}"):
            try:
                found.append(decode_record(path.read_bytes(), str(path)))
            except (OSError, EkornError) as error:
                _log.warning("a job of the service is left out: %s", error)
        return sorted(found, key=lambda record: (record.submitted_ms, record.job_id))

    def forget(self, job_id: str) -> None:
        """Delete the folder of an ended job."""
        shutil.rmtree(self.job_folder(job_id), ignore_errors=True)


def write_private(path: Path, data: bytes) -> None:
    """Create or replace a file that only this user can read, whole or not at all."""
    # A name of its own: two threads may write the file at once.
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
