"""Compiles a chain of operators into one loop per input, over a run of records.

A record that operator i emits goes to the operators linked behind operator i and to the exchanges that leave from it.
Each operator generates its own statements. The compiler nests them inside one another, from the head to the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from ekorn.codegen.chain_operator import ChainOperator, Emit, GenerateRecord, Out, RefusedSideOutputs
from ekorn.codegen.code_builder import CodeBuilder, CompiledCode
from ekorn.codegen.exchange_code import ExchangeCode, ExchangeRouter
from ekorn.columns.columns_type import has_columns
from ekorn.errors import RecordTypeError
from ekorn.functions.dead_letters import DEAD_LETTERS
from ekorn.graph.job_graph import ChainLink, JobGraph, Vertex
from ekorn.graph.specs import FeedbackHeadSpec, SplitSpec
from ekorn.types.by_value import own
from ekorn.types.type_information import TypeInformation

_DEEPEST_INDENT = 12  # deeper code goes into a function of its own: Python allows 20 nested blocks
_MOST_NESTED = 40  # operators nested before the rest goes into a function of its own: their generation is recursive


class InputLoops(NamedTuple):
    """The loops over runs of one input's records: without and with timestamps."""

    process: Callable[[list[Any]], None]
    process_timed: Callable[[list[Any], list[int | None]], None]


@dataclass(frozen=True, slots=True)
class CompiledChain:
    """The loops of a chain, by input index, and the code they were compiled from."""

    loops: tuple[InputLoops, ...]
    code: CompiledCode


def compile_chain(
    graph: JobGraph, vertex: Vertex, operators: Sequence[ChainOperator], routers: Mapping[int, ExchangeRouter]
) -> CompiledChain:
    """Compile the chain of a vertex, and set `out` and `side_out` of the operators that emit outside the loop.

    Args:
        operators: The running operators, in the order of `vertex.operators`.
        routers: By the id of each exchange that leaves the vertex.
    """
    return _ChainCompiler(graph, vertex, operators, routers).compile()


class _ChainCompiler:
    def __init__(
        self, graph: JobGraph, vertex: Vertex, operators: Sequence[ChainOperator], routers: Mapping[int, ExchangeRouter]
    ) -> None:
        self._graph = graph
        self._vertex = vertex
        self._operators = operators
        self._exchanges = graph.outputs_of(vertex.id)
        self._object_reuse = graph.settings.object_reuse
        self._exchange_code = ExchangeCode(routers, object_reuse=self._object_reuse)
        self._code = CodeBuilder()
        self._emit_functions: dict[tuple[int, str | None], str] = {}  # names, by operator and side output
        self._ungenerated: list[tuple[int, str | None]] = []  # emit functions that are called but not generated yet
        self._nested = 0  # the number of operators around the code that is being generated

    def compile(self) -> CompiledChain:
        inputs = self._operators[0].inputs()
        for number, generate in enumerate(inputs):
            self._generate_loops(number, generate)
        for index, operator in enumerate(self._operators):
            if operator.needs_out or operator.emits_to_sides:
                for tag in self._tags(index):
                    self._emit_function(index, tag)
            if operator.needs_out:
                self._emit_function(index, None)
            if operator.record_errors is not None and DEAD_LETTERS.tag_id in self._tags(index):
                self._emit_function(index, DEAD_LETTERS.tag_id)
        while self._ungenerated:
            self._generate_emit_function(*self._ungenerated.pop())
        compiled = self._code.compile(self._vertex.name)
        self._connect_operators(compiled)
        loops = (
            InputLoops(compiled.function(f"_process_{n}"), compiled.function(f"_process_timed_{n}"))
            for n in range(len(inputs))
        )
        return CompiledChain(tuple(loops), compiled)

    def _connect_operators(self, compiled: CompiledCode) -> None:
        """Set the callables with which operators emit outside the loop."""
        for index, operator in enumerate(self._operators):
            if self._is_split(index):
                operator.side_out = RefusedSideOutputs()
        for (index, tag), name in self._emit_functions.items():
            out: Out = compiled.function(name)
            if tag is None:
                self._operators[index].out = out
            else:
                self._operators[index].side_out[tag] = out
                handler = self._operators[index].record_errors
                if handler is not None and tag == DEAD_LETTERS.tag_id:
                    handler.dead_letters = out

    def _generate_loops(self, number: int, generate: GenerateRecord) -> None:
        """Generate the loops over records of one input of the head."""
        with self._function(f"def _process_{number}(values):"), self._code.block("for v in values:"):
            self._generate_operator(0, "v", "None", generate)
        with (
            self._function(f"def _process_timed_{number}(values, times):"),
            self._code.block("for v, t in zip(values, times):"),
        ):
            self._generate_operator(0, "v", "t", generate)

    def _generate_operator(self, index: int, value: str, time: str, generate: GenerateRecord) -> None:
        """Generate the statements of operator `index` for the record in variable `value`."""
        sides = RefusedSideOutputs() if self._is_split(index) else self._sides(index)
        # Operators on columns skip rows of a batch themselves: no batch is a record to be skipped.
        on_columns = has_columns(self._vertex.operators[index].input_type)
        handler = None if on_columns else self._operators[index].record_errors
        self._nested += 1
        with self._code.at(index, value):
            if handler is None or self._operators[index].handles_record_errors:
                generate(self._code, value, time, self._emit(index, None), sides)
            else:
                with self._code.block("try:"):
                    generate(self._code, value, time, self._emit(index, None), sides)
                with self._code.block("except Exception as error:"):
                    self._code.line(f"if not {self._code.bind(handler.handles, 'handles')}(error, {time}): raise")
        self._nested -= 1

    def _sides(self, index: int) -> dict[str, Emit]:
        """Return the generators of statements that emit to the side outputs of operator `index`."""
        if not self._operators[index].emits_to_sides:
            return {tag: self._emit(index, tag) for tag in self._tags(index)}
        # A function may emit to them by its context too, while the loop runs. Both ways lead through one function: each
        # function sets anew whether the records of its exchanges have timestamps.
        return {tag: self._emit_by_call(index, tag) for tag in self._tags(index)}

    def _emit_by_call(self, index: int, tag: str) -> Emit:
        return lambda value, time: self._code.line(f"{self._emit_function(index, tag)}({value}, {time})")

    def _emit(self, index: int, tag: str | None) -> Emit:
        return lambda value, time: self._generate_emit(index, tag, value, time)

    def _generate_emit(self, index: int, tag: str | None, value: str, time: str) -> None:
        """Generate the statements for a record that operator `index` emits."""
        code = self._code
        if code.depth > _DEEPEST_INDENT or self._nested > _MOST_NESTED:
            code.line(f"{self._emit_function(index, tag)}({value}, {time})")
            return
        exchanges = [e for e in self._exchanges if e.source_operator == index and e.tag == tag]
        links = [link for link in self._vertex.links if link.source == index and link.tag == tag]
        with code.at(index, value):
            if exchanges:
                self._exchange_code.generate_send(code, exchanges, value, time, self._operators[index].record_errors)
        for link in links:
            self._generate_next(link, value, time, last=link is links[-1])

    def _generate_next(self, link: ChainLink, value: str, time: str, *, last: bool) -> None:
        """Generate the statements of the operator behind a link: the last link gets the record, the others a copy."""
        code = self._code
        if not last and not self._object_reuse:
            copy = code.fresh("v")
            code.line(f"{copy} = {code.bind(own, 'own')}({value})")
            value = copy
        declared = self._vertex.operators[link.target].input_type
        if link.tag is not None and declared is not None:
            value = self._generate_conversion(link, declared, value)
        self._generate_operator(link.target, value, time, self._operators[link.target].generate)

    def _generate_conversion(self, link: ChainLink, declared: TypeInformation, value: str) -> str:
        """Generate the conversion of a side output's record to its declared type; return the variable that holds it.

        PyFlink: functions of a chain pass records on unchecked, but a side output leaves the chain.
        """
        converted = self._code.fresh("v")
        with self._code.at(link.source, value):
            convert = self._code.bind(_converter(declared, link.source), "as_declared")
            self._code.line(f"{converted} = {convert}({value})")
        return converted

    def _emit_function(self, index: int, tag: str | None) -> str:
        """Return the name of the function that emits one record of an operator. The function is generated later."""
        name = self._emit_functions.get((index, tag))
        if name is None:
            name = self._emit_functions[index, tag] = self._code.fresh(f"emit_from_{index}_")
            self._ungenerated.append((index, tag))
        return name

    def _generate_emit_function(self, index: int, tag: str | None) -> None:
        with self._function(f"def {self._emit_functions[index, tag]}(v, t):"):
            self._generate_emit(index, tag, "v", "t")

    @contextmanager
    def _function(self, header: str) -> Iterator[None]:
        with self._code.function(header), self._exchange_code.function_body(self._code):
            yield

    def _is_split(self, index: int) -> bool:
        """Return whether `split` was called on the result of an operator."""
        if isinstance(self._vertex.operators[index].spec, FeedbackHeadSpec):
            return False  # the side output of a feedback head is internal
        behind = [self._vertex.operators[x.target] for x in self._vertex.links if x.source == index and x.tag is None]
        exchanges = [e for e in self._exchanges if e.source_operator == index and e.tag is None]
        behind += [self._graph.vertices[e.target].operators[0] for e in exchanges]
        return any(isinstance(operator.spec, SplitSpec) for operator in behind)

    def _tags(self, index: int) -> list[str]:
        """Return the tags of an operator's side outputs that are read."""
        tags = [e.tag for e in self._exchanges if e.source_operator == index]
        tags += [link.tag for link in self._vertex.links if link.source == index]
        return [t for t in dict.fromkeys(tags) if t is not None]


def _converter(declared: TypeInformation, emitted_by: int) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            return declared.conform([value])[0]
        except RecordTypeError as misfit:
            misfit.emitted_by = emitted_by
            raise

    return convert
