"""Runs in the driver: handles the end or failure of a query or source of Spark that feeds a job."""

from __future__ import annotations

import logging
import threading

from ekorn.connectors.data_frames.row_batches import RowBatches

__all__ = ["asked_to_go_on"]

_log = logging.getLogger(__name__)
_WAIT_S = 0.1


def asked_to_go_on(batches: RowBatches, name: str, failure: str | None, stopping: threading.Event) -> bool:
    """Report an end to the readers; after a failure wait until a restarted job asks for more.

    After an error of the storage the report is tried again: without it the readers would wait for ever.

    Args:
        batches: The folder of the batches.
        name: The name of the query or source.
        failure: Why it failed; None if it ended by itself.
        stopping: Set when the job ends.

    Returns:
        Whether it shall run again.
    """
    told = False
    while not stopping.is_set():
        try:
            if not told:
                batches.end(name, failure)
                told = True
            if failure is None:
                return False
            if batches.go_on_if_asked():
                return True
        except Exception as error:  # storages raise many types
            _log.warning("%s: its readers could not be told that it has ended; trying again: %s", name, error)
        stopping.wait(_WAIT_S)
    return False
