"""Queryable state: the client that reads the state of running jobs. See docs/queryable_state.md."""

from ekorn.queryable.immutable_states import (
    ImmutableAggregatingState,
    ImmutableFoldingState,
    ImmutableListState,
    ImmutableMapState,
    ImmutableReducingState,
    ImmutableValueState,
)
from ekorn.queryable.state_client import QueryableStateClient

__all__ = [
    "ImmutableAggregatingState",
    "ImmutableFoldingState",
    "ImmutableListState",
    "ImmutableMapState",
    "ImmutableReducingState",
    "ImmutableValueState",
    "QueryableStateClient",
]
