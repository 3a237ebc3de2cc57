"""Resuming a job in one step: finds the newest checkpoint of a program, and gives the job its id back.

A job with the id of an earlier one continues from that job's newest checkpoint, and is kept apart from a driver of it
that still runs (`checkpoint/ownership.py`). So resuming needs no path of a checkpoint, only the id.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from ekorn.checkpoint.file_names import checkpoint_name
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.ownership import living_owner
from ekorn.checkpoint.savepoint_files import find_checkpoints
from ekorn.checkpoint.signing import read_signing_key
from ekorn.clock import SystemClock
from ekorn.config import options
from ekorn.config.job_id import JobID
from ekorn.config.settings.job_settings import JobSettings
from ekorn.errors import ConfigurationError
from ekorn.storage.file_store import open_files
from ekorn.storage.locations import join, shown

__all__ = ["resumed"]

_log = logging.getLogger(__name__)


def resumed(settings: JobSettings) -> JobSettings:
    """Return the settings with the id of the job to resume, if the job is to be resumed and there is one.

    The job to resume is the one with the newest checkpoint among those of the same name in the checkpoint directory. If
    there is none, the job starts from the beginning. A service has given its job an id already: the job keeps it, and
    starts from that checkpoint unless it has one of its own.

    Raises:
        ConfigurationError: There is no checkpoint directory to look in, a path to start from is given as well, or the
            job to resume runs.
    """
    checkpoints = settings.checkpoints
    if not settings.resume:
        return settings
    if not checkpoints.enabled or checkpoints.directory is None:
        raise ConfigurationError(
            f"job {settings.job_name!r} cannot be resumed, because it keeps no checkpoints: call "
            f"env.enable_checkpointing(...) and set {options.CHECKPOINT_DIR.key}"
        )
    if settings.restore_path is not None:
        raise ConfigurationError(
            f"job {settings.job_name!r} is to be resumed, and to start from {settings.restore_path!r}; choose one of "
            "them"
        )
    is_of_service = settings.executions is not None
    if not checkpoints.create_subdir or (options.JOB_ID.key in settings.configuration and not is_of_service):
        return settings  # a directory of one job, or a fixed id: the job continues its own checkpoints in any case
    found = _newest(settings, checkpoints.directory)
    if found is None:
        where = shown(checkpoints.directory)
        _log.warning("job %s starts from the beginning: %s holds no checkpoint of it", settings.job_name, where)
        return settings
    if not is_of_service or found.job_id == str(settings.job_id):
        return replace(settings, job_id=JobID(found.job_id))
    return replace(settings, resume=False, restore_path=_path_of_dead_job(found, checkpoints.directory))


def _path_of_dead_job(found: CheckpointMetadata, directory: str) -> str:
    """Return where a checkpoint is, if no driver runs the job that it belongs to."""
    url = join(directory, found.job_id)
    owner = living_owner(open_files(url), SystemClock().now_ms())
    if owner is not None:
        raise ConfigurationError(
            f"job {found.job_name!r} cannot be resumed, because it is still running: job {found.job_id}, process "
            f"{owner.pid} on host {owner.host!r}"
        )
    return join(url, checkpoint_name(found.checkpoint_id))


def _newest(settings: JobSettings, directory: str) -> CheckpointMetadata | None:
    key = read_signing_key(settings.checkpoints.signing_key_file)
    readable = (each.metadata for each in find_checkpoints(directory, key=key) if each.metadata is not None)
    own = (each for each in readable if each.kind == "checkpoint" and each.job_name == settings.job_name)
    return max(own, key=lambda metadata: (metadata.timestamp_ms, metadata.checkpoint_id), default=None)
