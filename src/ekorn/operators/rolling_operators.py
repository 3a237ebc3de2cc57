"""Rolling aggregates: reduce (also sum, min, max, min_by and max_by), fold, and the with-state forms.

In STREAMING mode every record gives a result. In BATCH mode records come key by key, and only the last result
of a key is emitted, after its last record.
"""

from __future__ import annotations

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import InvalidProgramError
from ekorn.functions.record_functions import FoldFunction, ReduceFunction
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import FoldSpec, ReduceSpec, WithStateSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import HasFunction, UserFunctionOperator, method_of
from ekorn.types.by_value import own
from ekorn.types.time_bounds import MAX_TIMESTAMP


class _SoFar(ValueStateDescriptor):
    """A state whose values are also emitted. The chain checks them against the declared type when they leave it."""

    checks_values = False


class _OneValuePerKey(UserFunctionOperator):
    """An operator with one value per key as its own state, beside the state of its function."""

    def __init__(self, operator: Operator, spec: HasFunction, environment: SubtaskEnvironment, state_name: str) -> None:
        super().__init__(operator, spec, environment)
        assert self.backend is not None, "the stream graph puts rolling operators on keyed streams only"
        self._descriptor: ValueStateDescriptor = _SoFar(state_name, operator.output_type)
        self._batch = environment.graph.settings.batch
        self.needs_out = self._batch

    def open(self) -> None:
        assert self.backend is not None
        self.value = self.backend.state(self._descriptor)
        super().open()

    def end_key(self) -> None:
        result = self.value.value()
        if result is not None:
            self.out(result, MAX_TIMESTAMP)


class ReduceOperator(_OneValuePerKey):
    def __init__(self, operator: Operator, spec: ReduceSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment, "_reduce")

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        so_far, result = code.fresh("s"), code.fresh("v")
        reduce = code.bind(method_of(self._function, ReduceFunction, "reduce"), "reduce")
        code.line(f"{so_far} = {code.bind(self.value.value, 'value')}()")
        code.line(f"{result} = {value} if {so_far} is None else {reduce}({so_far}, {value})")
        with code.block(f"if {result} is None:"):
            code.line(f"{code.bind(_refuse_none, 'refuse_none')}()")
        code.line(f"{code.bind(self.value.update, 'update')}({result})")
        if not self._batch:
            emit(result, time)


def _refuse_none() -> None:
    raise InvalidProgramError("a reduce function returned None, which would clear the state of the key; return a value")


class FoldOperator(_OneValuePerKey):
    def __init__(self, operator: Operator, spec: FoldSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment, "_fold")
        self._initial = spec.initial

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        so_far, result = code.fresh("s"), code.fresh("v")
        fold = code.bind(method_of(self._function, FoldFunction, "fold"), "fold")
        copy, initial = code.bind(own, "own"), code.bind(self._initial, "initial")
        code.line(f"{so_far} = {code.bind(self.value.value, 'value')}()")
        code.line(f"{result} = {fold}({copy}({initial}) if {so_far} is None else {so_far}, {value})")
        code.line(f"{code.bind(self.value.update, 'update')}({result})")
        if not self._batch:
            emit(result, time)


class WithStateOperator(_OneValuePerKey):
    """`map_with_state` and its filter and flat-map forms. A returned state of None clears the state."""

    def __init__(self, operator: Operator, spec: WithStateSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment, "_with_state")
        self._descriptor = ValueStateDescriptor("_with_state")  # the declared type is the type of results
        self._form = spec.form
        self.needs_out = False

    def end_key(self) -> None:
        """Emit nothing: every record gave its result already."""

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        result, state = code.fresh("v"), code.fresh("s")
        call, before = code.bind(self._function, "with_state"), code.bind(self.value.value, "value")
        code.line(f"{result}, {state} = {call}({value}, {before}())")
        code.line(f"{code.bind(self.value.update, 'update')}({state})")
        if self._form == "map":
            emit(result, time)
        elif self._form == "filter":
            with code.block(f"if {result}:"):
                emit(value, time)
        else:
            inner = code.fresh("v")
            with code.block(f"if {result} is not None:"), code.block(f"for {inner} in {result}:"):
                emit(inner, time)
