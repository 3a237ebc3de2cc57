"""A job's checkpoint directory: made, claimed, written to, read from and cleaned.

    <checkpoint dir>/<job id>/{shared, taskowned, owner, chk-<n>}

The order that makes a checkpoint: state files (by the slots), then `chk-<n>/_metadata`, then everyone hears of it.
Which files are still needed is decided in `retention.py`; this module does what it is told.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tamias.checkpoint.file_names import METADATA, SHARED, TASK_OWNED, checkpoint_id_of, checkpoint_name, created_for
from tamias.checkpoint.janitor import Janitor
from tamias.checkpoint.metadata import CheckpointMetadata, decode_metadata, encode_metadata
from tamias.checkpoint.ownership import LEASE_MS, OWNER, Driver, History, Ownership, claim
from tamias.errors import CheckpointError, ConfigurationError, CorruptFileError, RestoreError
from tamias.faults import point
from tamias.storage.file_store import FileStore, open_files
from tamias.storage.locations import plain, scheme_of, shown, split_last

__all__ = ["CheckpointDirectory", "GivenUp", "Listing", "resolve"]

_LOG = logging.getLogger(__name__)
PROBE = f"{SHARED}/.probe"
_JOB_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a job's directory, needed or not."""

    checkpoints: tuple[int, ...] = ()  # directories chk-<n>, complete or not
    shared: tuple[str, ...] = ()  # paths shared/<name>


class GivenUp(CorruptFileError):
    """A checkpoint that a replaced driver completed without telling anyone: whole, but not of the job's history."""


class CheckpointDirectory:
    """The checkpoints of one job.

    Args:
        store: The checkpoint directory that the user configured.
        job_id: The job's; the name of its directory below that one.
        create_subdir: False to do without that directory: then the checkpoint directory belongs to this job alone.

    Attributes:
        files: The store rooted in the job's directory: what the paths of its state files are relative to.
    """

    def __init__(self, store: FileStore, job_id: str, *, create_subdir: bool = True) -> None:
        if not _JOB_ID.fullmatch(job_id):
            raise ConfigurationError(f"job id {job_id!r} cannot be the name of a directory")
        self.job_id = job_id
        self.files = store.below(job_id) if create_subdir else store
        self._base = store if create_subdir else None
        self._ownership: Ownership | None = None
        self._terms: dict[int, int] = {}  # of the checkpoints loaded here
        self._janitor = Janitor(self.files.url)

    @property
    def directory(self) -> str:
        """The job's directory, as it is shown to people."""
        return self.files.url

    @property
    def address(self) -> str:
        """The job's directory, in the form `open_files` takes: what a slot is given, and nobody else."""
        return self.files.address

    @property
    def term(self) -> int:
        """The number of this driver among those that owned the directory; part of every file name."""
        return self._owner.term

    @property
    def _owner(self) -> Ownership:
        assert self._ownership is not None, "initialise() comes first"
        return self._ownership

    def initialise(self, driver: Driver, now_ms: int, *, lease_ms: int = LEASE_MS, take_over: bool = False) -> None:
        """Make the directories, prove that they can be written to, and claim them for this driver.

        Raises:
            CheckpointError: They cannot be written to; says why. This is before any input is read.
            DirectoryInUse: Another driver runs on them.
            JobHasFinished: The last driver finished the job, and only did not come to removing them.
        """
        try:
            for directory in (SHARED, TASK_OWNED, OWNER):
                self.files.make_dirs(directory)
            # One name for all drivers: what one that was killed left here goes with the next one's.
            self.files.replace(PROBE, b"")
            self.files.delete(PROBE)
            self._ownership = claim(self.files, driver, now_ms, lease_ms=lease_ms, take_over=take_over)
        except OSError as error:
            raise CheckpointError(
                f"cannot write checkpoints to {self.directory!r}: {error}; "
                "give a directory that this user may write to (execution.checkpointing.dir)"
            ) from error

    def start_from(self, checkpoint_id: int | None) -> None:
        """Record which checkpoint *of this directory* the driver starts from, after `initialise` and before anything
        is deployed; None when it starts empty or from another directory."""
        point("driver-start")
        checkpoint = None
        if checkpoint_id is not None:
            term = self._terms.get(checkpoint_id)
            checkpoint = (checkpoint_id, self.load(checkpoint_id).term if term is None else term)
        self._owner.start_from(checkpoint, self.highest_id() + 1)
        point("driver-started")

    def renew(self, now_ms: int) -> None:
        """Show that this driver lives. Call it from the loop, as often as convenient."""
        try:
            self._owner.renew(now_ms)
        except OSError as error:  # a storage that hiccups is no reason to stop: ownership does not rest on this
            _LOG.warning("could not renew the claim on %s: %s", self.directory, error)

    def check_owner(self) -> None:
        """Raise `Fenced` when another driver has taken over."""
        self._owner.check()

    def release(self) -> None:
        """At the end of the job: the next driver need not wait."""
        self._janitor.wait()
        self._owner.release()

    # ------------------------------------------------------------------------------------------------------- writing

    def complete(self, metadata: CheckpointMetadata) -> CheckpointMetadata:
        """Make a checkpoint exist; on return it is durable and ours, and everyone may hear of it.

        Returns:
            The metadata as written, with this driver's term.

        Raises:
            Fenced: Another driver has taken over. Tell nobody that the checkpoint is complete, and delete nothing.
            OSError: The metadata could not be written; whether it is there is then unknown until `discard`.
        """
        metadata = replace(metadata, term=self.term)
        self._check_paths(metadata)
        self._owner.publishing(metadata.checkpoint_id)
        path = f"{checkpoint_name(metadata.checkpoint_id)}/{METADATA}"
        data = encode_metadata(metadata)
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
                    f"checkpoint {metadata.checkpoint_id} refers to {path!r}, which goes when its own checkpoint goes; "
                    f"state kept over several checkpoints belongs in {SHARED}/"
                )

    def _settle_conflict(self, path: str, data: bytes) -> None:
        """The name is taken: by this very checkpoint, whose writing seemed to fail, or by a replaced driver's."""
        found = self.files.read(path)
        if found == data:
            return
        other = decode_metadata(found, f"{self.directory}/{path}")
        if other.term >= self.term:
            raise CheckpointError(f"{self.directory}/{path} exists already; checkpoint ids are never used twice")
        _LOG.warning("removing %s/%s: its driver (term %d) had been replaced", self.directory, path, other.term)
        self.files.delete(path)
        self.files.publish(path, data)

    # ------------------------------------------------------------------------------------------------------- reading

    def completed_ids(self) -> list[int]:
        """Checkpoints that were completed, oldest first; whether they can be read is another question."""
        self._janitor.wait()  # what is about to go is not to be chosen
        history = History(self.files)
        newest, publishing = history.newest_id(), history.publishing_id()
        candidates = {*self.listing(shared=False).checkpoints, *([publishing] if publishing is not None else [])}
        found = {i for i in candidates if self.files.exists(f"{checkpoint_name(i)}/{METADATA}")}
        # Its loss must be noticed: to go back to the one before without a word would be to repeat output silently.
        return sorted(found | ({newest} if newest is not None else set()))

    def highest_id(self) -> int:
        """The highest checkpoint id ever begun here, 0 when there is none: the next one must be above it."""
        listing = self.listing()
        written = (created_for(path) or 0 for path in listing.shared)
        return max((*listing.checkpoints, *written, History(self.files).highest_id()))

    def load(self, checkpoint_id: int) -> CheckpointMetadata:
        """The metadata of one checkpoint of this job.

        Raises:
            CorruptFileError: It is missing, damaged, or not this checkpoint's.
            GivenUp: It is from a driver that had been replaced.
        """
        metadata = _load(self.files, checkpoint_id, self.job_id if self._base is not None else None)
        self._terms[checkpoint_id] = metadata.term
        return metadata

    def is_own(self, metadata: CheckpointMetadata) -> bool:
        """Whether it is of this job, which goes on under another id where no directory is named after it."""
        return self._base is None or metadata.job_id == self.job_id

    def accept_savepoint(self, metadata: CheckpointMetadata, where: str) -> None:
        """Let a savepoint of this job count among its checkpoints.

        Raises:
            GivenUp: A replaced driver completed it after its successor had started from something older.
        """
        _check_history(self.files, metadata, where)
        self._terms[metadata.checkpoint_id] = metadata.term

    def listing(self, *, shared: bool = True) -> Listing:
        """What lies there now."""
        ids = (checkpoint_id_of(name) for name in self.files.list())
        return Listing(
            checkpoints=tuple(sorted(i for i in ids if i is not None)),
            shared=tuple(f"{SHARED}/{name}" for name in self.files.list(SHARED)) if shared else (),
        )

    # ------------------------------------------------------------------------------------------------------ cleaning

    def discard(self, checkpoint_id: int, paths: Iterable[str] = ()) -> None:
        """Remove one checkpoint's directory, then the given files, which nothing else refers to.

        The metadata goes first, and where it cannot be deleted nothing else is: it may exist although writing it
        seemed to fail, and a checkpoint that exists must be whole. On remote storage this happens in the background.
        """
        paths = tuple(paths)

        def clean() -> None:
            self._owner.check()
            directory = checkpoint_name(checkpoint_id)
            self.files.delete(f"{directory}/{METADATA}")
            point("discard")
            self.files.delete_tree(directory)
            for path in paths:
                self.files.delete(path)

        self._do_or_leave_to_janitor(clean)

    def delete_files(self, paths: Iterable[str]) -> None:
        """Remove single state files that no checkpoint, complete or half written, refers to; as `discard` does."""
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
        """Remove all checkpoints and the job's directory, at its end.

        Args:
            finished: All has been done. Should this driver die while it deletes, the next one is told, and does not
                begin from nothing what has been done already.
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


def resolve(path: str) -> tuple[FileStore, CheckpointMetadata]:
    """Find the checkpoint or savepoint that a user names, to restore from it.

    Args:
        path: Its directory or its `_metadata` file, as a local path or a URL.

    Returns:
        The store that its files' paths are relative to, and its metadata.

    Raises:
        RestoreError: There is no such checkpoint.
        CorruptFileError: It cannot be read.
    """
    path = plain(path)
    above, last = split_last(path)
    directory = above if last == METADATA else path
    if not scheme_of(directory):
        directory = os.path.realpath(directory)  # the user may point at it by a link, `latest` for one
    store = open_files(directory)
    path = shown(path)
    if not store.exists(METADATA):
        raise RestoreError(f"no checkpoint at {path!r}: {_hint(store)}")
    parent, name = split_last(store.address)
    whole = decode_metadata(store.read(METADATA), f"{store.url}/{METADATA}")
    if whole.kind == "savepoint":
        return store, whole  # its files are beside its metadata, so that it can be moved
    checkpoint_id = checkpoint_id_of(name)
    if checkpoint_id is None:
        raise RestoreError(
            f"{path!r} holds checkpoint {whole.checkpoint_id}, but is not named chk-{whole.checkpoint_id}: a "
            "checkpoint is not whole without the directories beside it; give the original, or move a savepoint instead"
        )
    job_files = open_files(parent)
    return job_files, _load(job_files, checkpoint_id)


def _load(job_files: FileStore, checkpoint_id: int, job_id: str | None = None) -> CheckpointMetadata:
    directory = checkpoint_name(checkpoint_id)
    where = f"{job_files.url}/{directory}/{METADATA}"
    try:
        data = job_files.read(f"{directory}/{METADATA}")
    except FileNotFoundError:
        raise CorruptFileError(where, "no such file", "the metadata of a completed checkpoint") from None
    metadata = decode_metadata(data, where)
    # First whose it is: somebody else's may look like one that this job had given up, which nobody would miss.
    if metadata.checkpoint_id != checkpoint_id or job_id not in (None, metadata.job_id):
        found = f"checkpoint {metadata.checkpoint_id} of job {metadata.job_id}"
        raise CorruptFileError(where, found, f"checkpoint {checkpoint_id}{f' of job {job_id}' if job_id else ''}")
    _check_history(job_files, metadata, where)
    return metadata


def _check_history(job_files: FileStore, metadata: CheckpointMetadata, where: str) -> None:
    if not History(job_files).holds(metadata.checkpoint_id, metadata.term):
        found = f"a {metadata.kind} of a driver (term {metadata.term}) that had been replaced when it completed it"
        raise GivenUp(where, found, "one of the job's own history")


def _hint(store: FileStore) -> str:
    names = store.list()
    if not names:
        return "there is no such directory, or it is empty"
    inside = [name for name in names if store.exists(f"{name}/{METADATA}")]
    if inside:
        return f"it holds no {METADATA} itself; give one of the checkpoints below it: {', '.join(sorted(inside))}"
    if any(checkpoint_id_of(name) is not None for name in names):
        return f"the checkpoints below it were never completed (no {METADATA})"
    return f"it holds no {METADATA}; a checkpoint is complete when that file exists"
