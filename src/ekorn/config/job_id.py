"""`JobID`: the id of one submitted job."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

__all__ = ["JobID"]

_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, order=True, repr=False)
class JobID:
    """32 hexadecimal digits, which also name the job's checkpoint directory.

    >>> JobID("0" * 32)
    00000000000000000000000000000000
    """

    hex: str

    def __post_init__(self) -> None:
        if not isinstance(self.hex, str) or not _HEX.fullmatch(self.hex):
            raise ValueError(f"a job id has 32 lower-case hexadecimal digits, got {self.hex!r}")

    @staticmethod
    def generate() -> JobID:
        """Return a new random id."""
        return JobID(uuid.uuid4().hex)

    def __str__(self) -> str:
        return self.hex

    def __repr__(self) -> str:
        return self.hex
