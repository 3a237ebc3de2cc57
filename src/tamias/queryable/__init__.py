"""Queryable state: the client that reads the state of running jobs. See docs/queryable_state.md."""

from tamias.queryable.client import QueryableStateClient
from tamias.queryable.immutable_states import (
    ImmutableAggregatingState,
    ImmutableFoldingState,
    ImmutableListState,
    ImmutableMapState,
    ImmutableReducingState,
    ImmutableValueState,
)

__all__ = [
    "ImmutableAggregatingState",
    "ImmutableFoldingState",
    "ImmutableListState",
    "ImmutableMapState",
    "ImmutableReducingState",
    "ImmutableValueState",
    "QueryableStateClient",
]
