"""The settings that a slot process receives when it starts, and its registration with the driver."""

from __future__ import annotations

from dataclasses import dataclass, field

from ekorn.config import options
from ekorn.links.encryption import Certificate
from ekorn.links.link import Address


@dataclass(frozen=True)
class SlotConfig:
    """The start-up settings of a slot process. They travel over its standard input, never on a command line."""

    slot: int
    address: Address  # where to listen
    secret: bytes = field(repr=False)
    folder: str  # for local slots: shared by them; on a cluster: the directory where the slot creates its own
    python_path: list[str]
    heartbeat_s: float = options.HEARTBEAT_INTERVAL.default / 1000
    log_file: str | None = None
    driver: Address | None = None  # on a cluster: where to register; the slot ends when this connection does
    generation: int = 0  # on a cluster: the start of slots that this slot belongs to
    # On a cluster the slot ends when it has not heard of the driver for this long.
    driver_timeout_s: float = options.HEARTBEAT_TIMEOUT.default / 1000
    executor_pid: int | None = None  # on a cluster: the slot ends when this process does
    certificate: Certificate | None = None  # on a cluster: with one, the slot's listener speaks TLS


@dataclass(frozen=True)
class DriverContact:
    """The driver's address for a slot on another machine, and the interval of the slot's reports."""

    address: Address
    secret: bytes = field(repr=False)
    heartbeat_s: float
    generation: int = 0  # counts the driver's starts of slots
    timeout_s: float = options.HEARTBEAT_TIMEOUT.default / 1000  # how long the driver may be silent


@dataclass(frozen=True)
class Registration:
    """The registration of a slot on a cluster with its driver."""

    slot: int
    address: Address
    host: str
    pid: int
    generation: int = 0  # a slot of an earlier start is refused, and ends


@dataclass(frozen=True)
class Welcome:
    """The driver's first message to a slot on a cluster. A private key does not pass through Spark's tasks."""

    certificate: Certificate | None  # for the slot's own listener; None: links are plain
