"""Options of queryable state."""

from __future__ import annotations

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import flag, millis, text
from ekorn.config.value_text import parse_ports

QUERYABLE_STATE = flag(
    "queryable-state.enable", False, "Whether clients outside the job can read its queryable states."
)
QUERYABLE_STATE_PORTS = ConfigOption[tuple[int, ...]](
    "queryable-state.proxy.ports",
    parse_ports,
    (9069,),
    ("query.server.ports",),
    sentence="Where the driver answers queries: a port, a range as 50100-50200, or a list; the first free one is used.",
)
QUERYABLE_STATE_HOST = ConfigOption(
    "ekorn.queryable-state.host",
    str,
    "127.0.0.1",
    sentence="The address at which the driver answers queries; on an address beyond this machine links are encrypted.",
)
QUERYABLE_STATE_TOKEN_FILE = text(
    "ekorn.queryable-state.token-file",
    "A file with the token that clients need; unless set, a new token is in the runtime folder of the user.",
)
QUERYABLE_STATE_TIMEOUT = millis(
    "ekorn.queryable-state.timeout",
    10_000,
    "How long a query waits for user code to end a run of records.",
)
