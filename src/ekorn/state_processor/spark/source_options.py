"""Runs in Spark's Python processes: the options of the data sources of savepoints."""

from __future__ import annotations

from collections.abc import Mapping

from ekorn.errors import ConfigurationError
from ekorn.state_processor.operator_identifier import OperatorIdentifier, is_operator_id
from ekorn.state_processor.reading.entry_rows import rows_of_entries
from ekorn.state_processor.reading.operator_state_rows import rows_of_operator_state
from ekorn.state_processor.reading.state_rows import (
    StateTable,
    rows_by_key,
    rows_of_changes,
    rows_of_state,
    rows_of_timers,
)
from ekorn.state_processor.reading.stored_savepoint import (
    StoredOperator,
    StoredSavepoint,
    configured_key,
    open_savepoint,
)

__all__ = ["SourceOptions"]

_READ = {
    *("path", "operatoruid", "statevarname", "readregisteredtimers", "flattencollectiontypes", "changestart"),
    *("operatorstate", "storedform"),
}
_METADATA = {"path"}
_WRITE = {
    *("path", "operatoruid", "keycolumn", "maxparallelism", "parallelism", "basesavepoint"),
    *("operatorstate", "operatorstatekind", "storedform", "statevarname", "statekind", "writeregisteredtimers"),
}


class SourceOptions:
    """The options of one read or write. Their names are not sensitive to case, as everywhere in Spark."""

    def __init__(self, given: Mapping[str, str], *, writing: bool = False, metadata: bool = False) -> None:
        known = _WRITE if writing else _METADATA if metadata else _READ
        self._given = {name.lower(): value for name, value in given.items()}
        unknown = sorted(name for name in given if name.lower() not in known)
        if unknown:
            source = "ekorn-state-metadata" if metadata else "ekorn-state"
            raise ConfigurationError(f"{source} has no option {unknown[0]!r}; it has {', '.join(sorted(known))}")

    @property
    def path(self) -> str:
        """The savepoint."""
        return self.needed("path", "load(path) or save(path) names the savepoint")

    @property
    def operator(self) -> OperatorIdentifier:
        """The operator: its uid, or its id of 32 hex digits."""
        uid = self.needed("operatorUid", "it names the operator whose state is read or written")
        return OperatorIdentifier.for_uid_hash(uid) if is_operator_id(uid) else OperatorIdentifier.for_uid(uid)

    def needed(self, name: str, why: str) -> str:
        """Return an option that must be given."""
        value = self._given.get(name.lower())
        if not value:
            raise ConfigurationError(f"ekorn-state needs the option {name}: {why}")
        return value

    def text(self, name: str, default: str = "") -> str:
        """Return an option."""
        return self._given.get(name.lower(), default)

    def number(self, name: str, default: int) -> int:
        """Return an option that is a whole number."""
        text = self.text(name, str(default))
        if not text.isdigit() or not 1 <= int(text) <= 1 << 15:
            raise ConfigurationError(f"the option {name} is a number from 1 to 32768, got {text!r}")
        return int(text)

    def parallelism(self, max_parallelism: int) -> int:
        """Return the number of parts that are written.

        Raises:
            ConfigurationError: It is larger than the number of key groups.
        """
        wanted = self.number("parallelism", min(8, max_parallelism))
        if wanted > max_parallelism:
            raise ConfigurationError(
                f"the option parallelism is {wanted}, more than the {max_parallelism} key groups of the operator: "
                "a part has at least one key group; set parallelism lower, or maxParallelism higher"
            )
        return wanted

    def flag(self, name: str, *, default: bool) -> bool:
        """Return an option that is true or false."""
        text = self.text(name, str(default)).lower()
        if text not in ("true", "false"):
            raise ConfigurationError(f"the option {name} is true or false, got {text!r}")
        return text == "true"

    def savepoint(self) -> StoredSavepoint:
        """Open the savepoint."""
        return open_savepoint(self.path, configured_key())

    def table(self) -> StateTable:
        """Return the table of state that the options name."""
        stored, state = self.savepoint().operator(self.operator), self.text("stateVarName")
        of_operator = self.text("operatorState")
        if of_operator:
            self.refuse(
                "operatorState", "stateVarName", "readRegisteredTimers", "changeStart", "flattenCollectionTypes"
            )
            return rows_of_operator_state(stored, of_operator, stored_form=self.flag("storedForm", default=False))
        if self.flag("storedForm", default=False):
            self.refuse("storedForm", "stateVarName", "readRegisteredTimers", "changeStart", "flattenCollectionTypes")
            return rows_of_entries(stored)
        if self.flag("readRegisteredTimers", default=False):
            self.refuse("readRegisteredTimers", "stateVarName", "changeStart", "flattenCollectionTypes")
            return rows_of_timers(stored)
        if self.text("changeStart"):
            self.refuse("changeStart", "flattenCollectionTypes")
            return rows_of_changes(
                self._earlier(), stored, self.needed("stateVarName", "changes are read for one state at a time")
            )
        if state:
            return rows_of_state(stored, state, flat=self.flag("flattenCollectionTypes", default=True))
        if self.text("flattenCollectionTypes"):
            self.needed("stateVarName", "flattenCollectionTypes is for the entries of one state")
        return rows_by_key(stored)

    def refuse(self, name: str, *others: str) -> None:
        """Refuse options that would be ignored beside another one."""
        for other in others:
            if self.text(other):
                raise ConfigurationError(
                    f"ekorn-state does not use the option {other} together with {name}: leave it out"
                )

    def _earlier(self) -> StoredOperator:
        return open_savepoint(self.text("changeStart"), configured_key()).operator(self.operator)
