"""The operators of one subtask, from open to close."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ekorn.codegen.blame import Blame
from ekorn.errors import UserFunctionError
from ekorn.functions.record_functions import Function
from ekorn.graph.specs import Custom, Hash
from ekorn.operators.build import build
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import SubtaskOrder
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.sinks.driver_output import DriverOutput
from ekorn.operators.undeclared_states import declares_later, undeclared_text
from ekorn.state.operator_state_files import OperatorState, decode_operator_state, redistribute
from ekorn.state.snapshots import OperatorRestore, SubtaskRestore
from ekorn.state.state_files import read_state
from ekorn.storage.file_store import FileStore


class OperatorLifecycle:
    """Takes the operators of one subtask through the stages of their life.

    Records and watermarks travel from the head of the chain to its tails, and so do the calls of an epoch. Opening,
    snapshots, notifications and closing go the other way: an operator is opened after the operators it emits to.
    """

    def __init__(self, environment: SubtaskEnvironment, driver_output: DriverOutput, blame: Blame) -> None:
        self.operators: list[RuntimeOperator] = []
        self._environment = environment
        self._driver_output = driver_output
        self._blame = blame
        self._helpers: list[tuple[int, Function]] = []  # once all of them are open
        self._later: list[RuntimeOperator] = []  # restored operators that may declare state with their first records

    # ------------------------------------------------------------------------------------------------- opening

    def open(self, restored: SubtaskRestore | None, store: FileStore | None) -> None:
        """Build the operators, restore their state and open them."""
        for number, operator in enumerate(self._environment.vertex.operators):
            with self._blame.operator(number):
                self.operators.append(build(operator, self._environment, self._driver_output))
        for number, running in self._tail_first():
            saved = restored.of(running.operator.id) if restored is not None else None
            running.restore(saved, self._operator_state(saved, store), store)
            with self._blame.operator(number):
                running.initialize()
                running.open()
                running.register_backend_metrics()
        helpers = list(self._find_helpers())
        for number, helper in helpers:
            with self._blame.operator(number):
                context = self.operators[number].runtime_context()
                helper.set_runtime_context(context)
                helper.open(context)
        self._helpers = helpers
        if restored is not None:
            self._later = [running for running in self.operators if declares_later(running.functions())]
            self._hint_at_undeclared(running for running in self.operators if running not in self._later)

    def hint_at_undeclared_states(self) -> None:
        """Hint at restored state that operators have not declared with their first records, if they may do so."""
        if self._later:
            self._hint_at_undeclared(self._later)
            self._later = []

    @staticmethod
    def _hint_at_undeclared(operators: Iterable[RuntimeOperator]) -> None:
        for running in operators:
            text = undeclared_text(running)
            if text is not None:
                running.hint("undeclared state", text)

    def _operator_state(self, saved: OperatorRestore | None, store: FileStore | None) -> OperatorState | None:
        """Read the operator state that all subtasks saved, and return this subtask's share."""
        if saved is None or not any(saved.operator_state):
            return None
        assert store is not None
        old = [None if f is None else decode_operator_state(read_state(store, f)) for f in saved.operator_state]
        return redistribute(old, self._environment.vertex.parallelism, self._environment.index)

    def _find_helpers(self) -> Iterator[tuple[int, Function]]:
        """Yield the key selectors and partitioners that have a lifecycle, with the operator that calls them."""
        vertex = self._environment.vertex
        for number, operator in enumerate(vertex.operators):
            for key in operator.keys or (operator.key,):
                if key is not None and isinstance(key.selector, Function):
                    yield number, key.selector
        for exchange in self._environment.graph.outputs_of(vertex.id):
            match exchange.partitioning:
                case Hash(key):
                    candidates = [key.selector]
                case Custom(partitioner, key):
                    candidates = [partitioner, key.selector]
                case _:
                    candidates = []
            for candidate in candidates:
                if isinstance(candidate, Function):
                    yield exchange.source_operator, candidate

    # ------------------------------------------------------------------------------------------------ an epoch

    def set_open_loops(self, loops: frozenset[int] | None) -> None:
        """Tell every operator which feedback loops are open in this epoch, if that is known."""
        if loops is not None:
            self._head_first(lambda operator: operator.set_open_loops(loops))

    def begin_epoch(self, order: SubtaskOrder) -> None:
        """Give every operator the order of an epoch."""
        self._head_first(lambda operator: operator.begin_epoch(order))

    def advance_clock(self) -> None:
        """Tell every operator the processing time."""
        self._head_first(lambda operator: operator.on_clock(self._environment.clock.now_ms()))

    def emit_periodic_watermarks(self) -> None:
        self._head_first(lambda operator: operator.emit_periodic_watermark())

    def end_epoch(self, *, emits_watermarks: bool = True) -> None:
        """Complete an epoch.

        Args:
            emits_watermarks: Whether periodic watermarks are emitted now. Each operator emits before it completes.
        """
        for operator in self.operators:
            if emits_watermarks:
                operator.emit_periodic_watermark()
            operator.end_epoch()
            if operator.backend is not None:
                operator.backend.end_epoch()

    def may_finish(self) -> bool:
        """Ask every operator whether it may finish. An operator that may not begins to wait when it is asked."""
        answers = [operator.may_finish() for operator in self.operators]  # every operator is asked
        return all(answers)

    def finish(self) -> None:
        self._head_first(lambda operator: operator.finish())

    def next_timer_ms(self) -> int | None:
        """Return the earliest processing time at which an operator has something to do."""
        timers = [operator.next_timer_ms() for operator in self.operators]
        return min((timer for timer in timers if timer is not None), default=None)

    def open_loops(self) -> frozenset[int]:
        """Return the feedback loops that operators keep open."""
        return frozenset(n for n in (operator.open_loop() for operator in self.operators) if n is not None)

    # ---------------------------------------------------------------------------------- notifications and close

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        for number, operator in self._tail_first():
            with self._blame.operator(number):
                operator.checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        for number, operator in self._tail_first():
            with self._blame.operator(number):
                operator.checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        """Close all operators and helpers, then raise the first error."""
        first: UserFunctionError | None = None
        closed: list[tuple[int, RuntimeOperator | Function]] = [*self._tail_first(), *self._helpers]
        for number, running in closed:
            try:
                with self._blame.operator(number):
                    running.close()
            except UserFunctionError as error:
                first = first or error
        if first is not None:
            raise first

    def _head_first(self, call: Callable[[RuntimeOperator], None]) -> None:
        for number, operator in enumerate(self.operators):
            with self._blame.operator(number):
                call(operator)

    def _tail_first(self) -> Iterator[tuple[int, RuntimeOperator]]:
        for number in reversed(range(len(self.operators))):
            yield number, self.operators[number]
