"""A job's checkpoint directory: created, claimed, written to, read from and cleaned up.

    <checkpoint dir>/<job id>/{shared, taskowned, owner, chk-<n>}

A checkpoint comes into being in this order: the slots write the state files, the driver writes `chk-<n>/_metadata`,
and only then is the checkpoint announced. `retention.py` decides which files are still needed; this module
deletes what it is told to delete.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.file_names import (
    METADATA,
    SHARED,
    TASK_OWNED,
    checkpoint_id_of,
    checkpoint_name,
    created_for,
    tombstone_path,
)
from ekorn.checkpoint.history import History
from ekorn.checkpoint.janitor import Janitor
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.checkpoint.owner_files import OWNER, LeaderTerm, encode_owner_file
from ekorn.checkpoint.ownership import LEASE_MS, OwnCheckpoint, Ownership, claim
from ekorn.checkpoint.signing import SigningKey
from ekorn.errors import CheckpointError, ConfigurationError, CorruptFileError
from ekorn.faults import point
from ekorn.storage.file_store import FileStore
from ekorn.storage.second_look import second_look

__all__ = ["AbandonedCheckpoint", "CheckpointDirectory", "Listing", "load_checkpoint"]

_LOG = logging.getLogger(__name__)
PROBE = f"{SHARED}/.probe"
_JOB_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of a job's directory, whether it is needed or not."""

    checkpoints: tuple[int, ...] = ()  # directories chk-<n>, completed or not
    shared: tuple[str, ...] = ()  # paths shared/<name>


class AbandonedCheckpoint(CorruptFileError):
    """A checkpoint that is not in the job's history: a replaced driver completed it, or a driver was deleting it."""


class CheckpointDirectory:
    """The directory that holds the checkpoints of one job.

    Args:
        store: The checkpoint directory that the user configured.
        job_id: The job's id, which names the job's directory below the configured one.
        create_subdir: False to write into the configured directory itself, which then belongs to this job alone.
        janitor: Deletes files in the background where the storage is remote; by default on a thread of its own.
        signing_key: Signs checkpoints; with a key, a checkpoint that is not signed with it is refused.

    Attributes:
        files: The store rooted in the job's directory. The paths of state files are relative to it.
    """

    def __init__(
        self,
        store: FileStore,
        job_id: str,
        *,
        create_subdir: bool = True,
        janitor: Janitor | None = None,
        signing_key: SigningKey | None = None,
    ) -> None:
        if not _JOB_ID.fullmatch(job_id):
            raise ConfigurationError(f"job id {job_id!r} cannot be the name of a directory")
        self.job_id = job_id
        self.signing_key = signing_key
        self.files = store.below(job_id) if create_subdir else store
        self._base = store if create_subdir else None
        self._ownership: Ownership | None = None
        self._terms: dict[int, int] = {}  # by checkpoint: the term of the driver that wrote it, for those loaded here
        self._janitor = janitor or Janitor(self.files.url)

    @property
    def url(self) -> str:
        """The job's directory as people may see it, without credentials."""
        return self.files.url

    @property
    def address(self) -> str:
        """The job's directory in the form that `open_files` takes. Only slots are given it."""
        return self.files.address

    @property
    def term(self) -> int:
        """The number of this driver among the drivers that have owned the directory; part of every file name."""
        return self._owner.term

    @property
    def _owner(self) -> Ownership:
        assert self._ownership is not None, "initialise() comes first"
        return self._ownership

    @property
    def follows_cancellation(self) -> bool:
        """Whether the job was cancelled before this driver was started: it starts from what the user has named."""
        return self._owner.follows_cancellation

    def initialise(
        self,
        driver: Driver,
        now_ms: int,
        *,
        lease_ms: int = LEASE_MS,
        take_over: bool = False,
        names_start: bool = False,
        leader: LeaderTerm | None = None,
    ) -> None:
        """Create the directories, prove that they can be written to, and claim them for this driver.

        The loop calls this before any input is read.

        Args:
            driver: The driver.
            now_ms: The wall clock.
            lease_ms: How long an owner on another host may be silent before it is considered dead.
            take_over: Replace an owner even if it is alive.
            names_start: Whether the user has named what the driver starts from.
            leader: The leader of the services that started the driver; None for a driver without one.

        Raises:
            CheckpointError: The directories cannot be written to.
            DirectoryInUse: Another driver runs on them.
            JobWasCancelled: The job was cancelled, and the user has not named what it starts from.
            JobHasFinished: The last driver finished the job and ended before it had removed them.
        """
        try:
            for directory in (SHARED, TASK_OWNED, OWNER):
                self.files.make_dirs(directory)
            # All drivers use the same name, so the next driver removes the probe of one that was killed here.
            self.files.replace(PROBE, b"")
            self.files.delete(PROBE)
            self._ownership = claim(
                self.files,
                driver,
                now_ms,
                lease_ms=lease_ms,
                take_over=take_over,
                job_id=self.job_id,
                names_start=names_start,
                leader=leader,
            )
        except OSError as error:
            raise CheckpointError(
                f"cannot write checkpoints to {self.url!r}: {error}; "
                "give a directory that this user may write to (execution.checkpointing.dir)"
            ) from error

    def start_from(self, checkpoint_id: int | None) -> None:
        """Record which checkpoint *of this directory* the driver starts from.

        Call it after `initialise` and before anything is deployed.

        Args:
            checkpoint_id: None if the driver starts empty or from another directory.
        """
        point("driver-start")
        checkpoint = None
        if checkpoint_id is not None:
            term = self._terms.get(checkpoint_id)
            checkpoint = OwnCheckpoint(checkpoint_id, self.load(checkpoint_id).term if term is None else term)
        self._owner.start_from(checkpoint, self.highest_id() + 1)
        point("driver-started")

    def renew(self, now_ms: int) -> None:
        """Show that this driver is alive. This is cheap enough to call in every turn of the loop."""
        try:
            self._owner.renew(now_ms)
        except OSError as error:  # ownership does not depend on renewal, so a storage error is no reason to stop
            _LOG.warning("could not renew the claim on %s: %s", self.url, error)

    def check_owner(self) -> None:
        """Raise `Fenced` if another driver has taken over."""
        self._owner.check()

    def note_cancelled(self) -> None:
        """Note that the job was cancelled: no driver continues it without being told what to start from."""
        try:
            self._owner.note_cancelled()
        except OSError as error:  # the job ends all the same
            _LOG.warning("could not record in %s that the job was cancelled: %s", self.url, error)

    def release(self) -> None:
        """Give up ownership at the end of the job, so that the next driver need not wait."""
        self._janitor.wait()
        self._owner.release()

    # ------------------------------------------------------------------------------------------------------- writing

    def complete(self, metadata: CheckpointMetadata) -> CheckpointMetadata:
        """Publish a checkpoint. When this returns, the checkpoint is durable and may be announced.

        Returns:
            The metadata as written, with this driver's term.

        Raises:
            Fenced: Another driver has taken over. Announce no checkpoint, and delete nothing.
            OSError: The metadata could not be written. Whether it exists is unknown until `discard`.
        """
        metadata = replace(metadata, term=self.term)
        self._check_paths(metadata)
        self._owner.publishing(metadata.checkpoint_id)
        path = f"{checkpoint_name(metadata.checkpoint_id)}/{METADATA}"
        data = encode_metadata(metadata, self.signing_key)
        try:
            self.files.publish(path, data)
        except FileExistsError:
            self._settle_conflict(path, data)
        self._owner.published(metadata.checkpoint_id)
        return metadata

    def _check_paths(self, metadata: CheckpointMetadata) -> None:
        own = checkpoint_name(metadata.checkpoint_id)
        for path in metadata.paths():
            directory = path.split("/")[0]
            if directory not in (own, SHARED, TASK_OWNED):
                raise CheckpointError(
                    f"checkpoint {metadata.checkpoint_id} refers to {path!r}, which is deleted with the checkpoint it "
                    f"was written for; state kept over several checkpoints belongs in {SHARED}/"
                )

    def _settle_conflict(self, path: str, data: bytes) -> None:
        """Handle a name that is taken: by this checkpoint, whose writing seemed to fail, or by a replaced driver's."""
        found = self.files.read(path)
        if found == data:
            return
        other = decode_metadata(found, f"{self.url}/{path}")  # signed or not: only its term counts
        if other.term >= self.term:
            raise CheckpointError(f"{self.url}/{path} already exists; checkpoint ids are never used twice")
        _LOG.warning("removing %s/%s: its driver (term %d) had been replaced", self.url, path, other.term)
        self.files.delete(path)
        self.files.publish(path, data)

    # ------------------------------------------------------------------------------------------------------- reading

    def completed_ids(self) -> list[int]:
        """Return the checkpoints that were completed, oldest first. Some of them may be unreadable."""
        self._janitor.wait()  # a checkpoint that is about to be deleted must not be chosen
        history = History(self.files)
        newest, publishing = history.newest_id(), history.publishing_id()
        candidates = {*self.listing(shared=False).checkpoints, *([publishing] if publishing is not None else [])}
        found = {i for i in candidates if self.files.exists(f"{checkpoint_name(i)}/{METADATA}")}
        # The loss of the newest checkpoint must be noticed: restoring the one before it silently would repeat output.
        return sorted(found | ({newest} if newest is not None else set()))

    def highest_id(self) -> int:
        """Return the highest checkpoint id ever begun here, 0 if there is none. The next id must be above it."""
        listing = self.listing()
        written = [number for path in listing.shared if (number := created_for(path)) is not None]
        return max((*listing.checkpoints, *written, History(self.files).highest_id()))

    def load(self, checkpoint_id: int) -> CheckpointMetadata:
        """Read the metadata of one checkpoint of this job.

        Raises:
            CorruptFileError: The metadata is missing, damaged, or not this checkpoint's.
            AbandonedCheckpoint: A driver that had been replaced wrote it.
        """
        job_id = self.job_id if self._base is not None else None
        metadata = load_checkpoint(self.files, checkpoint_id, job_id, key=self.signing_key)
        self._terms[checkpoint_id] = metadata.term
        return metadata

    def is_own(self, metadata: CheckpointMetadata) -> bool:
        """Return whether a checkpoint is of this job.

        Without a directory named after the job id, the job continues under another id.
        """
        return self._base is None or metadata.job_id == self.job_id

    def accept_savepoint(self, metadata: CheckpointMetadata, where: str) -> None:
        """Let a savepoint of this job count among its checkpoints.

        Raises:
            AbandonedCheckpoint: A replaced driver completed it after its successor had started from something older.
        """
        _check_history(self.files, metadata, where)
        self._terms[metadata.checkpoint_id] = metadata.term

    def listing(self, *, shared: bool = True) -> Listing:
        """List the directory as it is now."""
        ids = (checkpoint_id_of(name) for name in self.files.list())
        return Listing(
            checkpoints=tuple(sorted(i for i in ids if i is not None)),
            shared=tuple(f"{SHARED}/{name}" for name in self.files.list(SHARED)) if shared else (),
        )

    # ------------------------------------------------------------------------------------------------------ cleaning

    def discard(self, checkpoint_id: int, paths: Iterable[str] = ()) -> None:
        """Remove the directory of one checkpoint, then the given files, which nothing else refers to.

        The metadata is deleted first. If it cannot be deleted, nothing else is: the metadata may exist although
        writing it seemed to fail, and a checkpoint that exists must be whole. On remote storage the deletion happens
        in the background.
        """
        paths = tuple(paths)

        def clean() -> None:
            self._owner.check()
            # Between a check and a deletion, another driver may take over and start from this checkpoint, whose
            # metadata may exist although writing it seemed to fail: therefore the driver writes a tombstone, and checks
            # after it.
            self.files.replace(tombstone_path(checkpoint_id, self.term), encode_owner_file({"term": self.term}))
            point("tombstone")
            self._owner.check()
            directory = checkpoint_name(checkpoint_id)
            self.files.delete(f"{directory}/{METADATA}")
            point("discard")
            self.files.delete_tree(directory)
            for path in paths:
                self.files.delete(path)

        self._do_or_leave_to_janitor(clean)

    def delete_files(self, paths: Iterable[str]) -> None:
        """Remove state files that no checkpoint, completed or in flight, refers to. In the background as `discard`."""
        paths = tuple(paths)
        if not paths:
            return

        def clean() -> None:
            self._owner.check()
            for path in paths:
                self.files.delete(path)

        self._do_or_leave_to_janitor(clean)

    def _do_or_leave_to_janitor(self, clean: Callable[[], None]) -> None:
        if self.files.exclusive:
            clean()
        else:
            self._janitor.add(clean)

    def delete_everything(self, *, finished: bool = False) -> None:
        """Remove all checkpoints and the job's directory, at the end of the job.

        Args:
            finished: The job has finished. If this driver dies while it deletes, the next one finds a note and does not
                run the finished job again from the beginning.
        """
        if finished:
            self._owner.check()
            self._owner.release(finished=True)
        for checkpoint_id in self.listing(shared=False).checkpoints:
            self.discard(checkpoint_id)
        self._janitor.wait()
        self._owner.check()
        for directory in (SHARED, TASK_OWNED, OWNER):
            self.files.delete_tree(directory)
            point("delete-everything")
        if self._base is not None:
            self._base.delete_tree(self.job_id)


def load_checkpoint(
    job_files: FileStore, checkpoint_id: int, job_id: str | None = None, *, key: SigningKey | None = None
) -> CheckpointMetadata:
    """Read the metadata of one checkpoint in a job's directory.

    Args:
        job_files: The store rooted in the job's directory.
        checkpoint_id: The checkpoint.
        job_id: The job that the checkpoint must be of; None for any job.
        key: The key that the checkpoint must be signed with; None accepts what is not signed.

    Raises:
        CorruptFileError: The metadata is missing, damaged, or not this checkpoint's.
        AbandonedCheckpoint: A driver that had been replaced wrote it.
    """
    directory = checkpoint_name(checkpoint_id)
    where = f"{job_files.url}/{directory}/{METADATA}"

    def read() -> CheckpointMetadata:
        try:
            data = job_files.read(f"{directory}/{METADATA}")
        except FileNotFoundError:
            raise CorruptFileError(where, "no such file", "the metadata of a completed checkpoint") from None
        return decode_metadata(data, where, key)

    metadata = second_look(read)
    # The job is checked before the history: a checkpoint of another job may look like an abandoned one of this job,
    # which is passed over without an error.
    if metadata.checkpoint_id != checkpoint_id or job_id not in (None, metadata.job_id):
        found = f"checkpoint {metadata.checkpoint_id} of job {metadata.job_id}"
        raise CorruptFileError(where, found, f"checkpoint {checkpoint_id}{f' of job {job_id}' if job_id else ''}")
    _check_history(job_files, metadata, where)
    # The tombstone disappears after the metadata, so the metadata is looked for once more after the tombstone.
    discarded = History(job_files).is_discarded(checkpoint_id, metadata.term)
    if discarded or not job_files.exists(f"{directory}/{METADATA}"):
        raise AbandonedCheckpoint(where, "a checkpoint that a driver was deleting", "one of the job's own history")
    return metadata


def _check_history(job_files: FileStore, metadata: CheckpointMetadata, where: str) -> None:
    if not History(job_files).holds(metadata.checkpoint_id, metadata.term):
        found = f"a {metadata.kind} of a driver (term {metadata.term}) that had been replaced when it completed it"
        raise AbandonedCheckpoint(where, found, "one of the job's own history")
