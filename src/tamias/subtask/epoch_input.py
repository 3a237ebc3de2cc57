"""Reading the input of one epoch: from the source at the head of the chain, or from blobs of other subtasks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Protocol

from tamias.functions.source_contract import Batch
from tamias.graph.addresses import ChannelId
from tamias.graph.channels import senders_of
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.epoch import Ack, EpochOrder
from tamias.operators.held_watermark import HeldWatermark
from tamias.operators.source_head import Budget, SourceHead, SourceProgress
from tamias.operators.watermarks import SourceEvent, SourceTime
from tamias.subtask.input_channels import InputChannels
from tamias.subtask.intake import Intake
from tamias.subtask.outbox import Emitted, Outbox
from tamias.subtask.time_flow import TimeFlow
from tamias.subtask.wire.frames import END, IDLE, RECORDS, WATERMARK, Frame, ReceivedBlob, in_order
from tamias.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

_log = logging.getLogger(__name__)


class EpochInput(Protocol):
    """The input of a subtask."""

    ended: bool  # nothing will ever follow

    @property
    def watermark_ms(self) -> int:
        """The event time that the input has reached."""

    def read(self, order: EpochOrder, blobs: Iterable[ReceivedBlob], ack: Ack) -> Iterator[Emitted]:
        """Push one epoch's input through the chain; yield the blobs that fill up meanwhile."""


class ChannelInput:
    """Reads the blobs that other subtasks sent."""

    def __init__(
        self,
        environment: SubtaskEnvironment,
        intake: Intake,
        time_flow: TimeFlow,
        outbox: Outbox,
        *,
        first_input: int | None,
    ) -> None:
        graph, vertex = environment.graph, environment.vertex
        exchanges = graph.inputs_of(vertex.id)
        self.ended = False
        self._channels = InputChannels(
            ChannelId(exchange.id, sender)
            for exchange in exchanges
            for sender in senders_of(exchange, graph.vertices[exchange.source], vertex, environment.index)
        )
        self._input_of = {exchange.id: exchange.input_index for exchange in exchanges}
        self._environment = environment
        self._sender_of = {exchange.id: graph.vertices[exchange.source].name for exchange in exchanges}
        self._held = HeldWatermark[ChannelId](graph.settings.held_watermark_warning_ms)
        self._read_first = frozenset(exchange.id for exchange in exchanges if exchange.input_index == first_input)
        self._intake = intake
        self._time_flow = time_flow
        self._outbox = outbox

    @property
    def watermark_ms(self) -> int:
        return self._channels.watermark_ms

    def read(self, order: EpochOrder, blobs: Iterable[ReceivedBlob], ack: Ack) -> Iterator[Emitted]:
        for blob in in_order(blobs, self._read_first):
            channel, input_index = blob.channel, self._input_of[blob.exchange]
            for frame in blob.frames():
                if frame[0] == RECORDS:
                    self._intake.process(frame[1], frame[2], input_index)
                else:
                    self._take_mark(channel, frame)  # exactly where its sender put it: between two runs
            if not self.ended:
                yield from self._outbox.take_full()
        self._warn_if_held()

    def _warn_if_held(self) -> None:
        held = self._held.check(self._channels.active(), self._environment.clock.monotonic())
        if held is not None:
            sender = f"{self._sender_of[held.input.exchange]!r} (subtask {held.input.sender})"
            _log.warning("the input of %s from %s %s", self._environment.name, sender, held)

    def _take_mark(self, channel: ChannelId, frame: Frame) -> None:
        kind = frame[0]
        if kind == WATERMARK:
            self._advance(self._channels.advance(channel, frame[1]))
        elif kind == IDLE:
            was_idle = self._channels.idle
            self._advance(self._channels.set_idle(channel, frame[1]))
            if self._channels.idle is not was_idle:
                self._time_flow.set_idle(self._channels.idle)
        elif kind == END:
            self.ended = self._channels.end(channel)

    def _advance(self, watermark_ms: int | None) -> None:
        if watermark_ms is not None and not self._intake.holds_records:
            self._time_flow.advance(watermark_ms)


class SourceInput:
    """Reads the source at the head of the chain.

    Args:
        ended_before: The subtask was restored from a checkpoint that was taken after its source had ended.
    """

    def __init__(
        self,
        head: SourceHead,
        environment: SubtaskEnvironment,
        intake: Intake,
        time_flow: TimeFlow,
        outbox: Outbox,
        *,
        ended_before: bool,
    ) -> None:
        settings, clock = environment.graph.settings, environment.clock
        self.ended = False
        self.watermark_ms = MIN_TIMESTAMP
        self._head = head
        self._ended_before = ended_before
        self._source_time = SourceTime(settings.time_characteristic, clock, settings.auto_watermark_interval_ms)
        self._intake = intake
        self._time_flow = time_flow
        self._outbox = outbox

    def read(self, order: EpochOrder, blobs: Iterable[ReceivedBlob], ack: Ack) -> Iterator[Emitted]:
        if self.ended:
            return
        progress = SourceProgress(finished=self._ended_before)
        if not self._ended_before and not order.drain:
            budget = Budget(order.max_records, order.max_source_ms, order.max_source_bytes, order.group_watermarks)
            yield from self._take_all(self._head.read(budget, progress))
        if order.checkpoint_id is not None or order.drain:
            yield from self._take_all(self._head.cut(progress))  # the source stands still until its state is captured
        for event in self._source_time.end_epoch():
            self._take_event(event)
        ack.backlog = progress.backlog
        if progress.finished or order.drain:
            self._time_flow.set_idle(False)  # the last watermark also counts for a source that was idle
            self._time_flow.advance(MAX_TIMESTAMP)
            self.ended = True
        else:
            ack.group_watermarks = self._head.group_watermarks()

    def _take_all(self, items: Iterable[Batch | SourceEvent]) -> Iterator[Emitted]:
        for item in items:
            for part in self._source_time.apply(item):
                if isinstance(part, SourceEvent):
                    self._take_event(part)
                else:
                    self._intake.process(part.values, part.timestamps)  # type: ignore[arg-type]
            yield from self._outbox.take_full()

    def _take_event(self, event: SourceEvent) -> None:
        if event.watermark_ms is not None and event.watermark_ms > self.watermark_ms:
            self.watermark_ms = event.watermark_ms
            self._time_flow.advance(event.watermark_ms)
        if event.idle is not None:
            self._time_flow.set_idle(event.idle)
