"""Options of the web server: of a driver, and of the standing service."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import choice, comma_list, count, flag, millis, text, within
from ekorn.config.value_text import parse_int


def _web_port(given: str) -> str:
    named = given.strip().lower()
    if named in ("off", "auto") or (named.isascii() and named.isdigit() and 0 < int(named) < 65536):
        return named
    raise ValueError("there are 'off', 'auto' for a free port, and a port from 1 to 65535")


WEB = ConfigOption(
    "ekorn.web",
    _web_port,
    "off",
    sentence="Where the driver serves Flink's REST API and the dashboard: `off`, `auto` for a free port, or a port.",
)
WEB_SOCKET = text(
    "ekorn.web.socket", "A Unix socket at which the driver answers its own user's REST requests; the service sets it."
)
WEB_BIND_ADDRESS = ConfigOption(
    "ekorn.web.bind-address", str, "127.0.0.1", sentence="The address that the web server listens on."
)
WEB_AUTHENTICATION: ConfigOption[Literal["token", "none"]] = choice(
    "ekorn.web.authentication",
    "token",
    ("token", "none"),
    "Whether a request needs the token (`Authorization: Bearer ...`). `none` is accepted on a loopback address only.",
)
WEB_TOKEN_FILE = text(
    "ekorn.web.token-file",
    "The file with the token, readable by its owner only; unless set, a file in the user's runtime folder.",
)
WEB_READ_ONLY = flag("ekorn.web.read-only", False, "Whether every request that changes something is refused.")
WEB_ENCRYPTION: ConfigOption[Literal["auto", "off"]] = choice(
    "ekorn.web.encryption",
    "auto",
    ("auto", "off"),
    "`auto` demands a certificate on an address that other machines reach; `off` leaves TLS to a proxy in front.",
)
WEB_CERTIFICATE_FILE = text(
    "ekorn.web.certificate-file", "A PEM file with certificate and private key: the web server then speaks TLS."
)
WEB_ALLOWED_HOSTS = comma_list(
    "ekorn.web.allowed-hosts",
    "Names by which browsers and clients may address the web server, beside its address and localhost.",
)

# Flink: off, because every sample stops its threads. Here a sample reads the stack of one thread while others go on.
FLAME_GRAPH_ENABLED = flag("rest.flamegraph.enabled", True, "Whether stacks are sampled for flame graphs, on request.")
FLAME_GRAPH_SAMPLES = count("rest.flamegraph.num-samples", 100, "How many samples make a flame graph.", least=1)
FLAME_GRAPH_DELAY = millis("rest.flamegraph.delay-between-samples", 50, "The time between two samples.")
FLAME_GRAPH_DEPTH = ConfigOption(
    "rest.flamegraph.stack-depth",
    parse_int,
    100,
    sentence="How many frames of a stack are kept, from the innermost on; at most 500.",
    check=within(1, 500),
)
FLAME_GRAPH_REFRESH = millis(
    "rest.flamegraph.refresh-interval", 60_000, "How old a flame graph may become before the next request samples anew."
)
