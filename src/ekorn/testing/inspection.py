"""Reads the state and timers of operators under test, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from ekorn.functions.timer_service import TimeDomain
from ekorn.graph.column_specs import KeyedBatchSpec
from ekorn.keygroups import key_group, state_key, subtask_of
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.process_operators import KeyedProcessOperator
from ekorn.operators.time.timers import Timers
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.kinds import kind_of


class RegisteredTimer(NamedTuple):
    """A timer that has not fired."""

    timestamp: int
    domain: TimeDomain


def keyed_state(operators: Sequence[RuntimeOperator], key: Any, descriptor: StateDescriptor, name: str | None) -> Any:
    """Return the content of a keyed state for one key.

    Args:
        operators: The operators of all subtasks.
        key: The key.
        descriptor: The state's name and kind.
        name: The operator's name or uid; None takes the only operator that has such a state.

    Raises:
        LookupError: No operator has such a state, or several have.
    """
    having = [o for o in _named(operators, name) if o.backend is not None and _has(o, descriptor.name)]
    operator = _only_one(having, f"a keyed state {descriptor.name!r}", operators, name)
    key = _as_declared(operator, key)
    vertex = operator.environment.vertex
    index = subtask_of(key_group(key, vertex.max_parallelism), vertex.max_parallelism, vertex.parallelism)
    backend = next(o.backend for o in having if o.operator.id == operator.operator.id and o.environment.index == index)
    assert backend is not None, "`having` holds operators with a backend only"
    before, backend.cell[0] = backend.cell[0], state_key(key)
    try:
        return _read(backend, descriptor)
    finally:
        backend.cell[0] = before


def operator_state(
    operators: Sequence[RuntimeOperator], subtask: int, descriptor: StateDescriptor, name: str | None
) -> Any:
    """Return the content of an operator state in one subtask: a list, or a dict for a broadcast state."""
    having = [
        o
        for o in _named(operators, name)
        if o.environment.index == subtask and descriptor.name in (info.name for info in o.states.infos())
    ]
    operator = _only_one(having, f"an operator state {descriptor.name!r} in subtask {subtask}", operators, name)
    if isinstance(descriptor, MapStateDescriptor):
        return dict(operator.states.get_broadcast_state(descriptor).items())
    assert isinstance(descriptor, ListStateDescriptor), "operator state is a list or a broadcast map"
    kind = next(info.kind for info in operator.states.infos() if info.name == descriptor.name)
    state = operator.states.get_union_list_state if kind == "list-union" else operator.states.get_list_state
    return list(state(descriptor).get())


def registered_timers(operators: Sequence[RuntimeOperator], key: Any, name: str | None) -> list[RegisteredTimer]:
    """Return the timers of a key that process functions registered, by time."""
    found = []
    for operator in _named(operators, name):
        if isinstance(operator, KeyedProcessOperator) or isinstance(operator.operator.spec, KeyedBatchSpec):
            stored = state_key(_as_declared(operator, key))
            timers: Timers = operator.timers  # type: ignore[attr-defined]  # the other class loads PyArrow
            for domain, table in (
                (TimeDomain.EVENT_TIME, timers.event),
                (TimeDomain.PROCESSING_TIME, timers.processing),
            ):
                found += [RegisteredTimer(time_ms, domain) for key, time_ms in table.timers() if key == stored]
    return sorted(found, key=lambda timer: (timer.timestamp, timer.domain.name))


def _has(operator: RuntimeOperator, state_name: str) -> bool:
    return any(info.name == state_name for info in operator.infos())


def _named(operators: Sequence[RuntimeOperator], name: str | None) -> list[RuntimeOperator]:
    return [o for o in operators if name is None or name in (o.operator.name, o.operator.uid)]


def _only_one(
    having: Sequence[RuntimeOperator], what: str, operators: Sequence[RuntimeOperator], name: str | None
) -> RuntimeOperator:
    ids = {o.operator.id for o in having}
    if len(ids) == 1:
        return having[0]
    names = sorted({repr(o.operator.name) for o in (having or operators)})
    where = "no operator" if name is None else f"no operator {name!r}"
    if not ids:
        states = sorted({repr(info.name) for o in _named(operators, name) for info in o.infos() if info.name[0] != "_"})
        raise LookupError(f"{where} has {what}; there are {', '.join(states) or 'none'} in {', '.join(names)}")
    raise LookupError(f"several operators have {what}: choose one with operator=, one of {', '.join(names)}")


def _as_declared(operator: RuntimeOperator, key: Any) -> Any:
    spec = operator.operator.key
    return key if spec is None or spec.type_info is None else spec.type_info.conform([key])[0]


def _read(backend: KeyedStateBackend, descriptor: StateDescriptor) -> Any:
    kind = kind_of(descriptor)
    if kind is None:
        raise TypeError(f"a state is read with its descriptor, got {descriptor!r}")
    return kind.content(backend.state(descriptor))
