"""Who an operator is from one run of the program to the next: the id under which its state is saved.

The hash of its uid, or the hash given for it. Without either the id comes from its place in the graph: what
it is, and what it reads from. It stays the same while the part of the program before it does.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from tamias.errors import DuplicateUidError, InvalidProgramError
from tamias.graph.job_graph import OperatorId
from tamias.graph.specs import WithStateSpec
from tamias.graph.stream_graph import Node


def operator_ids(nodes: Sequence[Node], *, auto_generate: bool = True) -> dict[int, OperatorId]:
    """The id of each node, which come with inputs first.

    Args:
        nodes: all operators of the job.
        auto_generate: give ids to operators without a uid; otherwise they are an error.
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
            ids[node.id] = _id_of_place(node, ids, twins)
    _require_distinct(nodes, ids)
    return ids


def id_of_uid(uid: str) -> OperatorId:
    """The operator id that stands for a uid."""
    return _hash(f"uid\n{uid}")


def _id_of_place(node: Node, ids: dict[int, OperatorId], twins: Counter[str]) -> OperatorId:
    what = type(node.spec).__name__
    if isinstance(node.spec, WithStateSpec):
        what += f":{node.spec.form}"
    reads = [f"{ids[edge.source.id]}:{edge.tag or ''}:{edge.input_index}" for edge in node.inputs]
    place = "\n".join(["place", what, *reads])
    # Two alike in one place are told apart by their order. A number over all operators, as Flink has, would
    # change the id of everything that is written after a new branch.
    twins[place] += 1
    return _hash(f"{place}\n{twins[place]}")


def _hash(text: str) -> OperatorId:
    return OperatorId(hashlib.blake2b(text.encode(), digest_size=16).hexdigest())


def _require_uids(nodes: Sequence[Node]) -> None:
    nameless = [node.where for node in nodes if node.uid is None and node.uid_hash is None]
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
                f"uid {node.uid!r} is given twice, to {other.where} and to {node.where}; a uid is unique within a job"
            )
        raise DuplicateUidError(
            f"operator id {ids[node.id]} belongs to both {other.where} and {node.where}; a uid hash names one operator"
        )
