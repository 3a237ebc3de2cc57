"""Jobs on the local engine with a web server, and a client of it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tamias.common import Configuration, RestartStrategies, WatermarkStrategy
from tamias.config.web_settings import WebSettings
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tamias.driver.job_handle import JobHandle
from tamias.rest.driver_web import DriverWeb
from tests.driver.submitted_jobs import start_locally
from tests.live_jobs import until


@dataclass
class Caller:
    """A client of one server."""

    port: int
    token: str | None = None

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Send a request; return the status and the JSON, or the bytes if it is not JSON."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            link.request(method, path, data, {**sent, **(headers or {})})
            answer = link.getresponse()
            content = answer.read()
        finally:
            link.close()
        is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
        return answer.status, json.loads(content) if is_json else content

    def get(self, path: str) -> Any:
        status, answer = self.ask("GET", path)
        assert status == 200, (path, status, answer)
        return answer


@pytest.fixture
def web(desk_folder: Path) -> Iterator[DriverWeb]:
    """A web server of a driver, closed at the end of the test."""
    found = DriverWeb()
    yield found
    found.close()


@pytest.fixture
def caller(web: DriverWeb) -> Caller:
    serving = web.open(WebSettings(port=0))
    assert serving.token_file is not None
    return Caller(serving.server.port, Path(serving.token_file).read_text().strip())


@pytest.fixture
def run(web: DriverWeb) -> Iterator[Callable[..., JobHandle]]:
    """Starts a job of two vertices that does not end by itself; it is cancelled at the end of the test."""
    started: list[JobHandle] = []

    def start(
        directory: Path | None = None,
        parallelism: int = 2,
        function: Callable[[int], Any] = lambda n: n % 5,
        **keys: Any,
    ) -> JobHandle:
        configuration = Configuration()
        for key, value in keys.items():
            configuration.set_string(key.replace("__", ".").replace("_", "-"), str(value))
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(parallelism)
        env.set_restart_strategy(RestartStrategies.no_restart())
        if directory is not None:
            env.enable_checkpointing(20)
            env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
        endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(1000))
        numbers = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
        numbers.map(function).name("rest").key_by(lambda n: n).reduce(max).name("most").uid("most")
        handle = start_locally(env, "endless")
        started.append(handle)
        web.jobs.add(handle)
        until(lambda: handle.progress().epochs > 1 or handle.status().is_terminal_state())
        return handle

    yield start
    for handle in started:
        handle.cancel()
        handle.wait_for_end(30)
