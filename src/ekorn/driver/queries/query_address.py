"""The address at which a driver answers queries of a job's state."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["QueryAddress"]


@dataclass(frozen=True)
class QueryAddress:
    """Where queries of a job are answered, and the token that a client has to know."""

    host: str
    port: int
    token: str = field(repr=False)
