"""The driver's handle on one slot: sends requests to it, hears its events, notices when it is gone.

A slot is gone when its process has ended, or when the driver heard nothing from it for the heartbeat's timeout. A
silent slot may hang, be stopped, or run on a machine that cannot be reached. Nothing that it does later may have an
effect: the driver kills it where that is possible, and replaces it in any case.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from ekorn.config import options
from ekorn.errors import DeploymentError, QueryError, SlotLostError, SlotMemoryError, StateNotServed
from ekorn.links.link import Address, Link, connect
from ekorn.links.pipelined_link import PipelinedLink
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, SlotVitals, StackSample
from ekorn.slot_protocol.messages import (
    AnswerQueries,
    CutEpoch,
    Deploy,
    Done,
    DumpThreads,
    Exit,
    Preload,
    ReadLog,
    ReadVitals,
    Request,
    SampleStacks,
    Subscribe,
)
from ekorn.slot_protocol.slot_events import (
    FlowEvent,
    OperatorHint,
    SlotActivity,
    SlotEnds,
    SlotEvent,
    UnreadableEvent,
)
from ekorn.slot_protocol.state_query import Found, QueryableState, StateQuery
from ekorn.slot_protocol.task_messages import ACK
from ekorn.types.by_value import dumps

_log = logging.getLogger(__name__)
_POLL_S = 0.05  # how often a wait for an answer looks whether it was given up


@dataclass(frozen=True)
class Heartbeat:
    """How often a slot reports what it is doing, and when the driver gives up waiting.

    Attributes:
        interval_s: The time between two reports.
        timeout_s: How long a slot may be silent before it is replaced.
        stall_timeout_s: How long all slots may report that an epoch makes no progress before the epoch is cancelled.
    """

    interval_s: float = options.HEARTBEAT_INTERVAL.default / 1000
    timeout_s: float = options.HEARTBEAT_TIMEOUT.default / 1000
    stall_timeout_s: float = options.EPOCH_STALL_TIMEOUT.default / 1000


class SlotProcess(Protocol):
    """The operating system's process of a slot, on this machine or on another."""

    pid: int

    @property
    def alive(self) -> bool:
        """Whether the process runs and has not been given up."""

    def wait_for_end(self) -> str | None:
        """Wait up to half a second for the end of the process; describe the end, or return None if the process runs."""

    def end(self) -> None:
        """Make the process end."""

    def give_up(self, why: str) -> None:
        """Count the process as ended from now on, whether or not it can be made to end."""


class SlotHandle:
    """One slot as the driver sees it: its process, and the connections to it."""

    def __init__(self, number: int, address: Address, secret: bytes, process: SlotProcess) -> None:
        self.number = number
        self.address = address
        self.process = process
        self._secret = secret
        self.control: Link | None = None  # for requests
        self.events: Link | None = None  # for events and heartbeats
        self._unanswered = 0  # requests
        self.queryable: tuple[QueryableState, ...] = ()  # of the last deployment
        self._on_hint: Callable[[OperatorHint], None] = lambda hint: None
        self.queries = QueryLink(number, address, secret)
        self.beside: str | None = None  # Spark's name of the host of the executor beside which the slot runs, if known
        self._own_reason: SlotMemoryError | None = None  # the slot has ended itself
        self._ending = False  # the driver ends the slot itself, so broken connections are expected

    def connect(
        self,
        on_event: Callable[[SlotEvent | FlowEvent | UnreadableEvent], None],
        on_activity: Callable[[int, SlotActivity], None],
        on_lost: Callable[[int], None],
        heartbeat: Heartbeat,
    ) -> None:
        """Open the connections for requests and for events.

        Raises:
            SlotLostError: The slot cannot be reached. Its process is made to end.
        """
        self._on_hint = on_event
        try:
            self.control = connect(self.address, self._secret)
            self.events = connect(self.address, self._secret)
            self.events.send(dumps(Subscribe()))
            self.events.receive()
        except (OSError, EOFError) as error:
            self.close()
            raise SlotLostError(self.number, f"it could not be reached: {error}") from error
        self.events.settimeout(heartbeat.timeout_s)
        threading.Thread(
            target=self._listen,
            args=(self.events, on_event, on_activity, on_lost),
            name=f"slot-{self.number}-events",
            daemon=True,
        ).start()

    def _listen(
        self,
        link: Link,
        on_event: Callable[[SlotEvent | FlowEvent | UnreadableEvent], None],
        on_activity: Callable[[int, SlotActivity], None],
        on_lost: Callable[[int], None],
    ) -> None:
        """Pass on the slot's events and activity until the slot is gone or silent for too long."""
        try:
            while True:
                report = self._report_in(link.receive())
                if isinstance(report, SlotActivity):  # a heartbeat
                    on_activity(self.number, report)
                elif isinstance(report, SlotEnds):
                    for hint in report.hints:
                        on_event(hint)
                    self._own_reason = report.error
                    self._give_up("it has exceeded its memory")
                    on_lost(self.number)
                    return
                else:
                    on_event(report)
        except TimeoutError:
            self._give_up("it has sent no heartbeat for longer than heartbeat.timeout")
            on_lost(self.number)
        except (OSError, EOFError) as error:
            if self._give_up_if_alive(error):  # if the process has ended, requests to the slot will report it
                on_lost(self.number)
        finally:
            link.close()

    def _report_in(self, message: bytes) -> SlotEvent | FlowEvent | UnreadableEvent | SlotActivity | SlotEnds:
        """Unpickle a report. An error of the user's classes does not end the connection."""
        try:
            report: SlotEvent | FlowEvent | SlotActivity | SlotEnds = pickle.loads(message)
        except Exception as error:
            return UnreadableEvent(self.number, f"{type(error).__name__}: {error}")
        return report

    def _give_up_if_alive(self, error: BaseException) -> bool:
        """Give up a slot that runs but has lost a connection: driver and slot no longer hear each other."""
        # A dying process loses its connections before it ends, and its end says more than a broken connection. Each
        # call waits a moment for it.
        if self._ending or any(self.process.wait_for_end() is not None for _ in range(4)):
            return False
        self._give_up(f"a connection to it broke: {error}")
        return True

    def _give_up(self, why: str) -> None:
        self.process.give_up(why)
        _log.warning("slot %d is abandoned: %s", self.number, self.process.wait_for_end())
        if self.control is not None:
            self.control.close()
        self.queries.close()

    def tell(self, request: Request) -> None:
        """Send a request without waiting for its answer, which `answer` returns."""
        self._ending |= isinstance(request, Exit)
        if isinstance(request, Deploy):
            self.queryable = ()  # the answer brings the states of all subtasks of the slot
        self._unanswered += 1
        if self.control is not None:
            with contextlib.suppress(OSError):  # `answer` reports that the slot is gone
                self.control.send(dumps(request))

    def answer(self, timeout_s: float | None = None, given_up: threading.Event | None = None) -> BaseException | None:
        """Wait for the answer to the last request; return the error, or None. A slot that is gone is an error.

        Args:
            timeout_s: How long to wait; None: without limit.
            given_up: When it is set, this stops waiting for the answer. The slot may be inside user code that hangs.
        """
        try:
            if self.control is None:
                raise EOFError("not connected")
            self.control.settimeout(timeout_s)
            while True:
                while given_up is not None and not self.control.wait(_POLL_S):
                    if given_up.is_set():
                        return DeploymentError(f"the answer of slot {self.number} was no longer waited for")
                done: Done = pickle.loads(self.control.receive())
                self._unanswered -= 1
                self.queryable = done.queryable or self.queryable
                for hint in done.hints:
                    self._on_hint(hint)
                if not self._unanswered:  # else this answers an earlier request, which is no longer waited for
                    return done.error
        except TimeoutError as error:
            return self.loss(str(error))
        except (OSError, EOFError) as error:
            self._give_up_if_alive(error)
            return self.loss(str(error))

    def loss(self, otherwise: str) -> SlotLostError:
        """Return the error of the slot, which is gone. Waits a moment for a process that ends.

        Args:
            otherwise: The reason, unless more is known.
        """
        ended = self.process.wait_for_end()
        return self._own_reason or SlotLostError(self.number, ended or otherwise)

    def thread_stacks(self, timeout_s: float) -> list[ThreadStack]:
        """Ask the slot for the stacks of its threads, over a connection of its own. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer in time.
        """
        found: list[ThreadStack] = self._asked_aside(DumpThreads(), timeout_s)
        return found

    def sample_stacks(self, plan: SamplingPlan, timeout_s: float) -> list[StackSample]:
        """Let the slot sample the stacks of its subtasks, over a connection of its own. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer in time, beyond the time of the plan.
        """
        lasts_s = plan.samples * plan.delay_ms / 1000
        found: list[StackSample] = self._asked_aside(SampleStacks(plan), lasts_s + timeout_s)
        return found

    def recent_log(self, timeout_s: float) -> SlotLogs:
        """Ask the slot for the last lines of its log, over a connection of its own. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer in time.
        """
        found: SlotLogs = self._asked_aside(ReadLog(), timeout_s)
        return found

    def vitals(self, timeout_s: float) -> SlotVitals:
        """Ask the slot what its process uses, over a connection of its own. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer in time.
        """
        found: SlotVitals = self._asked_aside(ReadVitals(), timeout_s)
        return found

    def cut_epoch(self, request: CutEpoch, timeout_s: float) -> None:
        """Let the sources of the slot end an epoch, over a connection of its own. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer in time.
        """
        self._asked_aside(request, timeout_s)

    def preload(self, request: Preload, timeout_s: float) -> BaseException | None:
        """Let the slot read state in advance, over a connection of its own; return the error, or None. Thread-safe.

        Raises:
            SlotLostError: The slot does not answer in time.
        """
        done: Done = self._asked_aside(request, timeout_s)
        return done.error

    def _asked_aside(self, request: Request, timeout_s: float) -> Any:
        """Return the answer to a request that the slot answers at once, whatever it is running."""
        try:
            link = connect(self.address, self._secret)
            try:
                link.settimeout(timeout_s)
                link.send(dumps(request))
                return pickle.loads(link.receive())
            finally:
                link.close()
        except (OSError, EOFError) as error:
            raise SlotLostError(self.number, f"it did not answer: {error}") from error

    def close(self) -> None:
        """Close the connection and make the process end."""
        self._ending = True
        self.queries.close()
        if self.control is not None:
            self.control.close()
        self.process.end()


_CONNECT_S = 2.0
_ANSWER_S = 2.0  # beyond the time that the slot may wait for user code


class QueryLink:
    """One connection, opened by the first query. Queries do not wait for each other's answers. Thread-safe."""

    def __init__(self, slot: int, address: Address, secret: bytes) -> None:
        self._slot = slot
        self._address = address
        self._secret = secret
        self._lock = threading.Lock()
        self._link: PipelinedLink | None = None
        self._closed = False

    def ask(self, query: StateQuery) -> Future[list[bytes | None]]:
        """Send a query and return the future of its answer.

        The future raises `StateNotServed` if the slot is gone or does not answer, and the `QueryError` of a slot that
        refuses the query.
        """
        asked: Future[list[bytes | None]] = Future()

        def answered(answer: Future[bytes]) -> None:
            try:
                asked.set_result(self._values(query, answer))
            except Exception as error:  # an error of the slot, or an unreadable answer: the future must end
                asked.set_exception(error)

        try:
            link = self._connected()
        except (OSError, EOFError, DeploymentError) as error:
            asked.set_exception(self._gone(query, error))
        else:
            link.ask(dumps(query), query.timeout_s + _ANSWER_S).add_done_callback(answered)
        return asked

    def _values(self, query: StateQuery, answer: Future[bytes]) -> list[bytes | None]:
        try:
            message = answer.result()
        except (OSError, EOFError) as error:
            raise self._gone(query, error) from error
        found: Found = pickle.loads(memoryview(message)[len(ACK) :])
        if isinstance(found, QueryError):
            raise found
        return found

    def _gone(self, query: StateQuery, error: Exception) -> StateNotServed:
        return StateNotServed(query.name, f"slot {self._slot} is gone: {error}")

    def close(self) -> None:
        """End the connection. A query that waits for its answer is refused. Thread-safe."""
        self._closed = True
        link = self._link
        if link is not None:
            link.close()

    def _connected(self) -> PipelinedLink:
        with self._lock:
            if self._closed:
                raise EOFError("the driver has abandoned it")
            if self._link is None or self._link.is_broken:
                link = connect(self._address, self._secret, _CONNECT_S)
                link.send(dumps(AnswerQueries()))
                self._link = PipelinedLink(link, f"slot-{self._slot}-queries")
                if self._closed:  # meanwhile, and `close` may not have seen the connection
                    self._link.close()
            return self._link
