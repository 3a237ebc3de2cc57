"""`OperatorSettings`: the settings of an operator, such as `.name()`, `.uid()` and `.set_parallelism()`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from ekorn.config.configuration import Configuration
from ekorn.errors import InvalidProgramError
from ekorn.functions.dead_letters import OnRecordError
from ekorn.graph.specs import AsyncSpec
from ekorn.graph.stream_graph import Chaining, Node
from ekorn.program.streams.slot_sharing_group import SlotSharingGroup

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment


class OperatorSettings(ABC):
    """The setters that streams and sinks share. A stream passes them to the operator that it comes from."""

    _environment: StreamExecutionEnvironment

    @abstractmethod
    def _operator(self, call: str) -> Node:
        """Return the operator that a setter applies to, or raise if there is none."""

    def name(self, name: str) -> Self:
        """Name the operator, for plans, logs and errors."""
        self._operator("name").set_name(name)
        return self

    def uid(self, uid: str) -> Self:
        """Set the id under which a restore finds the state of the operator, also after the program has changed.

        It is unique within the job. Set it on every operator with state before taking a savepoint.
        """
        self._operator("uid").set_uid(uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the 32 hex digits under which a checkpoint lists the operator. Use it only to take over old state."""
        self._operator("set_uid_hash").set_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of the operator's subtasks, from 1 to 32768."""
        self._operator("set_parallelism").set_parallelism(parallelism)
        return self

    def set_description(self, description: str) -> Self:
        """Set a description of the operator, which plans show beside its name."""
        self._operator("set_description").set_description(description)
        return self

    def with_parameters(self, parameters: Configuration) -> Self:
        """Set parameters for the operator's function, which `RuntimeContext.get_operator_parameters` returns.

        PyFlink does not have this method; Flink has it on `DataSet`.
        """
        if not isinstance(parameters, Configuration):
            raise TypeError(f"with_parameters() takes a Configuration, got {parameters!r}")
        self._operator("with_parameters").parameters = parameters.to_dict()
        return self

    def on_record_error(self, action: str | OnRecordError) -> Self:
        """Set what the operator does with a record for which its function raises.

        Args:
            action: ``fail`` fails the job. ``skip`` leaves the record out. ``dead-letter`` leaves it out and sends it
                to the stream that `get_dead_letters` returns, with the error. Results that the function emitted for
                the record before it raised stay emitted, and its changes to state stay. The key selector or the
                partitioner behind the operator counts as part of it, also behind a source.
        """
        try:
            chosen = OnRecordError(action)
        except ValueError:
            raise ValueError(f"on_record_error() takes 'fail', 'skip' or 'dead-letter', got {action!r}") from None
        operator = self._operator("on_record_error")
        if isinstance(operator.spec, AsyncSpec) and chosen is not OnRecordError.FAIL:
            raise InvalidProgramError(
                f"on_record_error(): {operator.where} sends asynchronous requests; handle their errors in its function"
            )
        operator.on_record_error = chosen
        return self

    def disable_chaining(self) -> Self:
        """Give the operator a vertex of its own."""
        self._operator("disable_chaining").chaining = Chaining.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Put the operator into a slot-sharing group. Operators of different groups never share a slot.

        The operators after it are in the same group unless they are put into another.
        """
        operator = self._operator("slot_sharing_group")
        if isinstance(slot_sharing_group, SlotSharingGroup):
            self._environment.register_slot_sharing_group(slot_sharing_group)
            operator.slot_group = slot_sharing_group.get_name()
        elif isinstance(slot_sharing_group, str) and slot_sharing_group:
            operator.slot_group = slot_sharing_group
        else:
            raise TypeError(
                f"a slot-sharing group is a non-empty name or a SlotSharingGroup, got {slot_sharing_group!r}"
            )
        return self
