"""Serves a slot: the driver and Spark's tasks put requests to it over authenticated connections."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import threading
from collections.abc import Callable
from typing import assert_never

from ekorn.clock import SystemClock
from ekorn.errors import DeploymentError, SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.links.link import Address, Link
from ekorn.links.listener import Listener
from ekorn.metrics.thread_stacks import thread_stacks
from ekorn.slot.continuous.mailbox import Mailbox
from ekorn.slot.epochs.epoch_server import EpochServer
from ekorn.slot.epochs.task_answers import picklable
from ekorn.slot.event_reports import Reports
from ekorn.slot.garbage import SlotGarbage
from ekorn.slot.host import SlotHost
from ekorn.slot.memory.memory_watch import MemoryWatch
from ekorn.slot.query_connection import QueryConnection
from ekorn.slot.recent_log import RecentLog, RecentOutput
from ekorn.slot.stack_sampling import sample_stacks
from ekorn.slot.state.preloading import ReadThrottle
from ekorn.slot.tables.table_host import TableHost
from ekorn.slot.vitals import own_vitals
from ekorn.slot_protocol.deployment_codec import decode_classes, decode_deployment
from ekorn.slot_protocol.diagnostics import SlotLogs
from ekorn.slot_protocol.messages import (
    Aborted,
    AnswerQueries,
    BeginSavepoint,
    CloseSubtasks,
    Completed,
    CutEpoch,
    Deploy,
    Discard,
    Done,
    DumpThreads,
    Exit,
    KeepFile,
    OrderEpoch,
    PauseSources,
    Preload,
    ReadLog,
    ReadVitals,
    Request,
    SampleStacks,
    Subscribe,
)
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.slot_events import EpochAcknowledged, FlowEvent, SlotEnds, SlotEvent, SubtaskFailed
from ekorn.slot_protocol.table_messages import BeginTables, CommitTables, LookUp, ReadTable, WriteTable
from ekorn.slot_protocol.task_messages import ACK, FAILED, Attach, RunEpoch
from ekorn.types.by_value import dumps


class SlotServer:
    """The host of one slot's subtasks, and the connections to it.

    Args:
        config: The configuration of the slot.
        garbage: The collections between epochs; none unless given, because other code may share the process.
        log: The last lines that the process has logged; none unless given.
        output: What the process has printed last; nothing unless given.
        queried: Called before the first query of state.
    """

    def __init__(
        self,
        config: SlotConfig,
        garbage: SlotGarbage | None = None,
        log: RecentLog | None = None,
        output: RecentOutput | None = None,
        queried: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._log = log or RecentLog()
        self._output = output or RecentOutput()
        self._garbage = garbage or SlotGarbage()
        self._queried = queried
        self._reports = Reports()
        self._host = SlotHost(
            config.slot, SystemClock(), self._reports.put, os.path.join(config.folder, f"slot-{config.slot}")
        )
        self._tables = TableHost(config.slot, self._host.existing_folder)
        self._user_code = self._host.user_code
        self._mailbox = Mailbox(self._host, self._user_code, SystemClock(), self._reports)
        self._epochs = EpochServer(self._host, self._garbage)
        self._runner: EpochServer | Mailbox = self._epochs  # the one that the last deployment has chosen
        self._reports.on_room = self._mailbox.wake
        self._mailbox.failed = self._subtask_failed
        self._listener = Listener(
            config.address, config.secret, self._serve_connection, "slot-connection", config.certificate
        )
        self.ended = threading.Event()

    def memory_watch(self, end: Callable[[], object]) -> MemoryWatch:
        """Return what watches the memory of the process, and calls `end` when the slot exceeds its own."""
        return MemoryWatch(self._host, self._reports, end)

    @property
    def address(self) -> Address:
        """The address on which the slot listens."""
        return self._listener.address

    def start(self) -> None:
        """Serve connections until the slot ends. Each connection has a thread of its own."""
        self._listener.start()

    def stop(self) -> None:
        """Close the subtasks and remove the slot's folder."""
        self.ended.set()
        self._listener.close()
        if not isinstance(self._config.address, tuple):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._config.address)
        self._mailbox.stop()
        if self._user_code.acquire(timeout_s=3.0):  # do not wait for a request that hangs in user code
            self._host.shutdown()
            self._tables.close()

    def _serve_connection(self, link: Link) -> None:
        try:
            while True:
                request: Request = pickle.loads(link.receive())
                if not self._answer(link, request):
                    return
        except (EOFError, OSError):
            pass  # the peer is gone; a task that died in the middle of an epoch leaves the slot dirty
        finally:
            link.close()

    def _answer(self, link: Link, request: Request) -> bool:
        match request:
            case RunEpoch():
                self._epochs.serve(request, link)
            case Attach():
                self._serve_task(link, request)
                return False
            case OrderEpoch():
                self._order_epoch(request)
                link.send(dumps(Done()))
            case PauseSources(attempt):
                if attempt == self._host.attempt:
                    self._mailbox.pause_sources()
                link.send(dumps(Done()))
            case CutEpoch(attempt, number):
                if attempt == self._host.attempt:
                    self._host.epoch_cut.cut(number)
                link.send(dumps(Done()))
            case Subscribe():
                link.send(dumps(Done()))
                self._publish_events(link)
            case DumpThreads():
                link.send(dumps(thread_stacks()))
            case SampleStacks(plan):
                link.send(dumps(sample_stacks(self._host, plan)))
            case Preload():
                link.send(dumps(Done(self._preload(request))))
            case ReadLog():
                link.send(dumps(SlotLogs(self._log.read(), self._output.read())))
            case ReadVitals():
                link.send(dumps(own_vitals(self._host)))
            case Exit():
                link.send(dumps(Done()))
                self.ended.set()
                return False
            case BeginTables() | CommitTables():
                link.send(dumps(Done(self._perform_on_tables(request))))
            case WriteTable() | LookUp() | ReadTable():
                self._answer_about_table(link, request)
            case Deploy() | KeepFile() | BeginSavepoint() | Completed() | Aborted() | CloseSubtasks() | Discard():
                if isinstance(request, Deploy | Discard):
                    self._epochs.hang_up()
                link.send(dumps(self._perform(request)))
            case AnswerQueries():
                self._queried()
                QueryConnection(link, self._host).serve()
            case _:
                assert_never(request)
        return True

    def _serve_task(self, link: Link, request: Attach) -> None:
        try:
            self._mailbox.serve(request, link)
        except SlotLostError as refusal:
            link.send(FAILED, dumps(refusal))

    def _order_epoch(self, request: OrderEpoch) -> None:
        """Pass an order on without the lock: the driver must not wait for user code that hangs in a step."""
        if request.attempt == self._host.attempt:
            self._mailbox.order(request.order)

    def _subtask_failed(self, subtask: SubtaskId, attempt: int, error: Exception) -> None:
        """Report the failure of a subtask of the mailbox."""
        self._reports.put(SubtaskFailed(attempt, subtask, dumps(picklable(error))))

    def _perform(
        self, request: Deploy | KeepFile | BeginSavepoint | Completed | Aborted | CloseSubtasks | Discard
    ) -> Done:
        with self._user_code:
            try:
                match request:
                    case Deploy(data, subtasks):
                        self._epochs.forget_answers()
                        deployment = decode_deployment(data)
                        self._runner.end(deployment.only, in_order=False)
                        self._garbage.deploying()
                        self._host.deploy(deployment, subtasks)
                        self._garbage.deployed()
                        self._runner = self._mailbox if deployment.continuous else self._epochs
                        self._runner.begin(deployment)
                        return Done(queryable=self._host.queryable_states())
                    case KeepFile(number, file, part, last, first):
                        self._host.files.receive(number, file, part, last=last, first=first)
                    case BeginSavepoint(checkpoint_id, savepoint):
                        self._host.begin_savepoint(checkpoint_id, savepoint)
                    case Completed(checkpoint_id):
                        self._host.checkpoint_completed(checkpoint_id)
                    case Aborted(checkpoint_id, failed):
                        self._runner.checkpoint_aborted(checkpoint_id)
                        self._host.checkpoint_aborted(checkpoint_id, failed)
                    case CloseSubtasks():
                        self._runner.end(in_order=True)
                        self._host.close_subtasks()
                    case Discard(only):
                        self._runner.end(only, in_order=False)
                        self._host.discard(only)
                        return Done(hints=self._host.take_hints() if only is None else ())
            except Exception as error:  # travels to the driver, which decides what it means
                return Done(picklable(error))
        return Done()

    def _preload(self, request: Preload) -> BaseException | None:
        """Read state beside the subtasks that run, without the lock, on the thread of the connection."""
        try:
            if self._host.attempt is None:  # else running code uses the classes that a deployment has brought
                decode_classes(request.classes)
            self._host.preload(request.plan, ReadThrottle(SystemClock()).pause)
        except Exception as error:  # travels to the driver: the deployment reads the state then
            return picklable(error)
        return None

    def _perform_on_tables(self, request: BeginTables | CommitTables) -> BaseException | None:
        try:
            self._tables.answer(request)
        except Exception as error:  # travels to the driver, which decides what it means
            return picklable(error)
        return None

    def _answer_about_table(self, link: Link, request: WriteTable | LookUp | ReadTable) -> None:
        try:
            found = self._tables.answer(request)
        except Exception as error:  # travels to the task that asked
            link.send(FAILED, dumps(picklable(error)))
        else:
            link.send(ACK, found)

    def _publish_events(self, link: Link) -> None:
        """Send each event as it happens, and heartbeats between them, on a thread beside the user's code."""
        clock = SystemClock()
        due = clock.monotonic() + self._config.heartbeat_s
        while not self.ended.is_set():
            try:
                event = self._reports.get(max(due - clock.monotonic(), 0.0))
            except queue.Empty:
                link.send(dumps(self._runner.activity()))
                due = clock.monotonic() + self._config.heartbeat_s
            else:
                link.send(_encoded_event(event))
                self._reports.sent(event)


def _encoded_event(event: SlotEvent | FlowEvent | SlotEnds) -> bytes:
    """Return the event, or the failure of its subtask if an object of the user in it cannot be pickled."""
    try:
        return dumps(event)
    except Exception as error:  # the user's accumulators and exceptions may do anything
        if not isinstance(event, EpochAcknowledged):
            raise
        subtask = SubtaskId(event.ack.vertex, event.ack.subtask)
        why = DeploymentError(f"an accumulator or metric of {subtask} cannot be pickled: {error!r}")
        return dumps(SubtaskFailed(event.attempt, subtask, dumps(why)))
