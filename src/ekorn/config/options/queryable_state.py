"""Options of queryable state."""

from __future__ import annotations

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import flag, millis, text
from ekorn.config.value_text import parse_ports

QUERYABLE_STATE = flag("queryable-state.enable", False, "Whether clients outside the job can read its queryable state.")
QUERYABLE_STATE_PORTS = ConfigOption[tuple[int, ...]](
    "queryable-state.proxy.ports",
    parse_ports,
    (9069,),
    ("query.server.ports",),
    sentence="The port on which the driver answers queries: a port, a range such as 50100-50200, or a "
    "comma-separated list of both. The first free port is used.",
)
QUERYABLE_STATE_HOST = ConfigOption(
    "ekorn.queryable-state.host",
    str,
    "127.0.0.1",
    sentence="The IP address on which the driver answers queries. Connections are encrypted unless it is a "
    "loopback address.",
)
QUERYABLE_STATE_TOKEN_FILE = text(
    "ekorn.queryable-state.token-file",
    "The file with the token that clients must present. By default, the driver writes a new token to the "
    "user's runtime folder.",
)
QUERYABLE_STATE_TIMEOUT = millis(
    "ekorn.queryable-state.timeout",
    10_000,
    "How long a query waits for user code to finish a run of records.",
)
