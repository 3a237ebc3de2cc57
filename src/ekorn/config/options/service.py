"""Options of the standing service (`ekorn service start`). Jobs do not read them."""

from __future__ import annotations

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, count, text, within
from ekorn.config.value_text import parse_duration_ms, parse_int, parse_memory_bytes

SERVICE_PORT = ConfigOption(
    "rest.port",
    parse_int,
    8081,
    ("rest.bind-port",),
    "",
    "The port of the service; 0 is a free one.",
    within(0, 65535),
)
SERVICE_ADDRESS = text(
    "rest.address",
    "The name or address by which clients and standbys reach this service; unless set, the one that it listens on.",
)
SERVICE_DIR = text(
    "ekorn.service.dir",
    "The folder of the service: its jobs, their programs and logs, its token; unless set, `~/.local/state/ekorn`.",
)
SERVICE_SLOTS = ConfigOption[int | None](
    "taskmanager.numberOfTaskSlots",
    parse_int,
    None,
    sentence="How many slots the jobs of the service have together; unless set, as many as the machine has cores.",
    check=at_least(1),
)
SERVICE_MEMORY = ConfigOption[int | None](
    "taskmanager.memory.process.size",
    parse_memory_bytes,
    None,
    unit="bytes",
    sentence="How much memory all slots may claim together (`ekorn run -d --slot-memory`); unless set, any.",
)
SERVICE_BUNDLE_BYTES = ConfigOption(
    "ekorn.service.bundle-size",
    parse_memory_bytes,
    256 << 20,
    unit="bytes",
    sentence="The largest program with its modules that the service accepts, packed and unpacked.",
)
SERVICE_JOBS_KEPT = count(
    "jobstore.max-capacity", 100, "How many ended jobs the service remembers, with their logs and last answers."
)
SERVICE_PROGRAMS_KEPT = count(
    "ekorn.service.programs-kept",
    100,
    "How many programs the service keeps that no remembered job names; the ones uploaded last are kept.",
    least=1,
)
HA_TYPE = ConfigOption(
    "high-availability.type",
    lambda text: text.strip().lower(),
    "none",
    ("high-availability",),
    "",
    "`storage` lets several services share `high-availability.storageDir`: one leads, the others stand by; or `none`.",
)
HA_STORAGE_DIR = text(
    "high-availability.storageDir",
    "The directory, which every service of the cluster reaches, for the lease, the jobs and their programs.",
)
HA_CLUSTER_ID = ConfigOption(
    "high-availability.cluster-id",
    lambda text: text.strip().strip("/"),
    "default",
    sentence="The name of the cluster: services with the same name in the same directory stand by for each other.",
)
HA_LEASE = ConfigOption(
    "high-availability.lease",
    parse_duration_ms,
    15_000,
    unit="ms",
    sentence="How long a leader may be silent: within this time a standby takes its place, and a leader that cannot "
    "reach the storage stops leading.",
    check=at_least(500),
)
