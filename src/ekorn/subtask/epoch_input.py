"""Reads the input of a subtask: from the source at the head of the chain, or from blobs of other subtasks.

`read` reads the input of one epoch. `continuous/` calls the parts of `read` one by one instead: it takes a blob at a
time, or a few records of a source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Protocol

from ekorn.columns.columns_type import has_columns
from ekorn.functions.source_contract import Batch
from ekorn.graph.addresses import ChannelId
from ekorn.graph.channels import senders_of
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import Ack, EpochOrder
from ekorn.operators.mark import MarkOrder
from ekorn.operators.sources.source_head import Budget, SourceHead, SourceProgress
from ekorn.operators.time.held_watermark import HeldWatermark
from ekorn.operators.time.watermarks import SourceEvent, SourceTime
from ekorn.subtask.intake import Intake
from ekorn.subtask.outbox import Emitted, Outbox
from ekorn.subtask.periodic_watermarks import PeriodicWatermarks
from ekorn.subtask.time_flow import TimeFlow
from ekorn.subtask.wire.frames import END, EPOCH, IDLE, RECORDS, WATERMARK, Frame, ReceivedBlob, in_order
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

_log = logging.getLogger(__name__)


class EpochInput(Protocol):
    """The input of a subtask."""

    ended: bool  # nothing will ever follow
    is_drained: bool  # the input was ended by a request to stop, with more to read

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
        periodic: PeriodicWatermarks,
        first_input: int | None,
    ) -> None:
        graph, vertex = environment.graph, environment.vertex
        exchanges = graph.inputs_of(vertex.id)
        self.ended = self.is_drained = False
        self.channel_ids = tuple(
            ChannelId(exchange.id, sender)
            for exchange in exchanges
            for sender in senders_of(exchange, graph.vertices[exchange.source], vertex, environment.index)
        )
        self._channels = InputChannels(self.channel_ids)
        self._input_of = {exchange.id: exchange.input_index for exchange in exchanges}
        self._environment = environment
        self._sender_of = {exchange.id: graph.vertices[exchange.source].name for exchange in exchanges}
        self._held = HeldWatermark[ChannelId](graph.settings.held_watermark_warning_ms)
        self._read_first = frozenset(exchange.id for exchange in exchanges if exchange.input_index == first_input)
        self._intake = intake
        self._time_flow = time_flow
        self._outbox = outbox
        self._periodic = periodic
        self._restored: list[ReceivedBlob] = []

    @property
    def watermark_ms(self) -> int:
        return self._channels.watermark_ms

    def restore(self, restored: Iterable[ReceivedBlob]) -> None:
        """Process blobs that were in flight when a snapshot was taken before all others."""
        self._restored.extend(restored)

    def take_restored(self) -> list[ReceivedBlob]:
        """Return the blobs that come before all others, once."""
        restored, self._restored = self._restored, []
        return restored

    def read(self, order: EpochOrder, blobs: Iterable[ReceivedBlob], ack: Ack) -> Iterator[Emitted]:
        for blob in (*self.take_restored(), *in_order(blobs, self._read_first)):
            self.take(blob)
            if not self.ended:
                yield from self._outbox.take_full()
        self._periodic.decide_end()
        self.warn_if_held()

    def take(self, blob: ReceivedBlob) -> MarkOrder | None:
        """Push one blob through the chain; return the order of the mark that ends the blob, if one does."""
        channel, input_index = blob.channel, self._input_of[blob.exchange]
        self._intake.byte_count += blob.size_bytes
        for frame in blob.frames():
            if frame[0] == RECORDS:
                self._intake.process(frame[1], frame[2], input_index)
                self._periodic.between_runs()
            elif frame[0] == EPOCH:
                order: MarkOrder = frame[1]
                return order
            else:
                self._take_mark(channel, frame)  # exactly where its sender put it: between two runs
        return None

    def warn_if_held(self) -> None:
        """Log a warning if one channel has held the watermark back for long. Asked once an epoch."""
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
            self.is_drained = self.is_drained or frame[1]
            self.ended = self._channels.end(channel)

    def _advance(self, watermark_ms: int | None) -> None:
        if watermark_ms is not None and not self._intake.buffers_records:
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
        periodic: PeriodicWatermarks,
        ended_before: bool,
    ) -> None:
        settings, clock = environment.graph.settings, environment.clock
        self.ended = self.is_drained = False
        self.watermark_ms = MIN_TIMESTAMP
        self._head = head
        self._epoch_cut = environment.epoch_cut
        self._ended_before = ended_before
        self._source_time = SourceTime(
            settings.time_characteristic,
            clock,
            settings.auto_watermark_interval_ms,
            columns=has_columns(head.operator.output_type),
        )
        self._intake = intake
        self._time_flow = time_flow
        self._outbox = outbox
        self._periodic = periodic

    def read(self, order: EpochOrder, blobs: Iterable[ReceivedBlob], ack: Ack) -> Iterator[Emitted]:
        if self.ended:
            return
        progress = SourceProgress()
        self.is_drained = order.drain and not self._ended_before
        if not order.drain:
            budget = Budget(
                order.max_records,
                order.max_source_ms,
                order.max_source_bytes,
                order.group_watermarks,
                is_cut=lambda: self._epoch_cut.ends(order.number),
            )
            yield from self.poll(budget, progress)
            self._periodic.decide_end()
            if self._periodic.ends_epoch and not progress.finished:
                self.emit_periodic_watermark()
        if order.checkpoint_id is not None or order.drain:
            yield from self.cut(progress)
        if self._periodic.ends_epoch:
            self.advance_ingestion_time()
        ack.backlog = progress.backlog
        if progress.finished or order.drain:
            self.end()
        else:
            ack.group_watermarks = self.group_watermarks()

    def poll(self, budget: Budget, progress: SourceProgress) -> Iterator[Emitted]:
        """Read what is available, up to a budget; note in `progress` what was read."""
        if self._ended_before:
            progress.finished = True
        else:
            yield from self._take_all(self._head.read(budget, progress))

    def emit_periodic_watermark(self) -> None:
        """Emit the source's own watermark."""
        for item in self._head.periodic_events():
            for part in self._source_time.apply(item):
                if isinstance(part, SourceEvent):
                    self._take_event(part)

    def advance_ingestion_time(self) -> None:
        """Emit the watermark of ingestion time, if that is the job's time."""
        for event in self._source_time.end_epoch():
            self._take_event(event)

    def cut(self, progress: SourceProgress) -> Iterator[Emitted]:
        """Stop the source until its state is captured, and take what it had handed over until then."""
        yield from self._take_all(self._head.cut(progress))

    def end(self) -> None:
        """End event time, after the last record."""
        self._time_flow.set_idle(False)  # the last watermark also counts for a source that was idle
        self._time_flow.advance(MAX_TIMESTAMP)
        self.ended = True

    def drain(self) -> None:
        """End event time although there is more to read."""
        self.is_drained = not self._ended_before
        self.end()

    def group_watermarks(self) -> dict[str, int]:
        """Return the watermark of the source's alignment group; empty without a group, or while idle."""
        return self._head.group_watermarks()

    def _take_all(self, items: Iterable[Batch | SourceEvent]) -> Iterator[Emitted]:
        for item in items:
            self._periodic.between_runs()  # the source has counted what it handed over before
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


class _InputChannel:
    __slots__ = ("aligned", "ended", "idle", "watermark_ms")

    def __init__(self) -> None:
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False
        self.aligned = True  # counts for the minimum
        self.ended = False


class InputChannels:
    """All input channels of a subtask."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self._channels = {c: _InputChannel() for c in channels}
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False

    def advance(self, channel_id: ChannelId, watermark_ms: int) -> int | None:
        """Advance the watermark of a channel; return the subtask's new watermark if it advanced too."""
        channel = self._channels[channel_id]
        if channel.idle or watermark_ms <= channel.watermark_ms:
            return None
        channel.watermark_ms = watermark_ms
        if not channel.aligned and watermark_ms >= self.watermark_ms:
            channel.aligned = True
        return self._least()

    def set_idle(self, channel_id: ChannelId, idle: bool) -> int | None:
        """Mark a channel as idle or active; return the subtask's new watermark if it advanced."""
        channel = self._channels[channel_id]
        if channel.idle == idle:
            return None
        channel.idle = idle
        if not idle:
            channel.aligned = channel.watermark_ms >= self.watermark_ms
            self.idle = False
            return None
        channel.aligned = False
        if all(c.idle for c in self._channels.values()):
            self.idle = True
            # Flink: when the last active channel held the minimum, time first jumps to the channel that is furthest.
            if channel.watermark_ms == self.watermark_ms:
                return self._move_to(max(c.watermark_ms for c in self._channels.values()))
            return None
        return self._least()

    def end(self, channel_id: ChannelId) -> bool:
        """Note that a channel has ended; return whether all channels have ended."""
        self._channels[channel_id].ended = True
        return self.all_ended

    @property
    def all_ended(self) -> bool:
        """Whether all channels have ended."""
        return all(c.ended for c in self._channels.values())

    def active(self) -> dict[ChannelId, int]:
        """Return the watermarks of the channels that count for the watermark of the subtask and have not ended."""
        counting = {of: channel for of, channel in self._channels.items() if channel.aligned and not channel.ended}
        return {of: channel.watermark_ms for of, channel in counting.items()}

    def _least(self) -> int | None:
        active = [c.watermark_ms for c in self._channels.values() if c.aligned]
        return self._move_to(min(active)) if active else None

    def _move_to(self, watermark_ms: int) -> int | None:
        if watermark_ms <= self.watermark_ms:
            return None
        self.watermark_ms = watermark_ms
        return watermark_ms
