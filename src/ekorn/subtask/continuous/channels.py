"""A subtask that reads channels: it aligns the marks of epochs, or lets them overtake."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import replace

from ekorn.errors import DeploymentError
from ekorn.graph.addresses import ChannelId
from ekorn.graph.job_graph import Exchange, JobGraph
from ekorn.graph.specs import Broadcast, Custom, Forward, GlobalCommitterSpec, Rescale
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.state.snapshots import AlignmentStats
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.continuous.continuous_subtask import NEVER, ContinuousSubtask, SlotServices
from ekorn.subtask.epoch_input import ChannelInput
from ekorn.subtask.in_flight import BlobPart, InFlight
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import RECORDS, ReceivedBlob

__all__ = ["Alignment", "ContinuousChannels", "Recording", "cut"]


class ContinuousChannels(ContinuousSubtask):
    """A subtask that reads the blobs of other subtasks. It defers blobs of a channel that is ahead of others.

    If checkpoints are unaligned, the subtask need not wait for the mark of an order. It ends the epoch before it has
    processed what was sent before the mark, records these blobs for its snapshot, and goes on processing them.
    """

    def __init__(self, subtask: Subtask, slot: SlotServices) -> None:
        super().__init__(subtask, slot)
        assert isinstance(subtask.input, ChannelInput)
        graph = subtask.environment.graph
        self._input = subtask.input
        channels = self._input.channel_ids
        in_step = {e.id for e in graph.inputs_of(subtask.environment.vertex.id) if _is_in_step(e, graph)}
        self._alignment = Alignment(channels, [channel for channel in channels if channel.exchange in in_step])
        # Flink: AT_LEAST_ONCE does not align. Records behind the mark of a channel that is ahead are in the snapshot
        # already, and count twice after a failure.
        self._aligns = not graph.settings.releases_at_once
        self._overtakes = graph.settings.unaligned
        self._sequences = dict.fromkeys(channels, 0)
        self._arrived: deque[ReceivedBlob] = deque()
        self._aligning_since: float | None = None
        self._delayed_ms = self._aligned_s = 0.0  # last mark: until its first arrival; from there to its last
        self._deferred_blobs = self._deferred_bytes = 0  # in the current alignment
        self._deferred: deque[ReceivedBlob] = deque()  # blobs of channels that are ahead, in the order of arrival
        # Blobs that are taken before those that arrive: blobs of the restored snapshot, blobs that were deferred until
        # the last mark, and blobs that a mark has overtaken.
        self._released: deque[ReceivedBlob] = deque(self._input.take_restored())
        self._orders: deque[MarkOrder] = deque()
        self._overtaking: MarkOrder | None = None  # the order whose mark is due to overtake at `_overtakes_at`
        self._overtakes_at = NEVER
        self._recording: Recording | None = None
        self._overtaken: frozenset[ChannelId] = frozenset()  # channels on which the last mark had not come in time

    @property
    def has_input(self) -> bool:
        return bool(self._arrived or self._released)

    @property
    def may_take(self) -> bool:
        return self.has_input and not self.is_full

    @property
    def has_urgent(self) -> bool:
        """Whether `handle_urgent` may have something to do."""
        return bool(self._orders) or self._overtaking is not None or self.is_recording

    @property
    def is_recording(self) -> bool:
        """Whether blobs of a snapshot are still in flight."""
        return self._recording is not None

    def give(self, blob: ReceivedBlob) -> None:
        self._arrived.append(blob)

    def give_order(self, order: MarkOrder) -> None:
        """Queue an order whose mark overtakes if it does not come in time. Thread-safe."""
        if order.overtakes_after_ms is not None:
            self._orders.append(order)

    def pause_reading(self) -> None:
        """Do nothing: there is no source."""

    def take(self) -> None:
        if self._recording is not None:
            self._record_arrivals(self._recording)  # before one of them is processed
        if not self._released:
            self._check_next(self._arrived[0])
        super().take()

    def _check_next(self, blob: ReceivedBlob) -> None:
        """Check that no blob of a channel is missing: Spark's shuffle carries each once, in order."""
        expected = self._sequences.get(blob.channel)
        if expected is None:
            raise DeploymentError(f"blob {blob.sequence} arrived on {blob.channel}, which the subtask does not have")
        if blob.sequence != expected:
            raise DeploymentError(f"blob {blob.sequence} of {blob.channel} arrived instead of blob {expected}")
        self._sequences[blob.channel] = expected + 1

    def _take(self) -> None:
        if self._released:
            blob = self._released.popleft()
        else:
            blob = self._arrived.popleft()
            self._slot.taken(blob)
        channel = blob.channel
        if self._aligns and self._alignment.is_ahead(channel):
            self._deferred_blobs += 1
            self._deferred_bytes += blob.size_bytes
            self._deferred.append(self._slot.defer(blob))
            return
        with self.subtask.blame.operator():
            order = self._take_part(blob)
        if order is not None:
            self._take_mark(channel, order)

    def _take_part(self, blob: ReceivedBlob) -> MarkOrder | None:
        """Process a blob, or as much of it as a step takes. The rest is taken in the next step."""
        first, rest = cut(blob, self.step_size.records)
        if rest is not None:
            self._released.appendleft(rest)
        clock, before = self.subtask.environment.clock, self.subtask.intake.record_count
        started = clock.monotonic()
        order = self._input.take(first)
        self.step_size.measure(self.subtask.intake.record_count - before, clock.monotonic() - started)
        return order

    # ------------------------------------------------------------------------------------------------------ marks

    def _take_mark(self, channel: ChannelId, order: MarkOrder) -> None:
        if order.number > self._alignment.ended:
            self._begin_alignment(order)
        if self._alignment.arrive(channel, order.number):
            self._pass_mark(order)

    def _begin_alignment(self, order: MarkOrder) -> None:
        if self._aligning_since is None:
            self._aligning_since = self.subtask.environment.clock.monotonic()
            self._delayed_ms = self._delay_ms(order)

    def _pass_mark(self, order: MarkOrder) -> None:
        """End an epoch, aligned or not. Deferred blobs are processed next."""
        self._begin_alignment(order)
        assert self._aligning_since is not None
        now = self.subtask.environment.clock.monotonic()
        self._aligned_s, self._aligning_since = now - self._aligning_since, None
        self._overtaken = self._alignment.end(order.number)
        self._input.warn_if_held()
        self._end_epoch(order)
        self._deferred_blobs = self._deferred_bytes = 0
        self._released.extendleft(reversed(self._deferred))  # each channel stays in its own order
        self._deferred.clear()
        self._slot.released()

    def handle_urgent(self) -> float:
        if not self._overtakes:
            return NEVER
        now = self.subtask.environment.clock.monotonic()
        while self._orders:
            self._overtaking = self._orders.popleft()
            assert self._overtaking.overtakes_after_ms is not None, "give_order takes no others"
            self._overtakes_at = now + self._overtaking.overtakes_after_ms / 1000
        order = self._overtaking
        if order is not None and order.number <= self._alignment.ended:
            order, self._overtaking = None, None  # the mark has come on all channels in time
        if order is not None and now >= self._overtakes_at and self._may_overtake(order):
            self._overtaking = None
            self._pass_mark(order)
        if self._recording is not None:
            self._record_arrivals(self._recording)
        if self._overtaking is None or now >= self._overtakes_at:
            return NEVER  # an overdue mark waits for a blob of a channel in step, not for a time
        return self._overtakes_at - now

    def _may_overtake(self, order: MarkOrder) -> bool:
        # Without a checkpoint nothing depends on where an epoch ends, and the mark overtakes on every channel.
        return order.checkpoint_id is None or self._alignment.may_overtake(order.number)

    def _keep(self, captured: CapturedSubtask) -> None:
        if not self._overtaken:
            self._slot.write(captured)
            return
        now = self.subtask.environment.clock.monotonic()
        self._recording = Recording(captured, self._alignment.ended, self._overtaken, now)
        for blob in self._released:
            self._recording.add(blob)

    def _record_arrivals(self, recording: Recording) -> None:
        """Record what has arrived, ahead of processing it, so that the marks behind it are seen."""
        while self._arrived:
            self._check_next(self._arrived[0])
            blob = self._arrived.popleft()
            self._slot.taken(blob)
            kept = self._slot.record(blob)
            self._released.append(kept)
            recording.add(kept)
        if recording.is_complete:
            self._recording = None
            self._slot.write(recording.captured(self.subtask.environment.clock.monotonic()))
            self._release_recorded()

    def _release_recorded(self) -> None:
        """Tell the slot that recorded blobs are processed next, unless deferred ones wait for a mark."""
        if not self._deferred:
            self._slot.released()

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        if self._recording is not None and self._recording.checkpoint_id == checkpoint_id:
            self._recording = None
            self._release_recorded()

    def _emit_input_watermark(self) -> None:
        """Do nothing: watermarks arrive in blobs."""

    def _fill(self, ack: MarkAck) -> None:
        ack.aligned_ms, ack.deferred_blobs = self._aligned_s * 1000, self._deferred_blobs
        if self._overtakes:
            ack.kept_bytes = sum(blob.size_bytes for blob in (*self._deferred, *self._released))

    def _alignment_stats(self, order: MarkOrder) -> AlignmentStats:
        return AlignmentStats(self._delayed_ms, self._aligned_s * 1000, self._deferred_bytes)


def _is_in_step(exchange: Exchange, graph: JobGraph) -> bool:
    """Return whether no mark of a checkpoint overtakes on an exchange.

    Users rely on the order of records between two subtasks of a forward or rescale exchange. A broadcast record would
    be in the state of some subtasks and in flight to others. After rescaling only the partitioner could tell which
    subtask gets a record of a custom exchange. A global commit would contain what some writers prepared for an earlier
    checkpoint.
    """
    # Flink: the same exchanges, those of custom partitioners since 2.3. There the other inputs of such an operator are
    # aligned too.
    head = graph.vertices[exchange.target].operators[0].spec
    in_step = isinstance(exchange.partitioning, (Forward, Rescale, Broadcast, Custom))
    return in_step or isinstance(head, GlobalCommitterSpec)


_NONE = -1  # before the first epoch


class Alignment:
    """The newest mark that a subtask has taken on each of its channels, and the newest epoch that it has ended.

    A channel is ahead if its newest mark is that of an epoch which has not ended: its blobs belong to a later epoch,
    and are deferred until the mark has come on every channel. A channel that has ended carries marks too, so no channel
    is left out. A subtask may also end an epoch before its mark has come on all channels: the mark has overtaken the
    blobs of the other channels, and is ignored when it comes there.

    Args:
        channels: All channels.
        in_step: The channels on which no mark overtakes.

    >>> left, right = ChannelId(0, 0), ChannelId(0, 1)
    >>> alignment = Alignment([left, right])
    >>> alignment.arrive(left, 1), alignment.is_ahead(left), alignment.is_ahead(right)
    (False, True, False)
    >>> alignment.arrive(right, 1), alignment.end(1), alignment.is_ahead(left)
    (True, frozenset(), False)
    >>> alignment.arrive(left, 2), alignment.end(2) == {right}, alignment.arrive(right, 2)
    (False, True, False)
    """

    def __init__(self, channels: Collection[ChannelId], in_step: Collection[ChannelId] = ()) -> None:
        self._marks = dict.fromkeys(channels, _NONE)
        self._in_step = frozenset(in_step)
        self._missing = len(self._marks)  # channels that are not ahead
        self.ended = _NONE  # the newest epoch that has ended

    def is_ahead(self, channel: ChannelId) -> bool:
        """Return whether the mark of an epoch that has not ended has come on a channel."""
        return self._marks[channel] > self.ended

    def arrive(self, channel: ChannelId, epoch: int) -> bool:
        """Note the mark of an epoch on a channel; return whether all channels have it now."""
        counts = self._marks[channel] <= self.ended < epoch
        self._marks[channel] = epoch
        self._missing -= counts
        return counts and not self._missing

    def may_overtake(self, epoch: int) -> bool:
        """Return whether the mark of an epoch has come on all channels on which no mark overtakes."""
        return all(self._marks[channel] >= epoch for channel in self._in_step)

    def end(self, epoch: int) -> frozenset[ChannelId]:
        """Note that an epoch has ended; return the channels on which its mark has overtaken blobs in flight."""
        self.ended = epoch
        self._missing = sum(mark <= epoch for mark in self._marks.values())
        return frozenset(channel for channel, mark in self._marks.items() if mark < epoch)


class Recording:
    """The snapshot of a subtask while the blobs that its mark has overtaken still arrive.

    Args:
        captured: The state at the moment of the snapshot.
        epoch: The epoch of the mark.
        overtaken: The channels on which the mark has not come.
        started: When the recording began, by the monotonic clock.
    """

    def __init__(self, captured: CapturedSubtask, epoch: int, overtaken: Collection[ChannelId], started: float) -> None:
        self.checkpoint_id = captured.checkpoint_id
        self._captured = captured
        self._epoch = epoch
        self._missing = set(overtaken)
        self._blobs: list[ReceivedBlob] = []
        self._started = started

    def add(self, blob: ReceivedBlob) -> None:
        """Add a blob, in the order of its channel. Blobs behind the mark are left out."""
        if blob.channel in self._missing:
            # Frames that are decoded already are pickled now: the program may change their records when it has them.
            self._blobs.append(blob.pickle() if isinstance(blob, BlobPart) else blob)
            if blob.mark >= self._epoch:
                self._missing.discard(blob.channel)

    @property
    def is_complete(self) -> bool:
        """Whether the mark has come on every channel."""
        return not self._missing

    def captured(self, now: float) -> CapturedSubtask:
        """Return the whole snapshot, once it is complete."""
        environment = self._captured.environment
        in_flight = InFlight(environment.graph, environment.vertex.id, tuple(self._blobs))
        alignment = replace(self._captured.alignment, recorded_ms=(now - self._started) * 1000, unaligned=True)
        return replace(self._captured, in_flight=in_flight if self._blobs else None, alignment=alignment)


def cut(blob: ReceivedBlob, most_records: int) -> tuple[BlobPart, BlobPart | None]:
    """Cut a blob behind at most `most_records`; return both parts, or the whole and None. The last part has the mark.

    A run of records that fits into a step of its own is not cut.
    """
    frames, room = blob.frames(), most_records
    for number, frame in enumerate(frames):
        count = len(frame[1]) if frame[0] == RECORDS else 0
        if count <= room:
            room -= count
            continue
        if room < most_records:
            first, rest = frames[:number], frames[number:]
        else:
            _, values, times = frame
            ends = slice(most_records), slice(most_records, None)
            head, tail = ((RECORDS, values[end], None if times is None else times[end]) for end in ends)
            first, rest = [*frames[:number], head], [tail, *frames[number + 1 :]]
        size_bytes = blob.size_bytes // 2
        return (
            BlobPart(blob.channel, first, size_bytes, blob.sequence),
            BlobPart(blob.channel, rest, blob.size_bytes - size_bytes, blob.sequence, blob.mark),
        )
    return BlobPart(blob.channel, frames, blob.size_bytes, blob.sequence, blob.mark), None
