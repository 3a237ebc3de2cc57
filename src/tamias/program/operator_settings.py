"""The settings that follow an operator in the program: `.name()`, `.uid()`, `.set_parallelism()` and so on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from tamias.config.configuration import Configuration
from tamias.graph.stream_graph import Chaining, Node
from tamias.program.slot_sharing_group import SlotSharingGroup

if TYPE_CHECKING:
    from tamias.program.stream_execution_environment import StreamExecutionEnvironment

S = TypeVar("S", bound="OperatorSettings")


class OperatorSettings(ABC):
    """Settings that a stream passes to the operator it came from, and a sink to itself."""

    _environment: StreamExecutionEnvironment

    @abstractmethod
    def _operator(self, call: str) -> Node:
        """The operator that a call is about, or an error if there is none."""

    def name(self: S, name: str) -> S:
        """Name the operator, for plans, logs and errors."""
        self._operator("name").set_name(name)
        return self

    def uid(self: S, uid: str) -> S:
        """Give the operator the id under which its state is found again after the program has changed.

        It is unique within the job. Set it on every operator with state before taking a savepoint.
        """
        self._operator("uid").set_uid(uid)
        return self

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Give the operator the 32 hex digits under which a checkpoint lists it; to take over old state only."""
        self._operator("set_uid_hash").set_uid_hash(uid_hash)
        return self

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set the number of the operator's subtasks, from 1 to 32768."""
        self._operator("set_parallelism").set_parallelism(parallelism)
        return self

    def set_description(self: S, description: str) -> S:
        """Describe the operator in more words than its name, for plans."""
        self._operator("set_description").set_description(description)
        return self

    def with_parameters(self: S, parameters: Configuration) -> S:
        """Give the operator's function parameters of its own; `RuntimeContext.get_operator_parameters` reads them.

        PyFlink has this nowhere, Flink on `DataSet` only.
        """
        if not isinstance(parameters, Configuration):
            raise TypeError(f"with_parameters() takes a Configuration, got {parameters!r}")
        self._operator("with_parameters").parameters = parameters.to_dict()
        return self

    def disable_chaining(self: S) -> S:
        """Let the operator share a vertex with no other one."""
        self._operator("disable_chaining").chaining = Chaining.NEVER
        return self

    def slot_sharing_group(self: S, slot_sharing_group: str | SlotSharingGroup) -> S:
        """Put the operator into a slot-sharing group: operators of different groups never share a slot.

        What follows it is in the same group unless it is given another.
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
