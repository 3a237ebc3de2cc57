"""The files that services which stand by for each other keep on their shared storage, apart from their jobs.

- `cluster`: the id of the cluster, made once. A storage without this file does not belong to the cluster.
- `owner/`: claims and signs of life of leaders (`leadership.py`).
- `members/`: a file for each service: where it listens, and a number that grows while it lives.
- `token`: the token of the REST API, which all of them accept.
"""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
from dataclasses import asdict, dataclass, replace

from ekorn.storage.file_store import FileStore

__all__ = ["ClusterFiles", "Member"]

_CLUSTER = "cluster"
_TOKEN = "token"
_MEMBERS = "members"


@dataclass(frozen=True)
class Member:
    """A service of the cluster.

    Attributes:
        token: The token of its claims, which tells it apart from all others.
        address: Where its REST API is.
        host: Its machine.
        pid: Its process.
        beat: A number that grows while it lives.
    """

    token: str
    address: str
    host: str
    pid: int
    beat: int = 0


class ClusterFiles:
    """The files of a cluster. Every method may raise `OSError`.

    Args:
        store: The store rooted in the folder of the cluster.
    """

    def __init__(self, store: FileStore) -> None:
        self.store = store
        self.cluster = self._made(_CLUSTER, secrets.token_hex(8))
        self.web_token = self._made(_TOKEN, secrets.token_urlsafe(32))

    def _made(self, path: str, wish: str) -> str:
        """Return the text of a file that is created only once."""
        with contextlib.suppress(FileExistsError):  # the cluster exists already
            self.store.publish(path, wish.encode())
        return self.store.read(path).decode()

    def check(self) -> None:
        """Check that the storage is the one that this service knows.

        Raises:
            OSError: It is not: it is not mounted, or was removed. A leader on it would lead a cluster without jobs.
        """
        if not self.store.exists(_CLUSTER) or self.store.read(_CLUSTER).decode() != self.cluster:
            raise OSError(errno.ENODEV, "the storage of the cluster is gone or replaced by another", self.store.url)

    def show(self, member: Member) -> Member:
        """Show that a member lives; return it with its next number."""
        shown = replace(member, beat=member.beat + 1)
        self.store.replace(f"{_MEMBERS}/{member.token}", json.dumps(asdict(shown)).encode())
        return shown

    def forget(self, token: str) -> None:
        """Remove a member that has ended."""
        self.store.delete(f"{_MEMBERS}/{token}")

    def member(self, token: str) -> Member | None:
        """Return a member; None if it is not known."""
        try:
            found = json.loads(self.store.read(f"{_MEMBERS}/{token}"))
            return Member(**found)
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def members(self) -> list[Member]:
        """Return all members, including those that were killed."""
        found = (self.member(name) for name in self.store.list(_MEMBERS) if ".draft-" not in name)
        return [each for each in found if each is not None]
