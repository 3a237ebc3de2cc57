"""`OperatorIdentifier`: names an operator of a savepoint by its uid or by its id."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ekorn.graph.operator_ids import id_of_uid

__all__ = ["OperatorIdentifier", "identified", "is_operator_id"]

_UID_HASH = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class OperatorIdentifier:
    """An operator, by uid or by id. A plain string stands for a uid wherever an identifier is expected.

    Example:
        >>> OperatorIdentifier.for_uid("count").operator_id == OperatorIdentifier.for_uid("count").operator_id
        True
    """

    operator_id: str
    uid: str | None = None

    @staticmethod
    def for_uid(uid: str) -> OperatorIdentifier:
        """Name an operator by the uid that its program gives it."""
        if not isinstance(uid, str) or not uid:
            raise ValueError(f"a uid must be a non-empty string, got {uid!r}")
        return OperatorIdentifier(id_of_uid(uid), uid)

    @staticmethod
    def for_uid_hash(uid_hash: str) -> OperatorIdentifier:
        """Name an operator by its id, the 32 hex digits that a savepoint lists."""
        if not is_operator_id(uid_hash):
            raise ValueError(
                f"a uid hash must be 32 lower-case hex digits, as a savepoint lists them, got {uid_hash!r}"
            )
        return OperatorIdentifier(uid_hash)

    def __str__(self) -> str:
        return f"uid {self.uid!r}" if self.uid is not None else f"id {self.operator_id}"


def identified(operator: OperatorIdentifier | str) -> OperatorIdentifier:
    """Return the identifier that a program gave, in either form."""
    return operator if isinstance(operator, OperatorIdentifier) else OperatorIdentifier.for_uid(operator)


def is_operator_id(text: object) -> bool:
    """Return whether a text has the form of an operator id."""
    return isinstance(text, str) and _UID_HASH.fullmatch(text) is not None
