"""`DrawnSinks`: the sinks that the next `execute` of an environment runs."""

from __future__ import annotations

from ekorn.batch.outputs.file_output import FileOutput
from ekorn.batch.plan.data_set_specs import OutputSpec
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.errors import InvalidProgramError
from ekorn.storage.locations import split_last

__all__ = ["DrawnSinks"]


class DrawnSinks:
    """The sinks in the order in which the program drew them."""

    def __init__(self) -> None:
        self._sinks: list[DataSetCore] = []

    def add(self, sink: DataSetCore) -> None:
        """Add a sink; refuse one whose file or directory another sink writes."""
        target = _file_target(sink)
        for other in self._sinks if target is not None else ():
            if _file_target(other) == target:
                raise InvalidProgramError(
                    f"{sink.get_name()} writes where {other.get_name()} writes too, and one would replace the other; "
                    "write to another path, or write the union() of the two data sets"
                )
        self._sinks.append(sink)

    def pending(self) -> list[DataSetCore]:
        """Return the sinks that no `execute` has run yet."""
        return list(self._sinks)

    def take(self) -> tuple[DataSetCore, ...]:
        """Return the sinks, and forget them."""
        taken, self._sinks = tuple(self._sinks), []
        return taken


def _file_target(sink: DataSetCore) -> tuple[str, str] | None:
    """Return the directory and name that a sink writes to; None if it does not write files."""
    output = sink.spec.output if isinstance(sink.spec, OutputSpec) else None
    return split_last(output.address) if isinstance(output, FileOutput) else None
