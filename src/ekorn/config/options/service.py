"""Options of the standing service (`ekorn service start`). Jobs do not read them."""

from __future__ import annotations

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import at_least, count, millis, text, within
from ekorn.config.value_text import parse_duration_ms, parse_int, parse_memory_bytes

SERVICE_PORT = ConfigOption(
    "rest.port",
    parse_int,
    8081,
    ("rest.bind-port",),
    "",
    "The port of the service; 0 selects a free port.",
    within(0, 65535),
)
SERVICE_ADDRESS = text(
    "rest.address",
    "The name or address at which clients and standby services reach this service. By default, it is "
    "the address on which the service listens.",
)
SERVICE_DIR = text(
    "ekorn.service.dir",
    "The folder in which the service keeps its jobs, their programs and logs, and its token. By "
    "default, it is `~/.local/state/ekorn`.",
)
SERVICE_BUNDLE_BYTES = ConfigOption(
    "ekorn.service.bundle-size",
    parse_memory_bytes,
    256 << 20,
    unit="bytes",
    sentence="The maximum size of a program and its modules that the service accepts, both packed and unpacked.",
)
SERVICE_JOBS_KEPT = count(
    "jobstore.max-capacity",
    100,
    "The number of ended jobs that the service keeps, with their logs and last REST responses.",
)
SERVICE_PROGRAMS_KEPT = count(
    "ekorn.service.programs-kept",
    100,
    "The number of programs that the service keeps although none of its jobs uses them. The latest uploads are kept.",
    least=1,
)
SERVICE_UPGRADE_RESTARTS = count(
    "ekorn.service.upgrade.max-restarts",
    3,
    "The number of restarts after which an upgraded job returns to its previous program. Restarts count until the "
    "first checkpoint of the new program is complete.",
    least=1,
)
SERVICE_UPGRADE_TIME = millis(
    "ekorn.service.upgrade.timeout",
    600_000,
    "The time in which an upgraded job must complete its first checkpoint. After that time, it returns to its previous "
    "program.",
)
HA_TYPE = ConfigOption(
    "high-availability.type",
    lambda text: text.strip().lower(),
    "none",
    ("high-availability",),
    "",
    "Whether services stand by for each other: `storage` elects one leader among the services that "
    "share `high-availability.storageDir`; `none` runs a service alone.",
)
HA_STORAGE_DIR = text(
    "high-availability.storageDir",
    "The directory that all services of a cluster share. It holds the leader's lease, the jobs and their programs.",
)
HA_CLUSTER_ID = ConfigOption(
    "high-availability.cluster-id",
    lambda text: text.strip().strip("/"),
    "default",
    sentence="The name of the cluster. Services with the same name in the same directory stand by for each other.",
)
HA_LEASE = ConfigOption(
    "high-availability.lease",
    parse_duration_ms,
    15_000,
    unit="ms",
    sentence="How long a leader may be silent. Within this time a standby takes over, and a leader that cannot "
    "reach the storage stops leading.",
    check=at_least(500),
)
