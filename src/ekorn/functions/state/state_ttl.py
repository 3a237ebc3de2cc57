"""`StateTtlConfig`: the time to live of the values of a state."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TypeVar

from ekorn.types.time import Duration, Time, millis_of

_THIRTY_DAYS = Duration.of_days(30)


class StateTtlConfig:
    """Says when the values of a state expire, whether a read returns expired values, and how they are removed.

    Example:
        >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
        >>> config.get_ttl().to_milliseconds()
        3600000
    """

    class UpdateType(enum.Enum):
        """The accesses that renew the time to live of a value."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(enum.Enum):
        """Says whether a read may return an expired value."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(enum.Enum):
        """The clock that decides whether a value has expired."""

        ProcessingTime = 0

    @dataclass(frozen=True)
    class CleanupStrategies:
        """Says how expired values are removed, apart from reads that find them."""

        class Strategies(enum.Enum):
            """The ways in which expired values are removed."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        @dataclass(frozen=True)
        class IncrementalCleanupStrategy:
            """On the heap: each access checks some more entries."""

            cleanup_size: int
            for_every_record: bool

            def get_cleanup_size(self) -> int:
                """Return the number of entries that each access checks."""
                return self.cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Return whether every record checks entries, even without an access to the state."""
                return self.for_every_record

        @dataclass(frozen=True)
        class RocksdbCompactFilterCleanupStrategy:
            """In RocksDB: expired entries are removed in the background."""

            query_time_after_num_entries: int
            periodic_compaction_time: Duration = _THIRTY_DAYS

            def get_query_time_after_num_entries(self) -> int:
                """Return the number of entries that are checked before the clock is read again."""
                return self.query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Duration:
                """Return the longest time that entries stay unchecked."""
                return self.periodic_compaction_time

        full_snapshot: bool = False
        incremental: IncrementalCleanupStrategy | None = None
        rocksdb_compaction: RocksdbCompactFilterCleanupStrategy | None = None
        in_background: bool = True

        def is_cleanup_in_background(self) -> bool:
            """Return whether the backend's default cleanup is on."""
            return self.in_background

        def in_full_snapshot(self) -> bool:
            """Return whether full snapshots omit expired values."""
            return self.full_snapshot

        def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
            """Return the cleanup on the heap: the configured one, or the default if background cleanup is on."""
            default = StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy(5, False)
            return self.incremental or (default if self.in_background else None)

        def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
            """Return the cleanup in RocksDB: the configured one, or the default if background cleanup is on."""
            default = StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy(1000)
            return self.rocksdb_compaction or (default if self.in_background else None)

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Time | Duration,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self._ttl = Time.milliseconds(_positive_ms(ttl))
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Time | Duration) -> StateTtlConfig.Builder:
        """Begin a configuration with a time to live above 0."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        """Return the accesses that renew the time to live of a value."""
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        """Return whether a read may return an expired value."""
        return self._state_visibility

    def get_ttl(self) -> Time:
        """Return the time to live."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        """Return the clock that decides whether a value has expired."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return whether values expire."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        """Return how expired values are removed."""
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig(ttl={self._ttl}, update={self._update_type.name}, "
            f"visibility={self._state_visibility.name})"
        )

    @dataclass
    class Builder:
        """Collects the settings of a `StateTtlConfig`."""

        ttl: Time | Duration
        _update_type: StateTtlConfig.UpdateType = field(init=False)
        _visibility: StateTtlConfig.StateVisibility = field(init=False)
        _time: StateTtlConfig.TtlTimeCharacteristic = field(init=False)

        def __post_init__(self) -> None:
            _positive_ms(self.ttl)
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._time = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._full_snapshot = False
            self._incremental: StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None = None
            self._rocksdb: StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None = None
            self._in_background = True

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """Choose the accesses that renew the time to live of a value."""
            self._update_type = _one_of(StateTtlConfig.UpdateType, update_type, "set_update_type")
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Let writes renew the time to live. This is the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Let reads and writes renew the time to live."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> StateTtlConfig.Builder:
            """Choose whether a read may return an expired value."""
            self._visibility = _one_of(StateTtlConfig.StateVisibility, state_visibility, "set_state_visibility")
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Let a read return an expired value that has not been removed yet."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Never return an expired value. This is the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Choose the clock; there is only processing time."""
            kinds = StateTtlConfig.TtlTimeCharacteristic
            self._time = _one_of(kinds, ttl_time_characteristic, "set_ttl_time_characteristic")
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Let values expire by the wall clock. This is the default."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Omit expired values from full snapshots."""
            self._full_snapshot = True
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Check `cleanup_size` more entries with each access, or with every record. Applies to the heap only."""
            size = _count("cleanup_incrementally", "size", cleanup_size)
            self._incremental = StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy(
                size, bool(run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Duration | Time = _THIRTY_DAYS
        ) -> StateTtlConfig.Builder:
            """Remove expired entries in the background. Applies to RocksDB only.

            Args:
                query_time_after_num_entries: The number of entries after which the clock is read again.
                periodic_compaction_time: The longest time that entries stay unchecked; 0 sets no limit, and entries
                    are then checked only once some of them can have expired.
            """
            call = "cleanup_in_rocksdb_compact_filter"
            period_ms = millis_of(periodic_compaction_time)
            if period_ms < 0:
                raise ValueError(f"{call} needs a periodic compaction time of at least 0 ms, got {period_ms} ms")
            self._rocksdb = StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy(
                _count(call, "number of entries", query_time_after_num_entries, 0), Duration.of_millis(period_ms)
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Turn the backend's default cleanup off; cleanup that this builder was told to use stays on."""
            self._in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration) -> StateTtlConfig.Builder:
            """Set the time to live."""
            _positive_ms(ttl)
            self.ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Return the configuration."""
            return StateTtlConfig(
                self._update_type,
                self._visibility,
                self._time,
                self.ttl,
                StateTtlConfig.CleanupStrategies(
                    self._full_snapshot, self._incremental, self._rocksdb, self._in_background
                ),
            )


E = TypeVar("E", bound=enum.Enum)


def _one_of(kinds: type[E], given: E, call: str) -> E:
    if not isinstance(given, kinds):
        names = ", ".join(f"StateTtlConfig.{kinds.__name__}.{kind.name}" for kind in kinds)
        raise TypeError(f"{call}() takes one of {names}, got {given!r}")
    return given


def _count(call: str, what: str, given: int, least: int = 1) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{call} needs a {what} that is a whole number, got {given!r}")
    if given < least:
        raise ValueError(f"{call} needs a {what} of at least {least}, got {given}")
    return given


def _positive_ms(ttl: Time | Duration) -> int:
    millis = millis_of(ttl)
    if millis <= 0:
        raise ValueError(f"the time to live must be above 0 ms, got {millis} ms")
    return millis
