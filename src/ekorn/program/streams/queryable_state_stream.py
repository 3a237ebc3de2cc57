"""`QueryableStateStream`: the end of a keyed stream whose records clients can read, key by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.stream_graph import Node
from ekorn.program.streams.data_stream_sink import DataStreamSink
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["QueryableStateStream"]


class QueryableStateStream(DataStreamSink):
    """The result of `as_queryable_state`. It can be named and tuned as a sink, and not be transformed further."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        node: Node,
        descriptor: StateDescriptor,
        key_type: TypeInformation | None,
    ) -> None:
        super().__init__(environment, node)
        self._descriptor = descriptor
        self._key_type = key_type

    def get_queryable_state_name(self) -> str:
        """Return the name under which clients read the state."""
        assert self._descriptor.queryable_name is not None, "as_queryable_state names the state"
        return self._descriptor.queryable_name

    def get_state_descriptor(self) -> StateDescriptor:
        """Return the descriptor that a client needs."""
        return self._descriptor

    def get_key_type(self) -> TypeInformation | None:
        """Return the declared type of the keys, or None."""
        return self._key_type

    def __repr__(self) -> str:
        return f"QueryableStateStream({self.get_queryable_state_name()!r})"
