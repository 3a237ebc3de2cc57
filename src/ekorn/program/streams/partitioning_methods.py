"""The methods of a stream that decide which subtask a record goes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from ekorn.functions.record_functions import OneFieldSelector, Partitioner
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.graph.specs import Broadcast, Custom, Forward, Global, Rebalance, Rescale, Shuffle
from ekorn.program.checks.argument_checks import check_function, check_single_result
from ekorn.program.streams.key_selection import KeySelection, key_spec
from ekorn.program.streams.stream_core import StreamCore
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.streams.broadcast_stream import BroadcastStream
    from ekorn.program.streams.data_stream import DataStream
    from ekorn.program.streams.keyed_stream import KeyedStream


class PartitioningMethods(StreamCore):
    """Partitioning by key, by a function of the user, in turn, at random or to every subtask."""

    def key_by(self, key_selector: KeySelection, key_type: TypeInformation | None = None) -> KeyedStream:
        """Bring records with equal keys to one subtask, and give functions state per key.

        Args:
            key_selector: A `KeySelector`, a callable of one argument, a field by position or name, or a list of
                fields. With fields the key is a tuple. A key is any value with a stable hash: text, a number, bytes,
                a tuple, a list, a frozen dataclass. An array, a dict and a set are none.
            key_type: The type of the key.
        """
        key = key_spec("key_by", key_selector, key_type, self._type())
        return self._kinds.keyed_stream(self._environment, self._edges, key)

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: KeySelection
    ) -> DataStream:
        """Send each record to the subtask that `partitioner(key, number_of_subtasks)` names.

        A single field, given by position or name, is itself the key; for several fields the key is a tuple.
        """
        if isinstance(key_selector, int | str):
            key_selector = OneFieldSelector(key_selector)
        check_function("partition_custom", partitioner, Partitioner, 2)
        check_single_result("partition_custom", partitioner, "partition")
        return self._partitioned(Custom(partitioner, key_spec("partition_custom", key_selector, None)))

    def forward(self) -> DataStream:
        """Send records to the subtask with the same number; both operators need the same parallelism."""
        return self._partitioned(Forward())

    def rebalance(self) -> DataStream:
        """Send records to all subtasks in turn."""
        return self._partitioned(Rebalance())

    def rescale(self) -> DataStream:
        """Send the records of each subtask in turn to a group of subtasks of the next operator."""
        return self._partitioned(Rescale())

    def shuffle(self) -> DataStream:
        """Send each record to a random subtask."""
        return self._partitioned(Shuffle())

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Send every record to every subtask.

        With descriptors the result is a `BroadcastStream`. Connect it with another stream, whose function sees the
        broadcast state.

        Args:
            broadcast_state_descriptor: Declares a map that every subtask holds and that this stream's records change.
            other_broadcast_state_descriptors: More such maps, with other names.
        """
        everywhere = self._partitioned(Broadcast())
        if broadcast_state_descriptor is None and not other_broadcast_state_descriptors:
            return everywhere
        descriptors: Any = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        return self._kinds.broadcast_stream(everywhere, descriptors)

    def global_(self) -> DataStream:
        """Send all records to the first subtask."""
        return self._partitioned(Global())

    def global_partition(self) -> DataStream:
        """Send all records to the first subtask, as `global_` does."""
        return self.global_()
