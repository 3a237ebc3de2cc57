"""Opens the checkpoint directory of a job, and says whether slots write to it."""

from __future__ import annotations

from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.owner_files import LeaderTerm
from ekorn.checkpoint.signing import read_signing_key
from ekorn.config.settings.job_settings import JobSettings
from ekorn.engine.protocol import Engine
from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import FileStore, open_files
from ekorn.storage.memory import MemoryFiles

__all__ = ["address_for_slots", "check_reachable", "open_directory"]


def open_directory(settings: JobSettings, now_ms: int) -> CheckpointDirectory:
    """Create the job's checkpoint directory and claim it for this driver.

    Raises:
        CheckpointError: The directory cannot be written to, another driver runs on it, or the job has finished or was
            cancelled.
        ConfigurationError: The directory is not one that can be opened, or the signing key cannot be used.
    """
    checkpoints = settings.checkpoints
    # With the storage "jobmanager" a directory may be given as well: state then travels to the driver, and the driver
    # alone writes to the directory, with all state inside the metadata.
    url = checkpoints.directory if checkpoints.enabled else None
    store: FileStore = MemoryFiles() if url is None else open_files(url)
    directory = CheckpointDirectory(
        store,
        str(settings.job_id),
        create_subdir=checkpoints.create_subdir,
        signing_key=read_signing_key(checkpoints.signing_key_file),
    )
    directory.initialise(
        Driver.this_process(),
        now_ms,
        lease_ms=checkpoints.owner_lease_ms,
        names_start=settings.restore_path is not None,
        leader=None if settings.leader is None else LeaderTerm.parse(settings.leader),
    )
    return directory


def address_for_slots(settings: JobSettings, directory: CheckpointDirectory) -> str | None:
    """Return the address that slots write state files to; None if their state travels to the driver."""
    in_files = settings.checkpoints.enabled and settings.checkpoints.storage == "filesystem"
    return directory.address if in_files else None


def check_reachable(settings: JobSettings, directory: CheckpointDirectory, engine: Engine) -> None:
    """See that the slots of an engine can write to the checkpoint directory.

    Raises:
        ConfigurationError: The directory is in the memory of this process, and the slots are other processes.
    """
    written_by_slots = address_for_slots(settings, directory) is not None
    if written_by_slots and directory.files.in_process and not engine.in_process:
        raise ConfigurationError(
            f"{directory.url!r} is in the memory of this process, where slots cannot write; give a "
            "directory that every machine can access (execution.checkpointing.dir)"
        )
