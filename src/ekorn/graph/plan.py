"""Shows a job graph: as Flink's JSON plan for tools, and as text for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ekorn.columns.columns_type import has_columns
from ekorn.functions.record_functions import FieldKeySelector, Function
from ekorn.graph.addresses import ChainPosition
from ekorn.graph.job_graph import Exchange, JobGraph, Operator, Vertex
from ekorn.graph.specs import (
    CollectSpec,
    Custom,
    GlobalCommitterSpec,
    Hash,
    KeySpec,
    Partitioning,
    PrintSpec,
    Shipped,
    SinkFunctionSpec,
    SourceFunctionSpec,
    SourceSpec,
    TaskStepSpec,
    WriterSpec,
)

_SOURCES = (SourceSpec, SourceFunctionSpec)
_SINKS = (SinkFunctionSpec, WriterSpec, GlobalCommitterSpec, PrintSpec, CollectSpec)


def execution_plan(graph: JobGraph) -> str:
    """Return the plan as JSON in the format of Flink's plan visualizer: one node per operator."""
    numbers = _numbers(graph)
    predecessors: dict[int, list[dict[str, Any]]] = {number: [] for number in numbers.values()}
    for vertex in graph.vertices:
        for link in vertex.links:
            source, target = (numbers[ChainPosition(vertex.id, end)] for end in (link.source, link.target))
            predecessors[target].append({"id": source, "ship_strategy": "FORWARD", "side": "second"})
    for exchange in graph.exchanges:
        source = numbers[ChainPosition(exchange.source, exchange.source_operator)]
        target = numbers[ChainPosition(exchange.target, 0)]
        strategy = ship_strategy(exchange.partitioning)
        predecessors[target].append({"id": source, "ship_strategy": strategy, "side": "second"})
    nodes = []
    for vertex in graph.vertices:
        for position, operator in enumerate(vertex.operators):
            number = numbers[ChainPosition(vertex.id, position)]
            node: dict[str, Any] = {
                "id": number,
                "type": operator.name,
                "pact": _pact(operator),
                "contents": operator.description or operator.name,
                "parallelism": vertex.parallelism,
            }
            if has_columns(operator.output_type):
                node["form"] = "columns"
            if predecessors[number]:
                node["predecessors"] = predecessors[number]
            nodes.append(node)
    return json.dumps({"nodes": nodes}, indent=2)


def ship_strategy(partitioning: Partitioning) -> str:
    """Return how records get to the subtasks of the next vertex, in Flink's words.

    >>> ship_strategy(Shipped("Hash Partition on [0]"))
    'Hash Partition on [0]'
    """
    return partitioning.strategy if isinstance(partitioning, Shipped) else type(partitioning).__name__.upper()


def explain(graph: JobGraph, slot_resources: Mapping[str, str] | None = None) -> str:
    """Return the job as text: levels, vertices with their chains, and the exchanges that leave them.

    Args:
        graph: The job.
        slot_resources: The resources of each slot, as text, by slot-sharing group.
    """
    mode = "BATCH" if graph.settings.batch else "STREAMING"
    lines = [
        f"Job {graph.name!r}: {_count(len(graph.vertices), 'vertex', 'vertices')} on "
        f"{_count(len(graph.levels), 'level')}, {_count(graph.slot_count, 'slot')}, {mode}"
    ]
    for group, size in graph.slot_groups():
        resources = (slot_resources or {}).get(group)
        if resources or len(graph.slot_groups()) > 1:
            lines.append(
                f"slot-sharing group {group!r}: {_count(size, 'slot')}{f' of {resources}' if resources else ''}"
            )
    for number, level in enumerate(graph.levels):
        lines.append(f"level {number}")
        for vertex in level:
            lines += [f"  {line}" for line in _vertex_lines(graph, vertex)]
    return "\n".join(lines) + "\n"


def _vertex_lines(graph: JobGraph, vertex: Vertex) -> list[str]:
    chosen = "" if vertex.max_parallelism_set else " (default)"
    group = f", slot group {vertex.slot_group!r}" if len(graph.slot_groups()) > 1 else ""
    lines = [
        f"[{vertex.id}] {vertex.name}",
        f"    parallelism {vertex.parallelism}, max parallelism {vertex.max_parallelism}{chosen}{group}",
    ]
    fed_by = {link.target: link for link in vertex.links}
    for position, operator in enumerate(vertex.operators):
        lines.append(f"    {position}. {_operator_text(operator)}")
        link = fed_by.get(position)
        if link is not None and (link.source != position - 1 or link.tag is not None):
            lines[-1] += f", fed by {link.source}{_side(link.tag)}"
    lines += [f"    {_exchange_text(graph, exchange)}" for exchange in graph.outputs_of(vertex.id)]
    return lines


def _operator_text(operator: Operator) -> str:
    text = operator.name
    if operator.description and operator.description != operator.name:
        text += f" ({operator.description})"
    keys = [key_text(key) for key in operator.keys or (operator.key,) if key is not None]
    if keys:
        text += f", per key {' and '.join(keys)}"
    text += f", uid {operator.uid!r}" if operator.uid else f", id {operator.id[:8]}"
    if operator.output_type is not None:
        text += f", gives {operator.output_type}"
    return text


def _exchange_text(graph: JobGraph, exchange: Exchange) -> str:
    source = graph.vertices[exchange.source]
    origin = f" from {exchange.source_operator}" if len(source.operators) > 1 else ""
    two_inputs = any(e.input_index for e in graph.inputs_of(exchange.target))
    target = f"-> [{exchange.target}]" + (f" input {exchange.input_index + 1}" if two_inputs else "")
    form = ", as columns" if has_columns(exchange.type_info) else ""
    return f"{target}{origin}{_side(exchange.tag)} {partitioning_text(exchange.partitioning)}{form}"


def partitioning_text(partitioning: Partitioning) -> str:
    """Return a partitioning and what it depends on: ``HASH by fields 0``."""
    name = ship_strategy(partitioning)
    if isinstance(partitioning, Hash):
        return f"{name} by {key_text(partitioning.key)}"
    if isinstance(partitioning, Custom):
        return f"{name} by {function_text(partitioning.partitioner)} of {key_text(partitioning.key)}"
    return name


def key_text(key: KeySpec) -> str:
    """Return how a key is found, and its type if one is declared."""
    text = function_text(key.selector)
    return text if key.type_info is None else f"{text} of type {key.type_info}"


def function_text(function: Any) -> str:
    """Return a short description of a function: fields, a class, or name and line of a plain function."""
    if isinstance(function, FieldKeySelector):
        return f"fields {', '.join(map(repr, function.fields))}"
    code = getattr(function, "__code__", None)
    if isinstance(function, Function) or code is None:
        return type(function).__name__
    file_name = code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{function.__qualname__.rsplit('.', 1)[-1]} ({file_name}:{code.co_firstlineno})"


def _side(tag: str | None) -> str:
    return "" if tag is None else f" side output {tag!r}"


def _pact(operator: Operator) -> str:
    if isinstance(operator.spec, _SOURCES) or (isinstance(operator.spec, TaskStepSpec) and operator.spec.is_source):
        return "Data Source"
    return "Data Sink" if isinstance(operator.spec, _SINKS) else "Operator"


def _numbers(graph: JobGraph) -> dict[ChainPosition, int]:
    positions = [
        ChainPosition(vertex.id, position) for vertex in graph.vertices for position in range(len(vertex.operators))
    ]
    return {position: number for number, position in enumerate(positions, start=1)}


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
