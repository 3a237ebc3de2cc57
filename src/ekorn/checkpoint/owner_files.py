"""The small files in `owner/` of a checkpoint directory: JSON objects with a checksum, numbered by term.

`docs/formats/metadata.md` describes them; `ownership.py` states the rules that they serve.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from ekorn.checkpoint.driver_process import Driver
from ekorn.errors import CorruptFileError
from ekorn.storage.file_store import FileStore

__all__ = [
    "OWNER",
    "Claim",
    "LeaderTerm",
    "Start",
    "encode_owner_file",
    "newest_claim",
    "owner_path",
    "read_claim",
    "read_owner_file",
    "read_start",
]

OWNER = "owner"

Kind = Literal["claim", "start", "entry", "progress", "alive", "cancelled"]


class LeaderTerm(NamedTuple):
    """The leader of a cluster of services that a driver was started by."""

    cluster: str
    term: int

    @staticmethod
    def parse(text: str) -> LeaderTerm:
        """Read the form that a driver is given.

        >>> LeaderTerm.parse("8a3c:7")
        LeaderTerm(cluster='8a3c', term=7)
        """
        cluster, _, term = text.rpartition(":")
        return LeaderTerm(cluster, int(term))

    def __str__(self) -> str:
        return f"{self.cluster}:{self.term}"


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of `owner/claim-<term>`."""

    term: int
    driver: Driver
    claimed_ms: int
    leader: LeaderTerm | None = None  # set for a driver that a service with standbys started
    lease_ms: int | None = None  # how long the driver may be silent; None in claims of earlier versions

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        body: dict[str, Any] = {"term": self.term, "driver": asdict(self.driver), "claimed_ms": self.claimed_ms}
        if self.leader is not None:
            body["leader"] = self.leader._asdict()
        if self.lease_ms is not None:
            body["lease_ms"] = self.lease_ms
        return encode_owner_file(body)


@dataclass(frozen=True, slots=True)
class Start:
    """The content of `owner/start-<term>`: where a driver's history begins."""

    term: int
    checkpoint_id: int | None  # None: the driver started empty, or from another directory
    checkpoint_term: int | None
    first_id: int  # no earlier driver publishes a checkpoint with this number or a higher one

    def encode(self, token: str) -> bytes:
        """Return the bytes of the file, signed with the driver's token."""
        return encode_owner_file(asdict(self) | {"token": token})


def newest_claim(store: FileStore) -> Claim | None:
    """Return the claim with the highest term.

    A listing may be stale, so it only says where to begin: every term after it is looked up by name.
    """
    numbers = [name.partition("-")[2] for name in store.list(OWNER) if name.startswith("claim-")]
    term = max((int(number) for number in numbers if number.isdigit()), default=0)
    newest = read_claim(store, term) if term else None
    term = newest.term if newest is not None else 0
    while (found := read_claim(store, term + 1)) is not None:
        newest, term = found, term + 1
    return newest


def read_claim(store: FileStore, term: int) -> Claim | None:
    """Read the claim of a term; None if no driver has claimed the term."""
    body = read_owner_file(store, owner_path("claim", term))
    if body is None:
        return None
    try:
        leader = body.get("leader")
        started_by = None if leader is None else LeaderTerm(str(leader["cluster"]), int(leader["term"]))
        lease_ms = None if body.get("lease_ms") is None else int(body["lease_ms"])
        return Claim(term, Driver(**body["driver"]), int(body["claimed_ms"]), started_by, lease_ms)
    except (KeyError, TypeError, ValueError):  # the claim is damaged, but its term is taken all the same
        return Claim(term, Driver("unknown", 0, None, ""), 0)


def read_start(store: FileStore, term: int) -> Start | None:
    """Read where the driver of a term started from; None if it never started.

    Raises:
        CorruptFileError: The file is damaged. Without it the valid checkpoints are unknown, and a guess could lose
            or repeat records.
    """
    body = read_owner_file(store, owner_path("start", term))
    if body is None:
        return None
    if body.get("term") != term:
        where = f"{store.url}/{owner_path('start', term)}"
        raise CorruptFileError(where, "a damaged file", f"where driver {term} of the job started from")

    def number(key: str) -> int | None:
        found = body.get(key)
        return found if isinstance(found, int) else None

    return Start(term, number("checkpoint_id"), number("checkpoint_term"), number("first_id") or 1)


def owner_path(kind: Kind, term: int) -> str:
    """Return the path of a file in the job's directory.

    >>> owner_path("claim", 3)
    'owner/claim-000003'
    """
    return f"{OWNER}/{kind}-{term:06d}"


def read_owner_file(store: FileStore, path: str) -> dict[str, Any] | None:
    """Read a file; None if it does not exist, an empty object if its content is not what was written."""
    try:
        body = json.loads(store.read(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict) or body.pop("crc32", None) != _checksum(body):
        return {}
    return body


def encode_owner_file(body: dict[str, Any]) -> bytes:
    """Return the bytes of a file: the body with its checksum."""
    return json.dumps(body | {"crc32": _checksum(body)}).encode("utf-8")


def _checksum(body: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(body, sort_keys=True).encode('utf-8')):08x}"
