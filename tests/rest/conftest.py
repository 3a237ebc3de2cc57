"""Jobs on the local engine with a web server, and a client of it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from ekorn.config.settings.web_settings import WebSettings
from ekorn.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.job_handle import JobHandle
from ekorn.rest.driver_web import DriverWeb
from tests import live_jobs
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
def web(runtime_dir: Path) -> Iterator[DriverWeb]:
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
        function: Callable[[int], Any] | MapFunction = lambda n: n % 5,
        name: str = "rest",
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
        numbers.map(function).name(name).key_by(lambda n: n).reduce(max).name("most").uid("most")
        handle = start_locally(env, "endless")
        started.append(handle)
        web.jobs.add(handle)
        until(lambda: handle.status().is_terminal_state() or has_begun(handle.progress()))
        return handle

    yield start
    for handle in started:
        handle.cancel()
        handle.results.wait_for_end(30)


def has_begun(progress: JobProgress) -> bool:
    return progress.epochs > 1 and progress.records_read > 0


COUNT = ValueStateDescriptor("count", Types.LONG())
COUNT.set_queryable("count")
RECENT = ListStateDescriptor("recent", Types.LONG())
RECENT.set_queryable("recent")
BY_PARITY = MapStateDescriptor("parity", Types.STRING(), Types.LONG())
BY_PARITY.set_queryable("parity")


class Kept(KeyedProcessFunction):
    """Keeps the last number of each key in states of three kinds."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)
        self.recent = runtime_context.get_list_state(RECENT)
        self.parity = runtime_context.get_map_state(BY_PARITY)

    def process_element(self, value, ctx):
        self.count.update(value)
        self.recent.update([value, value])
        self.parity.put("even" if value % 2 == 0 else "odd", value)
        yield value


@pytest.fixture
def serve(web: DriverWeb, tmp_path: Path) -> Iterator[Callable[..., JobHandle]]:
    """Starts a job that keeps, for each number below 10, the number itself; it is cancelled at the end."""
    started: list[JobHandle] = []

    def start(key_type: Any = Types.LONG(), selector: Any = lambda n: n, name: str = "kept", **keys: Any) -> JobHandle:  # noqa: B008
        keys = {"queryable_state__enable": "true", "queryable_state__proxy__ports": "0"} | keys
        env = live_jobs.environment(tmp_path / f"{name}-checkpoints", interval_ms=20, parallelism=2, **keys)
        numbers = live_jobs.generated(env, None, 2000).map(lambda n: n % 10, Types.LONG())
        numbers.key_by(selector, key_type).process(Kept()).uid("kept").name("keep")
        handle = start_locally(env, name)
        started.append(handle)
        web.jobs.add(handle)
        until(lambda: handle.progress().records_read > 1000 and handle.progress().checkpoints_completed > 3)
        return handle

    yield start
    for handle in started:
        handle.cancel()
        handle.results.wait_for_end(30)
