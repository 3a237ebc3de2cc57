"""The jobs of services that stand by for each other: records and programs on their storage, the rest on their disks.

    programs/<id>                    the programs
    term-<n>/jobs/<job id>           the records, as the leader of a term writes them
    term-<n>/ready                   the leader has brought all records into its term
    outcomes/<job id>-<run>          how a job ended, noted by its driver before it deletes its checkpoints
    answers/<job id>                 the last answers of a driver that has ended

Every leader writes records below its own term. A replaced leader that wakes up writes records below its old term, where
no service reads them, and looks for a newer claim before it answers a client. A new leader reads the newest term that
is ready, and leads once its own term is ready.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import shutil
import socket
from pathlib import Path
from typing import Any

from ekorn.clock import Clock
from ekorn.config import options
from ekorn.errors import EkornError
from ekorn.service.cluster.leadership import Leadership, NotLeader
from ekorn.service.cluster.takeover import taken_over
from ekorn.service.jobs.job_record import JobRecord, NotedOutcome, decode_record, encode_record
from ekorn.service.jobs.job_store import PROGRAM, RECORD, JobStore, StoredProgram, write_private
from ekorn.storage.file_store import FileStore

__all__ = ["SharedJobStore"]

_log = logging.getLogger(__name__)

_DRAFT = ".draft-"
_OF_A_TERM = re.compile(r"(?:program|submission|answers)-[0-9]+(?:\.json)?")


class SharedJobStore(JobStore):
    """The jobs of a cluster, for the service that leads it.

    Args:
        folder: The folder of this service.
        store: The store rooted in the folder of the cluster.
        leader_token: The token of this service's claims.
        led: The leadership of this service.
        clock: The wall clock.
    """

    is_shared = True

    def __init__(self, folder: str, store: FileStore, leader_token: str, led: Leadership, clock: Clock) -> None:
        super().__init__(folder)
        self._store = store
        self._leader_token = leader_token
        self._led = led
        self._clock = clock
        self._runs = itertools.count(1)
        self.host = socket.gethostname()
        self._term = led.term.term
        self._records = f"{_term_folder(self._term)}/jobs"

    # ---------------------------------------------------------------------------------------------------- programs

    def add_program(self, file: Path, digest: str, script: str) -> str:
        program = super().add_program(file, digest, script)
        try:
            self._confirm()
            # The name holds the digest, so the existing file is the same program.
            with contextlib.suppress(FileExistsError):
                self._store.publish(f"programs/{program}", file.read_bytes())
        except BaseException:
            # The program is not on the storage, so other services could not start a job with it.
            super().delete_program(program)
            raise
        return program

    def programs(self) -> list[StoredProgram]:
        here = {each.id: each.uploaded_ms for each in super().programs()}
        names = [name for name in self._store.list("programs") if PROGRAM.fullmatch(name)]
        found = [StoredProgram(name, here.get(name, 0)) for name in names]
        return sorted(found, key=lambda each: each.uploaded_ms, reverse=True)

    def program(self, program: str) -> Path | None:
        """Return the file of a program, brought here from the storage if need be; None if there is none."""
        found = super().program(program)
        if found is not None or not PROGRAM.fullmatch(program):
            return found
        try:
            data = self._store.read(f"programs/{program}")
        except FileNotFoundError:
            return None
        write_private(self._programs / program, data)
        return self._programs / program

    def delete_program(self, program: str) -> None:
        self._confirm()
        self._store.delete(f"programs/{program}")
        super().delete_program(program)

    # ------------------------------------------------------------------------------------------------------- files

    def program_folder(self, job_id: str) -> Path:
        return self.job_folder(job_id) / f"program-{self._term}"

    def submission(self, job_id: str) -> Path:
        return self.job_folder(job_id) / f"submission-{self._term}.json"

    def archive(self, job_id: str) -> Path:
        return self.job_folder(job_id) / f"answers-{self._term}.json"

    def answers(self, job_id: str) -> dict[str, Any]:
        found = super().answers(job_id)
        if found:
            return found
        try:
            kept = json.loads(self._store.read(f"answers/{job_id}"))
        except (FileNotFoundError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def keep_answers(self, job_id: str) -> None:
        try:
            data = self.archive(job_id).read_bytes()
        except FileNotFoundError:
            return  # the driver was killed before it wrote any answers
        self._confirm()
        self._store.replace(f"answers/{job_id}", data)

    def drop_answers(self, job_id: str) -> None:
        self._confirm()
        self._store.delete(f"answers/{job_id}")
        super().drop_answers(job_id)

    # ------------------------------------------------------------------------------------------------- the drivers

    def new_run(self) -> str:
        return f"{self._term}-{next(self._runs)}"

    def watched_leader(self, run: str) -> dict[str, Any]:
        return {
            "storage": self._store.address,
            "cluster": self._led.term.cluster,
            "term": self._term,
            "token": self._leader_token,
            "lease_s": self._led.lease_s,
            "run": run,
        }

    def outcome(self, record: JobRecord) -> NotedOutcome | None:
        if not record.run:
            return None
        try:
            found = json.loads(self._store.read(outcome_path(record.job_id, record.run)))
            return NotedOutcome(found["status"], found["savepoint"])
        except FileNotFoundError:
            return None

    # ------------------------------------------------------------------------------------------------- the records

    def save(self, record: JobRecord) -> None:
        """Write the record of a job.

        Raises:
            NotLeader: Another service leads; the written record has no effect.
        """
        self._write(record)
        self._led.confirm()

    def _write(self, record: JobRecord) -> None:
        self._confirm()
        self.job_folder(record.job_id).mkdir(mode=0o700, exist_ok=True)
        self._store.replace(f"{self._records}/{record.job_id}", encode_record(record))

    def load(self) -> list[JobRecord]:
        """Copy the jobs of the previous leader into the term of this one.

        Raises:
            NotLeader: Another service leads.
            OSError: The storage does not answer.
        """
        before = next((term for term in range(self._term - 1, 0, -1) if self._is_ready(term)), 0)
        found = [] if before == 0 else self._bring(f"{_term_folder(before)}/jobs")
        now_ms = self._clock.now_ms()
        jobs = [taken_over(record, self.outcome(record), now_ms) for record in found]
        for record in jobs:
            self._write(record)
        self._store.replace(f"{_term_folder(self._term)}/ready", b"")
        self._led.confirm()
        self._drop_left_behind()
        for name in self._store.list():
            if name.startswith("term-") and name < _term_folder(self._term):
                self._store.delete_tree(name)  # no leader reads an earlier term than the newest that is ready
        return sorted(jobs, key=lambda record: (record.submitted_ms, record.job_id))

    def _drop_left_behind(self) -> None:
        """Delete what earlier terms left on this disk: other leaders have forgotten jobs and deleted programs since."""
        programs, jobs = set(self._store.list("programs")), set(self._store.list(self._records))
        for program in super().programs():
            # The program is not on the storage, so other services could not start a job with it.
            if program.id not in programs:
                super().delete_program(program.id)
        for folder in self._jobs.iterdir():
            if (folder / RECORD).exists():
                continue  # the job belongs to a service without standbys
            if folder.name not in jobs:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for each in folder.iterdir():
                if _OF_A_TERM.fullmatch(each.name) and each.is_dir():
                    shutil.rmtree(each, ignore_errors=True)
                elif _OF_A_TERM.fullmatch(each.name):
                    each.unlink(missing_ok=True)

    def _is_ready(self, term: int) -> bool:
        return self._store.exists(f"{_term_folder(term)}/ready")

    def _bring(self, folder: str) -> list[JobRecord]:
        """Return the records of an earlier term. A record that cannot be read is copied into this term unchanged."""
        found = []
        for name in self._store.list(folder):
            if _DRAFT in name:
                continue  # a leader was killed while it wrote this record
            try:
                data = self._store.read(f"{folder}/{name}")
            except FileNotFoundError:
                continue  # the previous leader has just deleted it
            try:
                found.append(decode_record(data, f"{folder}/{name}"))
            except EkornError as error:
                # A service of a later version may have written the record, and may lead again.
                _log.error("a job of the cluster does not run under this leader: %s", error)
                self._confirm()
                self._store.replace(f"{self._records}/{name}", data)
        return found

    def forget(self, job_id: str) -> None:
        self._confirm()
        self._store.delete(f"{self._records}/{job_id}")
        self._store.delete(f"answers/{job_id}")
        for name in self._store.list("outcomes"):
            if name.startswith(f"{job_id}-"):
                self._store.delete(f"outcomes/{name}")
        super().forget(job_id)

    def _confirm(self) -> None:
        """Refuse to write if this service may have been replaced."""
        if not self._led.is_valid:
            raise NotLeader(self._led.why_lost)

    @property
    def settings_of_drivers(self) -> dict[str, str]:
        return {options.LEADER.key: str(self._led.term), options.EXECUTIONS.key: "one"}


def outcome_path(job_id: str, run: str) -> str:
    """Return the path to which the driver of a job writes the outcome.

    >>> outcome_path("00ff", "3-1")
    'outcomes/00ff-3-1'
    """
    return f"outcomes/{job_id}-{run}"


def _term_folder(term: int) -> str:
    return f"term-{term:06d}"
