"""A job on a real YARN in client mode: both engines run with the settings of ekorn, and survive a lost container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.cluster_job import run
from tests.spark.yarn.yarn_cluster import YarnCluster

pytestmark = pytest.mark.soak  # minutes, and 200 MB of jars to download


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[YarnCluster]:
    started = YarnCluster(tmp_path)
    yield started
    started.stop()


@pytest.mark.parametrize("execution", ["epochs", "continuous"])
@pytest.mark.parametrize("fault", ["slot", "executor"])
def test_a_job_on_yarn_survives_what_its_containers_lose(
    yarn: YarnCluster, tmp_path: Path, execution: str, fault: str
) -> None:
    ended = run(yarn, tmp_path, fault, f"ekorn.execution={execution}")
    assert ended.restarts >= 1, ended.output[-3000:]
