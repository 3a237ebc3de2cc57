"""The ids under which the state of operators is saved, stable from one run of the program to the next.

The id of an operator is the hash of its uid, or the uid hash that was given. Without either, the id is derived from
the operator's position in the graph: its kind and its inputs, as they are before a change of form. Such an id stays the
same as long as the part of the program upstream of the operator does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from ekorn.errors import DuplicateUidError, InvalidProgramError
from ekorn.graph.column_specs import CONVERSIONS
from ekorn.graph.job_graph import OperatorId
from ekorn.graph.specs import WithStateSpec
from ekorn.graph.stream_graph import Edge, Node


def operator_ids(nodes: Sequence[Node], *, auto_generate: bool = True) -> dict[int, OperatorId]:
    """Return the operator id of each node, by node id.

    Args:
        nodes: All operators of the job, inputs first.
        auto_generate: Generate ids for operators without a uid; otherwise such operators are an error.
    """
    if not auto_generate:
        _require_uids(nodes)
    ids: dict[int, OperatorId] = {}
    twins: Counter[str] = Counter()
    for node in nodes:
        if node.uid_hash is not None:
            ids[node.id] = OperatorId(node.uid_hash)
        elif node.uid is not None:
            ids[node.id] = id_of_uid(node.uid)
        else:
            ids[node.id] = _id_of_position(node, ids, twins)
    _require_distinct(nodes, ids)
    return ids


def id_of_uid(uid: str) -> OperatorId:
    """Return the operator id of a uid."""
    return _hash(f"uid\n{uid}")


def _id_of_position(node: Node, ids: dict[int, OperatorId], twins: Counter[str]) -> OperatorId:
    what = type(node.spec).__name__
    if isinstance(node.spec, WithStateSpec):
        what += f":{node.spec.form}"
    reads = [f"{ids[_seen_through(edge).id]}:{edge.tag or ''}:{edge.input_index}" for edge in node.inputs]
    position = "\n".join(["place", what, *reads])
    # Operators of one kind with the same inputs are told apart by their order. Flink: numbers all operators, which
    # changes the ids of all operators that are written after a new branch.
    twins[position] += 1
    return _hash(f"{position}\n{twins[position]}")


def _seen_through(edge: Edge) -> Node:
    """Return the operator that an edge comes from. An operator keeps its id where the form of its input changes."""
    source = edge.source
    while isinstance(source.spec, CONVERSIONS) and source.uid is None:
        source = source.inputs[0].source
    return source


def _hash(text: str) -> OperatorId:
    return OperatorId(hashlib.blake2b(text.encode(), digest_size=16).hexdigest())


def _require_uids(nodes: Sequence[Node]) -> None:
    with_state = [node for node in nodes if not isinstance(node.spec, CONVERSIONS)]
    nameless = [node.where for node in with_state if node.uid is None and node.uid_hash is None]
    if nameless:
        raise InvalidProgramError(
            f"pipeline.auto-generate-uids is false and {len(nameless)} operators have no uid: "
            f"{', '.join(nameless)}; call uid(...) on each"
        )


def _require_distinct(nodes: Sequence[Node], ids: dict[int, OperatorId]) -> None:
    seen: dict[OperatorId, Node] = {}
    for node in nodes:
        other = seen.setdefault(ids[node.id], node)
        if other is node:
            continue
        if node.uid_hash is None and other.uid_hash is None:
            raise DuplicateUidError(
                f"uid {node.uid!r} is given twice, to {other.where} and to {node.where}; give each operator its own uid"
            )
        raise DuplicateUidError(
            f"operator id {ids[node.id]} belongs to both {other.where} and {node.where}; "
            "give each operator its own uid hash"
        )
