"""The statements that put a record into the channels of an exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from ekorn.codegen.chain_operator import RecordErrorHandler
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.codegen.key_code import generate_key_of
from ekorn.columns.columns_type import has_columns
from ekorn.functions.record_functions import Partitioner
from ekorn.graph.job_graph import Exchange
from ekorn.graph.specs import Broadcast, Custom, Forward, Global, Hash, Rebalance, Rescale, Shuffle
from ekorn.types.by_value import IMMUTABLE, own

Append = tuple[Callable[[Any], None], Callable[[Any], None]]
"""The `append` methods of one channel: for values, and for timestamps."""


COPY = "the serialization of a result of"
"""The activity of a line that copies a record for its receiver."""


class TimedWriter(Protocol):
    """The sending side of an exchange."""

    def set_timed(self, timed: bool) -> None:
        """State whether the records that follow have timestamps."""


class ExchangeRouter(Protocol):
    """Finds the channel for a record of one exchange. `subtask/outbox.py` implements it."""

    appends: list[Append]  # by channel
    next: Callable[[], Append]  # for partitionings that do not depend on the record
    routes: dict[Any, Append]  # the remembered channels, by key

    @property
    def writer(self) -> TimedWriter:
        """The exchange's sending side."""

    def resolve(self, key: Any) -> Append:
        """Return the channel of a key that is not in `routes`."""

    def resolve_unhashable(self, key: Any) -> Append:
        """Return the channel of a key that cannot be looked up in `routes`, such as a list."""

    def custom(self, index: Any) -> Append:
        """Return the channel with the index that a user's partitioner returned."""

    def send_columns(self, batch: Any) -> None:
        """Send each row of a batch of columns to its channel."""

    def choose_for_columns(self, batch: Any) -> Any:
        """Return the channel that a user's partitioner chooses for each row of a batch of columns."""


class ExchangeCode:
    """Generates the statements that send records over the exchanges of a chain.

    Args:
        routers: By exchange id.
        object_reuse: Send records without copying them. The program must not change them later.
    """

    def __init__(self, routers: Mapping[int, ExchangeRouter], *, object_reuse: bool) -> None:
        self._routers = routers
        self._object_reuse = object_reuse
        # The exchanges that the function under construction uses, and whether with timestamps.
        self._used: list[tuple[str, bool]] = []

    @contextmanager
    def function_body(self, code: CodeBuilder) -> Iterator[None]:
        """Generate a function's body inside. Its first lines tell each exchange whether records have timestamps."""
        outer, self._used = self._used, []
        position = code.position()
        yield
        for writer, timed in dict.fromkeys(self._used):
            code.insert(position, f"{writer}.set_timed({timed})")
        self._used = outer

    def generate_send(
        self,
        code: CodeBuilder,
        exchanges: list[Exchange],
        value: str,
        time: str,
        refused: RecordErrorHandler | None = None,
    ) -> None:
        """Generate the statements that send a record over exchanges; as a copy, if the record can be changed later.

        Args:
            refused: Gets the rows of a batch of columns that cannot be sent; if None, they fail the job.
        """
        changeable = [e for e in exchanges if e.type_info is None or not e.type_info.is_immutable()]
        if changeable and not self._object_reuse:
            kept = code.fresh("v")
            plain, copy = code.bind(IMMUTABLE, "immutable"), code.bind(own, "own")
            with code.doing(COPY):
                code.line(f"{kept} = {value} if {value}.__class__ in {plain} else {copy}({value})")
            value = kept
        for exchange in exchanges:
            self._generate_send_over(code, exchange, value, time, refused)

    def _generate_send_over(
        self, code: CodeBuilder, exchange: Exchange, value: str, time: str, refused: RecordErrorHandler | None
    ) -> None:
        router = self._routers[exchange.id]
        if has_columns(exchange.type_info):  # a batch has its timestamps in it, and is divided as a whole
            self._used.append((code.bind(router.writer, "exchange"), False))
            if not isinstance(exchange.partitioning, Custom):
                code.line(f"{code.bind(router.send_columns, 'send')}({value})")
                return
            from ekorn.columns.batch_parts import RowSender  # which loads PyArrow

            with code.doing("partition_custom() after"):
                sender = RowSender(router.send_columns, router.choose_for_columns, refused)
                code.line(f"{code.bind(sender.send, 'send')}({value})")
            return
        self._used.append((code.bind(router.writer, "exchange"), time != "None"))
        append, append_time = code.fresh("a"), code.fresh("at")
        match exchange.partitioning:
            case Forward() | Global():
                append, append_time = _bind_only_channel(code, router)
            case Rebalance() | Rescale() | Shuffle():
                if len(router.appends) == 1:
                    append, append_time = _bind_only_channel(code, router)
                else:
                    code.line(f"{append}, {append_time} = {code.bind(router.next, 'next_channel')}()")
            case Hash(key):
                with code.doing("the key selector of key_by() after"):
                    k, found = generate_key_of(code, key, value), code.fresh("c")
                with code.block("try:"):
                    code.line(f"{found} = {code.bind(router.routes.get, 'route')}({k})")
                with code.block("except TypeError:"):
                    code.line(f"{found} = {code.bind(router.resolve_unhashable, 'resolve_unhashable')}({k})")
                with code.block(f"if {found} is None:"):
                    code.line(f"{found} = {code.bind(router.resolve, 'resolve')}({k})")
                append, append_time = f"{found}[0]", f"{found}[1]"
            case Custom(partitioner, key):
                choose = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
                with code.doing("partition_custom() after"):
                    k = generate_key_of(code, key, value)
                    target = f"{code.bind(choose, 'partition')}({k}, {len(router.appends)})"
                    code.line(f"{append}, {append_time} = {code.bind(router.custom, 'custom')}({target})")
            case Broadcast():
                with code.block(f"for {append}, {append_time} in {code.bind(router.appends, 'channels')}:"):
                    _generate_append(code, append, append_time, value, time)
                return
        _generate_append(code, append, append_time, value, time)


def _bind_only_channel(code: CodeBuilder, router: ExchangeRouter) -> tuple[str, str]:
    append, append_time = router.appends[0]
    return code.bind(append, "append"), code.bind(append_time, "append_time")


def _generate_append(code: CodeBuilder, append: str, append_time: str, value: str, time: str) -> None:
    code.line(f"{append}({value})")
    if time != "None":
        code.line(f"{append_time}({time})")
