"""Functions over two connected streams: one loop per input; keyed streams share their state and timers."""

from __future__ import annotations

from abc import abstractmethod

from ekorn.codegen.chain_operator import Emit, GenerateRecord
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import RuntimeOperator, UserFunctionOperator
from ekorn.operators.process_operators import KeyedProcessOperator, ProcessOperator, generate_process_call
from ekorn.operators.results import FLAT_MAP_RESULTS, generate_loop

FIRST, SECOND = 0, 1


class TwoInputOperator(RuntimeOperator):
    """The head of a chain with two inputs: `generate` is for the first input, `generate_second` for the second."""

    def inputs(self) -> tuple[GenerateRecord, ...]:
        return self.generate, self.generate_second

    @abstractmethod
    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        """Generate the statements that process one record of the second input."""


class CoMapOperator(UserFunctionOperator, TwoInputOperator):
    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, FIRST)
        self._generate_map(code, code.bind(self._function.map1, "map"), value, time, emit)

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, SECOND)
        self._generate_map(code, code.bind(self._function.map2, "map"), value, time, emit)

    @staticmethod
    def _generate_map(code: CodeBuilder, call: str, value: str, time: str, emit: Emit) -> None:
        result = code.fresh("v")
        code.line(f"{result} = {call}({value})")
        with code.block(f"if {result} is not None:"):  # Flink: PyFlink's co-map drops None, unlike its map
            emit(result, time)


class CoFlatMapOperator(UserFunctionOperator, TwoInputOperator):
    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, FIRST)
        with generate_loop(code, self, self._function.flat_map1, value, "flat_map", kinds=FLAT_MAP_RESULTS) as result:
            emit(result, time)

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, SECOND)
        with generate_loop(code, self, self._function.flat_map2, value, "flat_map", kinds=FLAT_MAP_RESULTS) as result:
            emit(result, time)


class CoProcessOperator(ProcessOperator, TwoInputOperator):
    """`process` on two streams without keys: no timers, but the watermark and the processing time can be read."""

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        process = self._function.process_element1
        generate_process_call(code, self, process, self._context, value=value, time=time, emit=emit, side=side)

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        process = self._function.process_element2
        generate_process_call(code, self, process, self._context, value=value, time=time, emit=emit, side=side)


class KeyedCoProcessOperator(KeyedProcessOperator, TwoInputOperator):
    """`process` on two keyed streams, which share the state and timers of a key."""

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, FIRST)
        process = self._function.process_element1
        generate_process_call(code, self, process, self._context, value=value, time=time, emit=emit, side=side)

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, SECOND)
        process = self._function.process_element2
        generate_process_call(code, self, process, self._context, value=value, time=time, emit=emit, side=side)
