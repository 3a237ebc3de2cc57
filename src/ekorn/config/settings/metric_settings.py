"""The settings of metrics: the latencies that a job measures on request, and the reporters.

The keys of a reporter hold its name, as in Flink: `metrics.reporter.<name>.<key>`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.fields import filled_by, read_settings
from ekorn.config.value_text import parse_bool, parse_duration_ms, parse_ports, value_text
from ekorn.errors import ConfigurationError

__all__ = [
    "PREFIX",
    "LatencySettings",
    "ReporterKind",
    "ReporterSettings",
    "StateLatencySettings",
    "reporter_settings",
    "state_latency_settings",
]


@dataclass(frozen=True)
class LatencySettings:
    """How the latency from a source to an operator is measured.

    Attributes:
        interval_ms: The time between two latency marks of a source; 0 emits none.
        granularity: Whether latencies are kept apart by source, by subtask of a source, or not at all.
        history_size: How many of the latest measurements percentiles are computed from.
    """

    interval_ms: int = filled_by(options.LATENCY_TRACKING_INTERVAL)
    granularity: Literal["single", "operator", "subtask"] = filled_by(options.LATENCY_GRANULARITY)
    history_size: int = filled_by(options.LATENCY_HISTORY)


@dataclass(frozen=True)
class StateLatencySettings:
    """How accesses to keyed state are timed.

    Attributes:
        every: One access in this many is timed.
        history_size: How many of the latest measurements percentiles are computed from.
        name_as_variable: Whether the name of the state is a variable of the metric, instead of a part of its name.
    """

    every: int = filled_by(options.STATE_LATENCY_EVERY)
    history_size: int = filled_by(options.STATE_LATENCY_HISTORY)
    name_as_variable: bool = filled_by(options.STATE_LATENCY_NAME_AS_VARIABLE)


def state_latency_settings(configuration: Configuration) -> StateLatencySettings | None:
    """Read how accesses to keyed state are timed; None if they are not."""
    if not options.STATE_LATENCY_ENABLED.read(configuration):
        return None
    return read_settings(StateLatencySettings, configuration)


PREFIX = "metrics.reporter."

ReporterKind = Literal["prometheus", "push-gateway", "open-telemetry", "log", "json-lines"]

_FACTORY, _INTERVAL = "factory.class", "interval"
_DEFAULT_INTERVAL_MS = 10_000


@dataclass(frozen=True)
class ReporterSettings:
    """The settings of one metric reporter.

    Attributes:
        name: The name of the reporter in the configuration.
        kind: The kind of the reporter, which its factory class names.
        interval_ms: The time between two reports.
        given: The values of the reporter's other keys.
    """

    name: str
    kind: ReporterKind
    interval_ms: int = _DEFAULT_INTERVAL_MS
    given: Mapping[str, Any] = field(default_factory=dict)


def _grouping(given: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in given.split(";") if part.strip()]
    if any(not equals or not key.strip() for key, equals, _ in pairs):
        raise ValueError("pairs such as host=a;zone=b")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _only_http(given: str) -> str:
    if given.strip().lower() not in ("http", "http/json"):
        raise ValueError("metrics are sent as JSON over HTTP; 'http' is the only protocol")
    return "http"


@dataclass(frozen=True)
class _Kind:
    """A kind of reporter: its keys, and those of them that must be set."""

    kind: ReporterKind
    keys: Mapping[str, Callable[[str], Any]]
    needs: tuple[str, ...] = ()


_KINDS: Mapping[str, _Kind] = {
    "org.apache.flink.metrics.prometheus.PrometheusReporterFactory": _Kind("prometheus", {"port": parse_ports}),
    "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporterFactory": _Kind(
        "push-gateway",
        {
            "hostUrl": str,
            "jobName": str,
            "randomJobNameSuffix": parse_bool,
            "deleteOnShutdown": parse_bool,
            "groupingKey": _grouping,
        },
        ("hostUrl",),
    ),
    "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory": _Kind(
        "open-telemetry",
        {"exporter.endpoint": str, "exporter.protocol": _only_http, "service.name": str, "service.version": str},
        ("exporter.endpoint",),
    ),
    "org.apache.flink.metrics.slf4j.Slf4jReporterFactory": _Kind("log", {}),
    "ekorn.JsonLinesReporterFactory": _Kind("json-lines", {"file": str}, ("file",)),
}


_ADDRESSES = {"hostUrl", "exporter.endpoint"}


def _check_address(address: str, key: str) -> None:
    """Refuse what is no address of a server. The message has no part of the address, which may hold a password."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        raise ConfigurationError(
            f"{key} holds a user or a password, which the REST API shows with the configuration: leave them out, and "
            "let a proxy on this machine add them"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{key} is not the address of a server, such as http://localhost:9091")


def reporter_settings(configuration: Configuration) -> tuple[ReporterSettings, ...]:
    """Read the settings of all reporters.

    Raises:
        ConfigurationError: A reporter has no factory class or an unknown one, or a key that nothing reads.
    """
    by_name: dict[str, dict[str, str]] = {}
    for key in sorted(configuration.to_dict()):
        if key.startswith(PREFIX):
            name, _, rest = key.removeprefix(PREFIX).partition(".")
            if not name or not rest:
                raise ConfigurationError(f"the option {key!r} is refused: write {PREFIX}<name>.<key>")
            by_name.setdefault(name, {})[rest] = value_text(configuration.get_string(key))
    chosen = options.METRICS_REPORTERS.read(configuration)
    for name in chosen:
        if name not in by_name:
            raise ConfigurationError(
                f"{options.METRICS_REPORTERS.key} names {name!r}: set {PREFIX}{name}.{_FACTORY}, or leave it out"
            )
    return tuple(_read(name, given) for name, given in by_name.items() if not chosen or name in chosen)


def _read(name: str, given: Mapping[str, str]) -> ReporterSettings:
    factory = given.get(_FACTORY, "").strip()
    kind = _KINDS.get(factory)
    if kind is None:
        found = f"is {factory!r}" if factory else "is not set"
        raise ConfigurationError(f"{PREFIX}{name}.{_FACTORY} {found}; there are {', '.join(_KINDS)}")
    interval_ms = _DEFAULT_INTERVAL_MS
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key == _FACTORY:
            continue
        parse = parse_duration_ms if key == _INTERVAL else kind.keys.get(key)
        if parse is None:
            near = difflib.get_close_matches(key, [*kind.keys, _INTERVAL], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join([*kind.keys, _INTERVAL])}"
            raise ConfigurationError(f"the option {PREFIX}{name}.{key} is refused, because nothing reads it: {hint}")
        try:
            value = parse(text)
        except ValueError as error:
            raise ConfigurationError(f"cannot read the value {text!r} of {PREFIX}{name}.{key}: {error}") from None
        if key == _INTERVAL:
            interval_ms = value
        else:
            values[key] = value
    for key in kind.needs:
        if not values.get(key):
            raise ConfigurationError(f"the metric reporter {name!r} needs {PREFIX}{name}.{key}")
    for key in _ADDRESSES & values.keys():
        _check_address(values[key], f"{PREFIX}{name}.{key}")
    if interval_ms < 100:
        raise ConfigurationError(f"{PREFIX}{name}.{_INTERVAL} is {interval_ms} ms; it must be at least 100 ms")
    return ReporterSettings(name, kind.kind, interval_ms, values)
