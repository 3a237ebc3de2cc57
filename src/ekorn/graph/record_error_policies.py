"""What each operator does with records that its function cannot process, and whether their dead letters are read."""

from __future__ import annotations

from collections.abc import Sequence

from ekorn.errors import InvalidProgramError
from ekorn.functions.dead_letters import DEAD_LETTERS, OnRecordError
from ekorn.graph import specs
from ekorn.graph.stream_graph import Node

_NO_USER_CODE = (specs.PrintSpec, specs.CollectSpec, specs.FeedbackHeadSpec, specs.FeedbackTailSpec, specs.AsyncSpec)


def may_skip(node: Node) -> bool:
    """Return whether an operator can skip records. A source can, because a key selector may follow it."""
    return not isinstance(node.spec, _NO_USER_CODE)


def record_error_policies(nodes: Sequence[Node], default: OnRecordError) -> dict[int, OnRecordError]:
    """Return what each operator does with a record for which it raises, by the id of its node.

    Operators behind dead letters fail unless they say otherwise: their own dead letters would have no reader.

    Raises:
        InvalidProgramError: Nothing reads the dead letters of an operator.
    """
    read = {edge.source.id for node in nodes for edge in node.inputs if edge.tag == DEAD_LETTERS.tag_id}
    behind: set[int] = set()
    policies: dict[int, OnRecordError] = {}
    for node in nodes:  # inputs first
        if any(edge.tag == DEAD_LETTERS.tag_id or edge.source.id in behind for edge in node.inputs):
            behind.add(node.id)
        general = OnRecordError.FAIL if node.id in behind or not may_skip(node) else default
        policies[node.id] = policy = node.on_record_error or general
        if policy is OnRecordError.DEAD_LETTER and node.id not in read:
            raise InvalidProgramError(
                f"nothing reads the dead letters of {node.where}; call get_dead_letters() on its result, or on the "
                "environment after the last operator, and add a sink; or choose 'skip'"
            )
    return policies
