"""Runs the reporters of a job on a thread beside it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Self

from ekorn.config.settings.job_settings import JobSettings
from ekorn.config.settings.metric_settings import ReporterSettings
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.functions.results.job_status import JobStatus
from ekorn.metrics.reporter import MetricReporter
from ekorn.reporters.local_reporters import JsonLinesReporter, LogReporter
from ekorn.reporters.open_telemetry import OpenTelemetryReporter
from ekorn.reporters.prometheus import DEFAULT_PORTS, PrometheusServer
from ekorn.reporters.push_gateway import PushGatewayReporter
from ekorn.reporters.samples import samples_of
from ekorn.rest.known_jobs import KnownJob

__all__ = ["JobReporters"]

_log = logging.getLogger(__name__)
_JOIN_S = 15.0


class JobReporters:
    """The reporters of one job.

    Ports are opened before the job starts, so that a port in use fails the start. A failed report does not affect the
    job. The first failure in a row is logged.
    """

    def __init__(self, settings: JobSettings) -> None:
        """Open the reporters.

        Raises:
            ConfigurationError: A port is in use.
        """
        self._job: KnownJob | None = None
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._reporters: list[tuple[ReporterSettings, MetricReporter]] = []
        try:
            for each in settings.reporters:
                self._reporters.append((each, self._opened(each, settings)))
        except BaseException:
            self.close()
            raise

    def start(self, handle: JobHandle) -> None:
        """Report the metrics of a submitted job until it ends."""
        if not self._reporters or handle.view.statistics is None:
            self.close()
            return
        self._job = KnownJob.of(handle)
        for settings, reporter in self._reporters:
            thread = threading.Thread(
                target=self._run, args=(settings, reporter), name=f"ekorn-reporter-{settings.name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)
        handle.at_end(self._end)

    def __enter__(self) -> Self:
        """Return the reporters, which are closed if the job does not start."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.close()

    def close(self) -> None:
        """Close the reporters of a job that did not start."""
        for settings, reporter in self._reporters:
            self._attempt(settings, reporter.close, is_known=False)
        self._reporters = []

    def _opened(self, each: ReporterSettings, settings: JobSettings) -> MetricReporter:
        given = each.given
        match each.kind:
            case "prometheus":
                token_file = str(runtime_folder() / "web.token")
                server = PrometheusServer(
                    given.get("port", DEFAULT_PORTS), settings.web, token_file, lambda: samples_of(self._jobs())
                )
                _log.info("metric reporter %s: Prometheus reads %s", each.name, server.address)
                return server
            case "push-gateway":
                return PushGatewayReporter(
                    given["hostUrl"],
                    given.get("jobName", ""),
                    random_suffix=given.get("randomJobNameSuffix", True),
                    delete_at_end=given.get("deleteOnShutdown", True),
                    grouping=given.get("groupingKey"),
                )
            case "open-telemetry":
                named = {"service_name": given.get("service.name"), "service_version": given.get("service.version")}
                return OpenTelemetryReporter(given["exporter.endpoint"], **{k: v for k, v in named.items() if v})
            case "json-lines":
                return JsonLinesReporter(given["file"])
            case "log":
                return LogReporter()

    def _jobs(self) -> list[KnownJob]:
        return [] if self._job is None else [self._job]

    def _run(self, settings: ReporterSettings, reporter: MetricReporter) -> None:
        failing = False
        while True:
            over = self._ended.wait(settings.interval_ms / 1000)
            reported = self._attempt(settings, lambda: self._report(reporter), is_known=failing)
            failing = not reported
            if over:
                self._attempt(settings, reporter.close, is_known=failing)
                return

    def _report(self, reporter: MetricReporter) -> None:
        reporter.report(list(samples_of(self._jobs())))

    def _attempt(self, settings: ReporterSettings, step: Callable[[], None], *, is_known: bool) -> bool:
        try:
            step()
        except Exception as error:  # a server, a disk or a user's gauge may fail; the job must not
            if not is_known:
                _log.warning("metric reporter %s failed: %s", settings.name, error)
            return False
        return True

    def _end(self, status: JobStatus, has_savepoint: bool) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(_JOIN_S)
