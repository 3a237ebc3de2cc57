"""Makes the plan of what a program drew."""

from __future__ import annotations

from collections.abc import Iterator

from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.batch.program.data_set_iterations import IterationResult

__all__ = ["drawn_plan"]


def drawn_plan(sinks: tuple[DataSetCore, ...], parallelism: int) -> Plan:
    """Return the operators that the sinks need. A data set that is read twice is one operator.

    Args:
        sinks: The data sets where the plan ends.
        parallelism: That of operators which have none of their own.
    """
    made: dict[DataSetCore, PlanOperator] = {}
    for sink in sinks:
        for each in _inputs_first(sink, made):
            made[each] = _operator(each, made, parallelism)
    return Plan(tuple([made[sink] for sink in sinks]))


def _inputs_first(sink: DataSetCore, made: dict[DataSetCore, PlanOperator]) -> Iterator[DataSetCore]:
    """Yield a data set and what it needs, inputs first, leaving out what is made already."""
    pending = [sink]
    while pending:  # no recursion: a program may be deeper than Python recurses
        each = pending[-1]
        missing = [needed for needed in each.upstream() if needed not in made]
        if missing:
            pending += missing
            continue
        pending.pop()
        if each not in made:
            yield each


def _operator(data_set: DataSetCore, made: dict[DataSetCore, PlanOperator], parallelism: int) -> PlanOperator:
    own = data_set.get_parallelism()
    if isinstance(data_set, IterationResult):
        spec, inputs = data_set.drawn(made)
    else:
        spec, inputs = data_set.spec, tuple([made[each] for each in data_set.inputs])
    return PlanOperator(
        name=data_set.get_name(),
        spec=spec,
        inputs=inputs,
        parallelism=parallelism if own == -1 else own,
        type_info=data_set.get_type(),
        declares_type=data_set.declares_type,
        parameters=data_set.parameters,
        broadcasts={name: made[each] for name, each in data_set.broadcasts.items()},
        forwarded=data_set.copied_fields(),
        call_site=data_set.site,
    )
