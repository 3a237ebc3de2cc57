"""The modes of files and folders at paths that the user chose: results, checkpoints, savepoints.

Every process that ekorn starts has the umask 077: what it creates without a mode, such as a temporary file, is for
this user alone. Files at paths of the user have the modes that the user's own umask allows, as if no other process had
been started. The process that starts another one passes that umask on in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["PRIVATE_UMASK", "USERS_UMASK", "apply_file_mode", "apply_folder_mode", "with_users_umask"]

PRIVATE_UMASK = 0o077
USERS_UMASK = "EKORN_USERS_UMASK"  # one ekorn process sets it for another, so it is no setting


def with_users_umask(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that is started with the private umask."""
    given = os.environ.get(USERS_UMASK)
    return {**environment, USERS_UMASK: f"{_own_umask():03o}" if given is None else given}


def apply_file_mode(descriptor: int) -> None:
    """Give a file that was just created the mode that the user's umask allows."""
    if (umask := os.environ.get(USERS_UMASK)) is not None:
        os.fchmod(descriptor, 0o666 & ~int(umask, 8))


def apply_folder_mode(path: str) -> None:
    """Give a folder that was just created the mode that the user's umask allows."""
    if (umask := os.environ.get(USERS_UMASK)) is not None:
        os.chmod(path, 0o777 & ~int(umask, 8))


def _own_umask() -> int:
    """Return the umask of this process. Linux shows it; elsewhere it is known only by setting another one."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    umask = os.umask(PRIVATE_UMASK)
    os.umask(umask)
    return umask
