"""A service in this process or in one of its own, with programs that run on the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.service.client.service_client import ServiceClient
from ekorn.service.jobs.job_process import end_process
from ekorn.service.service_process import StandingService

ENDLESS = """
import sys
from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.testing.local_run import on_local_engine
from steps import remainder

env = StreamExecutionEnvironment.get_execution_environment()
endless = DataGeneratorSource(lambda n: n, None, RateLimiterStrategy.per_second(500))
numbers = env.from_source(endless, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
numbers.key_by(remainder).reduce(max).uid("most").name("most")
print("arguments", sys.argv[1:], flush=True)
with on_local_engine():
    env.execute("endless")
"""
BOUNDED = """
import sys
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.local_run import on_local_engine

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda n: n * int(sys.argv[1])).print()
with on_local_engine():
    env.execute("bounded")
"""
TWO_JOBS = """
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.local_run import on_local_engine

env = StreamExecutionEnvironment.get_execution_environment()
with on_local_engine():
    for name in ("one", "two"):
        env.from_collection([1, 2]).map(lambda n: n).print()
        env.execute(name)
"""
STEPS = """
def remainder(n):
    return n % 5
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in (("endless.py", ENDLESS), ("my_job.py", ENDLESS), ("bounded.py", BOUNDED), ("steps.py", STEPS)):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def settings(tmp_path: Path, runtime_dir: Path) -> ServiceSettings:
    return ServiceSettings(folder=str(tmp_path / "service"), web=WebSettings(port=0), slots=2, memory_bytes=1000 << 20)


@pytest.fixture
def running(settings: ServiceSettings) -> Iterator[StandingService]:
    """A service in this process; the drivers that it started are killed at the end of the test."""
    service = StandingService(settings)
    yield service
    service.close()
    kill_drivers(service)


def kill_drivers(service: StandingService) -> None:
    for record in service.service.jobs():
        if record.phase == "STARTED":
            end_process(record.pid, record.pid_started, at_once=True)


@pytest.fixture
def client(running: StandingService) -> ServiceClient:
    return client_of(running)


def client_of(service: StandingService) -> ServiceClient:
    return ServiceClient(service.serving.address, service.serving.token_file)


def configuration(folder: Path) -> Configuration:
    """The configuration of a service in a process of its own."""
    return Configuration.from_dict(
        {"ekorn.service.dir": str(folder), "rest.port": "0", "taskmanager.numberOfTaskSlots": "2"}
    )
