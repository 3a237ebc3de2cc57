"""Translates the stream graph (as drawn) to the job graph (as run): parallelism, partitioning, chains, levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ekorn.config import options
from ekorn.config.choices import RuntimeExecutionMode
from ekorn.config.settings.fields import filled_by, part
from ekorn.errors import InvalidProgramError
from ekorn.functions.dead_letters import OnRecordError
from ekorn.functions.source_contract import Boundedness
from ekorn.graph.addresses import ChainPosition
from ekorn.graph.job_graph import (
    ChainLink,
    Exchange,
    ExecutionSettings,
    JobGraph,
    Operator,
    OperatorId,
    Vertex,
    VertexId,
)
from ekorn.graph.operator_ids import operator_ids
from ekorn.graph.record_error_policies import record_error_policies
from ekorn.graph.specs import (
    FeedbackHeadSpec,
    FeedbackTailSpec,
    Forward,
    Partitioning,
    Rebalance,
    SourceFunctionSpec,
    SourceSpec,
)
from ekorn.graph.stream_graph import (
    DEFAULT_SLOT_GROUP,
    Chaining,
    Edge,
    Node,
    StreamGraph,
    uses_custom_partitioning,
)
from ekorn.keygroups import default_max_parallelism
from ekorn.types.type_information import TypeInformation


@dataclass(frozen=True)
class GraphSettings:
    """Settings of the environment that decide the job graph."""

    name: str = "job"
    parallelism: int = filled_by(options.PARALLELISM)
    max_parallelism: int | None = filled_by(options.MAX_PARALLELISM, by=lambda given: None if given == -1 else given)
    mode: RuntimeExecutionMode = filled_by(options.RUNTIME_MODE)
    chaining: bool = filled_by(options.OPERATOR_CHAINING)
    chain_different_max_parallelism: bool = filled_by(options.CHAIN_DIFFERENT_MAX_PARALLELISM)
    auto_generate_uids: bool = filled_by(options.AUTO_GENERATE_UIDS)
    unaligned_checkpoints: bool = False
    force_unaligned: bool = filled_by(options.CHECKPOINT_UNALIGNED_FORCED)
    on_record_error: OnRecordError = filled_by(options.ON_RECORD_ERROR, by=OnRecordError)  # an operator may set its own
    execution: ExecutionSettings = part(ExecutionSettings)


def build_job_graph(graph: StreamGraph, settings: GraphSettings) -> JobGraph:
    """Translate a stream graph to a job graph.

    Raises:
        InvalidProgramError: The job as a whole cannot run.
    """
    nodes = graph.nodes()
    if not nodes and graph.has_run:
        raise InvalidProgramError(
            "there is nothing to execute: an earlier execute() ran all operators and sinks, and none has been added "
            "since; remove this call, or declare the next job before it"
        )
    if not nodes:
        raise InvalidProgramError(
            "there is nothing to execute: the program has no operator or sink; "
            "a source alone does not run: add a transformation, print() or a sink"
        )
    return translate(nodes, settings)


def translate(nodes: Sequence[Node], settings: GraphSettings) -> JobGraph:
    """Translate operators, inputs first, to a job graph.

    Raises:
        InvalidProgramError: The job as a whole cannot run.
    """
    batch = _runs_as_batch(nodes, settings.mode)
    _check_loops(nodes, batch=batch)
    checkpointing = settings.execution.checkpointing and not batch
    if checkpointing and settings.unaligned_checkpoints and not settings.force_unaligned:
        _refuse_custom_partitioning(nodes)
    sizes = _sizes(nodes, settings)
    partitionings = {
        _NodeInput(node.id, i): _partitioning(edge, node, sizes) for node in nodes for i, edge in enumerate(node.inputs)
    }
    chains = _chains(nodes, sizes, partitionings, settings)
    ids = operator_ids(nodes, auto_generate=settings.auto_generate_uids)
    vertices, exchanges = _vertices(chains, sizes, partitionings, ids)
    policies = {ids[id_]: policy for id_, policy in record_error_policies(nodes, settings.on_record_error).items()}
    vertices = tuple(_with_policies(vertex, policies) for vertex in vertices)
    unaligned = checkpointing and settings.unaligned_checkpoints
    execution = replace(settings.execution, batch=batch, checkpointing=checkpointing, unaligned=unaligned)
    return JobGraph(settings.name, vertices, exchanges, execution)


# ------------------------------------------------------------------------------------- the job as a whole


def _runs_as_batch(nodes: Sequence[Node], mode: RuntimeExecutionMode) -> bool:
    if mode is RuntimeExecutionMode.STREAMING:
        return False
    endless = [node for node in nodes if _is_endless(node)]
    if mode is RuntimeExecutionMode.AUTOMATIC:
        return not endless
    if endless:
        raise InvalidProgramError(
            f"BATCH mode needs bounded sources, but these are unbounded: {', '.join(n.where for n in endless)}; "
            "use RuntimeExecutionMode.STREAMING or AUTOMATIC, or a bounded source"
        )
    return True


def _is_endless(node: Node) -> bool:
    if isinstance(node.spec, SourceSpec):
        return node.spec.source.boundedness is not Boundedness.BOUNDED
    # Flink: a SourceFunction cannot declare that it is bounded, so it counts as unbounded.
    return isinstance(node.spec, SourceFunctionSpec)


def _check_loops(nodes: Sequence[Node], *, batch: bool) -> None:
    closed = {node.spec.loop for node in nodes if isinstance(node.spec, FeedbackTailSpec)}
    for node in nodes:
        if isinstance(node.spec, FeedbackHeadSpec):
            if node.spec.loop not in closed:
                raise InvalidProgramError(f"the loop of {node.where} is never closed: call close_with() on it")
            if batch:
                raise InvalidProgramError(
                    f"BATCH mode does not support loops, but {node.where} begins one; use STREAMING mode"
                )


def _refuse_custom_partitioning(nodes: Sequence[Node]) -> None:
    node = uses_custom_partitioning(nodes)
    if node is not None:
        raise InvalidProgramError(
            f"unaligned checkpoints cannot be used with partition_custom, which feeds {node.where}; "
            "disable them, or call set_force_unaligned_checkpoints(True)"
        )


# ------------------------------------------------------------------- parallelism, slots and partitioning


@dataclass(frozen=True)
class _Size:
    parallelism: int
    max_parallelism: int
    max_parallelism_set: bool
    slot_group: str


def _sizes(nodes: Sequence[Node], settings: GraphSettings) -> dict[int, _Size]:
    sizes: dict[int, _Size] = {}
    for node in nodes:
        parallelism = _parallelism(node, sizes, settings)
        given_max = None if node.non_parallel else node.max_parallelism or settings.max_parallelism
        max_parallelism = 1 if node.non_parallel else given_max or default_max_parallelism(parallelism)
        if parallelism > max_parallelism:
            raise InvalidProgramError(
                f"the parallelism of {node.where} is {parallelism}, above its max parallelism of {max_parallelism}; "
                "lower the parallelism, or raise the max parallelism"
            )
        sizes[node.id] = _Size(parallelism, max_parallelism, given_max is not None, _slot_group(node, sizes))
    return sizes


def _parallelism(node: Node, sizes: Mapping[int, _Size], settings: GraphSettings) -> int:
    if node.beside is not None:
        return sizes[node.beside.id].parallelism
    if isinstance(node.spec, FeedbackHeadSpec):  # Flink: a loop has the parallelism of its input
        return sizes[node.inputs[0].source.id].parallelism
    if node.non_parallel:
        return 1
    if node.parallelism is not None:
        return node.parallelism
    if node.like_input and len(node.inputs) == 1 and node.inputs[0].partitioning is None:
        return sizes[node.inputs[0].source.id].parallelism
    return settings.parallelism


def _slot_group(node: Node, sizes: Mapping[int, _Size]) -> str:
    if node.beside is not None:
        return sizes[node.beside.id].slot_group
    if node.slot_group is not None:
        return node.slot_group
    groups = {sizes[edge.source.id].slot_group for edge in node.inputs}
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_GROUP


def _partitioning(edge: Edge, target: Node, sizes: Mapping[int, _Size]) -> Partitioning:
    """Return the partitioning of an edge, now that both parallelisms are known."""
    before, after = sizes[edge.source.id].parallelism, sizes[target.id].parallelism
    if edge.partitioning is None:
        return Forward() if before == after else Rebalance()
    if isinstance(edge.partitioning, Forward) and before != after:
        raise InvalidProgramError(
            f"forward() from {edge.source.where} to {target.where} needs the same parallelism on both sides, "
            f"found {before} and {after}; use rebalance() or rescale(), or set both to the same parallelism"
        )
    return edge.partitioning


# ------------------------------------------------------------------------------------------------- chains


class _NodeInput(NamedTuple):
    """One input edge of a node, by its position among the node's inputs."""

    node: int
    position: int


Partitionings = Mapping[_NodeInput, Partitioning]


@dataclass
class _Chain:
    """A tree of operators: the first member is the head, and every other member has an earlier one as its parent."""

    members: list[Node]
    parents: list[tuple[int, Edge] | None]


def _chains(
    nodes: Sequence[Node], sizes: Mapping[int, _Size], partitionings: Partitionings, settings: GraphSettings
) -> list[_Chain]:
    parent_edges: dict[int, Edge] = {}
    children: dict[int, list[Node]] = {}
    for node in nodes:
        if _joins_its_input(node, sizes, partitionings, settings):
            edge = node.inputs[0]
            parent_edges[node.id] = edge
            children.setdefault(edge.source.id, []).append(node)
    return [_chain_below(node, children, parent_edges) for node in nodes if node.id not in parent_edges]


def _joins_its_input(
    node: Node, sizes: Mapping[int, _Size], partitionings: Partitionings, settings: GraphSettings
) -> bool:
    if not settings.chaining or len(node.inputs) != 1 or node.chaining is not Chaining.ALWAYS:
        return False
    before = node.inputs[0].source
    here, there = sizes[node.id], sizes[before.id]
    return (
        before.chaining is not Chaining.NEVER
        and isinstance(partitionings[_NodeInput(node.id, 0)], Forward)
        and here.parallelism == there.parallelism
        and here.slot_group == there.slot_group
        and (settings.chain_different_max_parallelism or here.max_parallelism == there.max_parallelism)
    )


def _chain_below(head: Node, children: Mapping[int, list[Node]], parent_edges: Mapping[int, Edge]) -> _Chain:
    chain = _Chain([], [])
    open_nodes: list[tuple[Node, int | None]] = [(head, None)]
    while open_nodes:  # depth first, branches in the order of the program
        node, parent = open_nodes.pop()
        position = len(chain.members)
        chain.members.append(node)
        chain.parents.append(None if parent is None else (parent, parent_edges[node.id]))
        open_nodes.extend((child, position) for child in reversed(children.get(node.id, ())))
    return chain


# ----------------------------------------------------------------------------------------------- vertices


def _vertices(
    chains: Sequence[_Chain], sizes: Mapping[int, _Size], partitionings: Partitionings, ids: Mapping[int, OperatorId]
) -> tuple[tuple[Vertex, ...], tuple[Exchange, ...]]:
    # Chains are ordered by the creation of their heads. An exchange leads from an operator to a head that was created
    # after the operator, and the operator's own head was created before the operator: the order is topological.
    positions = {
        node.id: ChainPosition(number, position)
        for number, chain in enumerate(chains)
        for position, node in enumerate(chain.members)
    }
    exchanges: list[Exchange] = []
    levels: list[int] = []
    for number, chain in enumerate(chains):
        head = chain.members[0]
        level = 0
        for i, edge in enumerate(head.inputs):
            source, position = positions[edge.source.id]
            level = max(level, levels[source] + 1)
            exchanges.append(
                Exchange(
                    id=len(exchanges),
                    source=VertexId(source),
                    source_operator=position,
                    target=VertexId(number),
                    partitioning=partitionings[_NodeInput(head.id, i)],
                    tag=edge.tag,
                    input_index=edge.input_index,
                    type_info=edge.type_info,
                )
            )
        levels.append(level)
    vertices = tuple(_vertex(number, chain, sizes, ids, levels[number]) for number, chain in enumerate(chains))
    return vertices, tuple(exchanges)


def _vertex(
    number: int, chain: _Chain, sizes: Mapping[int, _Size], ids: Mapping[int, OperatorId], level: int
) -> Vertex:
    head = sizes[chain.members[0].id]
    # Key groups belong to the head: the operators chained to it have no keyed state. A chain without keys takes the
    # highest max parallelism of its members, so that a source limited to one subtask does not limit the others.
    width = head
    if chain.members[0].key is None:
        width = max((sizes[node.id] for node in chain.members), key=lambda size: size.max_parallelism)
    return Vertex(
        id=VertexId(number),
        name=_chain_name(chain),
        operators=tuple(_operator(node, ids[node.id]) for node in chain.members),
        links=tuple(
            ChainLink(parent[0], position, parent[1].tag)
            for position, parent in enumerate(chain.parents)
            if parent is not None
        ),
        parallelism=head.parallelism,
        max_parallelism=width.max_parallelism,
        slot_group=head.slot_group,
        level=level,
        max_parallelism_set=width.max_parallelism_set,
    )


def _operator(node: Node, operator_id: OperatorId) -> Operator:
    return Operator(
        id=operator_id,
        uid=node.uid,
        name=node.full_name,
        spec=node.spec,
        key=node.key,
        input_type=node.input_types[0] if node.input_types else None,
        output_type=node.output_type,
        description=node.description,
        input_types=_types_by_input(node),
        keys=node.keys,
        buffer_timeout_ms=node.buffer_timeout_ms,
        parameters=dict(node.parameters),
    )


def _with_policies(vertex: Vertex, policies: Mapping[OperatorId, OnRecordError]) -> Vertex:
    operators = tuple(replace(each, on_record_error=policies[each.id]) for each in vertex.operators)
    return replace(vertex, operators=operators)


def _types_by_input(node: Node) -> tuple[TypeInformation | None, ...]:
    """Return the type of each input of an operator with several inputs; empty for other operators."""
    types = {edge.input_index: edge.type_info for edge in node.inputs}
    return tuple(types[index] for index in sorted(types)) if len(types) > 1 else ()


def _chain_name(chain: _Chain) -> str:
    """Return the name of a chain, such as `Source: a -> Map -> (Filter, Sink: b)`."""
    children: dict[int, list[int]] = {}
    for position, parent in enumerate(chain.parents):
        if parent is not None:
            children.setdefault(parent[0], []).append(position)
    names = [node.full_name for node in chain.members]
    for position in range(len(names) - 1, -1, -1):  # children first: they come after their parents
        branches = [names[child] for child in children.get(position, ())]
        if len(branches) == 1:
            names[position] += f" -> {branches[0]}"
        elif branches:
            names[position] += f" -> ({', '.join(branches)})"
    return names[0]
