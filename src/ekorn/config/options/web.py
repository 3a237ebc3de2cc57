"""Options of the web server of a driver, and of the standing service."""

from __future__ import annotations

from typing import Literal

from ekorn.config.option import ConfigOption
from ekorn.config.options.kinds import choice, comma_list, count, flag, millis, text, within
from ekorn.config.value_text import parse_int


def _web_port(given: str) -> str:
    named = given.strip().lower()
    if named in ("off", "auto") or (named.isascii() and named.isdigit() and 0 < int(named) < 65536):
        return named
    raise ValueError("must be 'off', 'auto' (a free port), or a port from 1 to 65535")


WEB = ConfigOption(
    "ekorn.web",
    _web_port,
    "off",
    sentence="The port on which the driver serves Flink's REST API and the dashboard: a port number, `auto` (a free "
    "port), or `off`.",
)
WEB_SOCKET = text(
    "ekorn.web.socket",
    "The path of a Unix socket on which the driver answers REST requests of its own user. The service sets it.",
)
WEB_BIND_ADDRESS = ConfigOption(
    "ekorn.web.bind-address", str, "127.0.0.1", sentence="The address on which the web server listens."
)
WEB_AUTHENTICATION: ConfigOption[Literal["token", "none"]] = choice(
    "ekorn.web.authentication",
    "token",
    ("token", "none"),
    "Whether requests need the token (`Authorization: Bearer ...`). `none` is accepted only on a loopback address.",
)
WEB_TOKEN_FILE = text(
    "ekorn.web.token-file",
    "The file with the token, which only its owner may read. By default, it is a file in the user's runtime folder.",
)
WEB_READ_ONLY = flag("ekorn.web.read-only", False, "Whether requests that change something are refused.")
WEB_ENCRYPTION: ConfigOption[Literal["auto", "off"]] = choice(
    "ekorn.web.encryption",
    "auto",
    ("auto", "off"),
    "Whether an address that other machines can reach needs a certificate (`auto`), or TLS is left to a proxy (`off`).",
)
WEB_CERTIFICATE_FILE = text(
    "ekorn.web.certificate-file",
    "A PEM file with the certificate and private key that the web server uses for TLS.",
)
WEB_ALLOWED_HOSTS = comma_list(
    "ekorn.web.allowed-hosts",
    "Host names, besides its address and localhost, by which clients may address the web server.",
)

# Flink: off, because every sample stops its threads. Here a sample reads the stack of one thread while others go on.
FLAME_GRAPH_ENABLED = flag(
    "rest.flamegraph.enabled", True, "Whether the web server samples stacks for flame graphs on request."
)
FLAME_GRAPH_SAMPLES = count("rest.flamegraph.num-samples", 100, "The number of samples in a flame graph.", least=1)
FLAME_GRAPH_DELAY = millis("rest.flamegraph.delay-between-samples", 50, "The time between two samples.")
FLAME_GRAPH_DEPTH = ConfigOption(
    "rest.flamegraph.stack-depth",
    parse_int,
    100,
    sentence="The maximum number of stack frames in a sample, counted from the innermost; at most 500.",
    check=within(1, 500),
)
FLAME_GRAPH_REFRESH = millis(
    "rest.flamegraph.refresh-interval", 60_000, "The age after which the next request samples a flame graph again."
)
