"""The subtasks that an exchange connects: one channel from each sender to each of its receivers."""

from __future__ import annotations

from ekorn.graph.job_graph import Exchange, Vertex
from ekorn.graph.specs import Forward, Rescale


def targets_of(exchange: Exchange, source: Vertex, target: Vertex, index: int) -> list[int]:
    """Return the target subtasks that a sender is connected to."""
    senders, receivers = source.parallelism, target.parallelism
    match exchange.partitioning:
        case Forward():
            return [index]
        case Rescale() if senders >= receivers:
            return [j for j in range(receivers) if j * senders // receivers <= index < (j + 1) * senders // receivers]
        case Rescale():
            return list(range((index * receivers + senders - 1) // senders, -(-((index + 1) * receivers) // senders)))
        case _:
            return list(range(receivers))


def senders_of(exchange: Exchange, source: Vertex, target: Vertex, index: int) -> list[int]:
    """Return the sending subtasks that a receiver is connected to."""
    return [i for i in range(source.parallelism) if index in targets_of(exchange, source, target, i)]
