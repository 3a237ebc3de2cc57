"""A chain of operators, compiled: one loop over a run of records for the whole chain, or one for each input.

What operator i emits goes to the operators linked behind it and to the exchanges that leave from it. The
statements of all of them are written one inside the other, from the head down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tamias.codegen.code_builder import CodeBuilder, CompiledCode
from tamias.errors import RecordTypeError
from tamias.functions.record_functions import Partitioner
from tamias.graph.job_graph import ChainLink, Exchange, JobGraph, Vertex
from tamias.graph.specs import (
    Broadcast,
    Custom,
    FeedbackHeadSpec,
    Forward,
    Global,
    Hash,
    Rebalance,
    Rescale,
    Shuffle,
    SplitSpec,
)
from tamias.operators.keys import generate_key_of
from tamias.operators.operator import Emit, GenerateRecord, Out, RuntimeOperator
from tamias.operators.splitting import RefusedSides
from tamias.subtask.outbox import Outbox, Router
from tamias.types.by_value import IMMUTABLE, own
from tamias.types.type_information import TypeInformation

_DEEPEST = 12  # blocks inside one another before the rest goes into a function: Python allows 20 loops
_LONGEST = 40  # operators inside one another before the rest does: writing them is recursion


class InputLoops(NamedTuple):
    """The loops over runs of one input's records: without and with timestamps."""

    process: Callable[[list[Any]], None]
    process_timed: Callable[[list[Any], list[int | None]], None]


class Chain:
    """The operators of a vertex in one subtask, and the loops that run them."""

    def __init__(
        self, graph: JobGraph, vertex: Vertex, operators: list[RuntimeOperator], outbox: Outbox, seed: int
    ) -> None:
        self.operators = operators
        self._graph = graph
        self._vertex = vertex
        self._outbox = outbox
        self._exchanges = graph.outputs_of(vertex.id)
        self._routers = {
            e.id: Router(outbox.writers[e.id], graph.vertices[e.target], seed + e.id) for e in self._exchanges
        }
        self._reuse = graph.settings.object_reuse
        self._functions: dict[tuple[int, str | None], str] = {}
        self._unwritten: list[tuple[int, str | None]] = []  # functions that are called and not written yet
        self._inside = 0  # operators inside one another where the code is being written
        self._modes: list[tuple[str, str]] = []
        self.compiled = self._compile()
        self.loops = tuple(
            InputLoops(self.compiled.function(f"process_{n}"), self.compiled.function(f"process_timed_{n}"))
            for n in range(len(operators[0].inputs()))
        )

    def _compile(self) -> CompiledCode:
        code = CodeBuilder()
        for number, write in enumerate(self.operators[0].inputs()):
            self._write_loops(code, number, write)
        for index, operator in enumerate(self.operators):
            if operator.needs_out:
                for tag in (None, *self._tags(index)):
                    self._emit_function(code, index, tag)
        while self._unwritten:
            self._write_emit_function(code, *self._unwritten.pop())
        compiled = code.compile(self._vertex.name)
        for index, operator in enumerate(self.operators):
            if self._is_split(index):
                operator.side_out = RefusedSides()
        for (index, tag), name in self._functions.items():
            out: Out = compiled.function(name)
            if tag is None:
                self.operators[index].out = out
            else:
                self.operators[index].side_out[tag] = out
        return compiled

    def _write_loops(self, code: CodeBuilder, number: int, write: GenerateRecord) -> None:
        """Generate the loops over records of one input of the head."""
        with code.function(f"def process_{number}(values):"):
            self._with_modes(code, lambda: self._loop(code, "for v in values:", "None", write))
        with code.function(f"def process_timed_{number}(values, times):"):
            self._with_modes(code, lambda: self._loop(code, "for v, t in zip(values, times):", "t", write))

    def _loop(self, code: CodeBuilder, header: str, time: str, write: GenerateRecord) -> None:
        with code.block(header):
            self._write(code, 0, "v", time, write)

    def _with_modes(self, code: CodeBuilder, write: Callable[[], None]) -> None:
        """Write a function's body, and before it which exchanges it writes to with timestamps and which without."""
        outer, self._modes = self._modes, []
        position = code.position()
        write()
        for writer, timed in dict.fromkeys(self._modes):
            code.insert(position, f"{writer}.mode({timed})")
        self._modes = outer

    def _write(self, code: CodeBuilder, index: int, value: str, time: str, write: GenerateRecord) -> None:
        """Write operator `index` on the record in a variable."""
        sides = {tag: self._emit_to(code, index, tag) for tag in self._tags(index)}
        self._inside += 1
        with code.at(index, value):
            write(
                code,
                value,
                time,
                lambda v, t: self._emit(code, index, None, v, t),
                RefusedSides() if self._is_split(index) else sides,
            )
        self._inside -= 1

    def _emit_to(self, code: CodeBuilder, index: int, tag: str) -> Emit:
        return lambda v, t: self._emit(code, index, tag, v, t)

    def _emit(self, code: CodeBuilder, index: int, tag: str | None, value: str, time: str) -> None:
        """Generate what happens to a record that operator `index` emits."""
        if code.depth > _DEEPEST or self._inside > _LONGEST:
            code.line(f"{self._emit_function(code, index, tag)}({value}, {time})")
            return
        exchanges = [e for e in self._exchanges if e.source_operator == index and e.tag == tag]
        links = [link for link in self._vertex.links if link.source == index and link.tag == tag]
        with code.at(index, value):
            if exchanges:
                self._send(code, exchanges, value, time)
        for link in links:
            self._follow(code, link, value, time, last=link is links[-1])

    def _follow(self, code: CodeBuilder, link: ChainLink, value: str, time: str, *, last: bool) -> None:
        """Hand a record to the next operator: as it is to the last one, as a copy to those before."""
        if not last and not self._reuse:
            copy = code.fresh("v")
            code.line(f"{copy} = {code.bind(own, 'own')}({value})")
            value = copy
        declared = self._vertex.operators[link.target].input_type
        if link.tag is not None and declared is not None:
            value = self._conform(code, link, declared, value)
        self._write(code, link.target, value, time, self.operators[link.target].generate)

    @staticmethod
    def _conform(code: CodeBuilder, link: ChainLink, declared: TypeInformation, value: str) -> str:
        """Generate the conversion of a side output's record to its declared type; answers the variable that holds it.

        PyFlink: functions of a chain hand each other what they like, but a side output leaves the chain.
        """
        converted = code.fresh("v")
        with code.at(link.source, value):
            code.line(f"{converted} = {code.bind(_converter(declared, link.source), 'as_declared')}({value})")
        return converted

    def _send(self, code: CodeBuilder, exchanges: list[Exchange], value: str, time: str) -> None:
        """Put a record into the channels of exchanges; one that could be changed later goes in as a copy."""
        changeable = [e for e in exchanges if e.type_info is None or not e.type_info.is_immutable()]
        if changeable and not self._reuse:
            kept = code.fresh("v")
            plain, copy = code.bind(IMMUTABLE, "immutable"), code.bind(own, "own")
            code.line(f"{kept} = {value} if {value}.__class__ in {plain} else {copy}({value})")
            value = kept
        for exchange in exchanges:
            self._send_over(code, exchange, value, time)

    def _send_over(self, code: CodeBuilder, exchange: Exchange, value: str, time: str) -> None:
        router = self._routers[exchange.id]
        self._modes.append((code.bind(router.writer, "exchange"), str(time != "None")))
        append, add_time = code.fresh("a"), code.fresh("at")
        match exchange.partitioning:
            case Forward() | Global():
                first = router.appends[0]
                append, add_time = code.bind(first[0], "append"), code.bind(first[1], "append_time")
            case Rebalance() | Rescale() | Shuffle():
                if len(router.appends) == 1:
                    first = router.appends[0]
                    append, add_time = code.bind(first[0], "append"), code.bind(first[1], "append_time")
                else:
                    code.line(f"{append}, {add_time} = {code.bind(router.next, 'next_channel')}()")
            case Hash(key):
                k, found = generate_key_of(code, key, value), code.fresh("c")
                with code.looking_up(k):
                    code.line(f"{found} = {code.bind(router.routes.get, 'route')}({k})")
                with code.block(f"if {found} is None:"):
                    code.line(f"{found} = {code.bind(router.resolve, 'resolve')}({k})")
                append, add_time = f"{found}[0]", f"{found}[1]"
            case Custom(partitioner, key):
                choose = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
                k = generate_key_of(code, key, value)
                target = f"{code.bind(choose, 'partition')}({k}, {len(router.appends)})"
                code.line(f"{append}, {add_time} = {code.bind(router.custom, 'custom')}({target})")
            case Broadcast():
                with code.block(f"for {append}, {add_time} in {code.bind(router.appends, 'channels')}:"):
                    self._append(code, append, add_time, value, time)
                return
        self._append(code, append, add_time, value, time)

    @staticmethod
    def _append(code: CodeBuilder, append: str, add_time: str, value: str, time: str) -> None:
        code.line(f"{append}({value})")
        if time != "None":
            code.line(f"{add_time}({time})")

    def _emit_function(self, code: CodeBuilder, index: int, tag: str | None) -> str:
        """The name of a function that emits one record of an operator; it is written when this one is."""
        name = self._functions.get((index, tag))
        if name is None:
            name = self._functions[index, tag] = code.fresh(f"emit_from_{index}_")
            self._unwritten.append((index, tag))
        return name

    def _write_emit_function(self, code: CodeBuilder, index: int, tag: str | None) -> None:
        with code.function(f"def {self._functions[index, tag]}(v, t):"):
            self._with_modes(code, lambda: self._emit(code, index, tag, "v", "t"))

    def _is_split(self, index: int) -> bool:
        """Whether `split` was called on an operator's result."""
        if isinstance(self._vertex.operators[index].spec, FeedbackHeadSpec):
            return False  # its side output is not the user's
        behind = [self._vertex.operators[x.target] for x in self._vertex.links if x.source == index and x.tag is None]
        exchanges = [e for e in self._exchanges if e.source_operator == index and e.tag is None]
        behind += [self._graph.vertices[e.target].operators[0] for e in exchanges]
        return any(isinstance(operator.spec, SplitSpec) for operator in behind)

    def _tags(self, index: int) -> list[str]:
        """The side outputs of an operator that somebody reads."""
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
