"""The page of a DataSet program in a real Chromium: its stages, its supersteps, and its cancellation."""

import os
import threading

import pytest

from ekorn.common import Configuration
from ekorn.dataset import ExecutionEnvironment
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.rest.driver_web import WEB
from ekorn.testing import on_local_engine
from tests.browser import tab_of

pytestmark = pytest.mark.long

ARRIVED, GO_ON = threading.Event(), threading.Event()


def held_back(value):
    ARRIVED.set()
    assert GO_ON.wait(60)
    return value


@pytest.fixture
def client(runtime_dir, tmp_path):
    """A job that has run an iteration, and waits in the stage behind it."""
    ARRIVED.clear()
    GO_ON.clear()
    with on_local_engine():
        env = ExecutionEnvironment(Configuration.from_dict({"ekorn.web": "auto"})).set_parallelism(2)
        initial = env.from_elements(1, 2, 3).iterate(5)
        grown = initial.close_with(initial.map(lambda n: n + 1))
        pairs = grown.rebalance().map(held_back).name("held").map(lambda n: (n % 2, n)).name("by parity")
        pairs.group_by(0).sum(1).name("sum").write_as_text(tmp_path / "out")
        yield env.execute_async("grown sums")
    GO_ON.set()
    WEB.close()


@pytest.fixture
def page(browser, client):
    token = (runtime_folder() / "web.token").read_text().strip()
    with tab_of(browser, f"{WEB.address}/", token) as tab:
        yield tab


def test_a_data_set_job_shows_its_stages_and_is_cancelled(page, client, tmp_path):
    assert ARRIVED.wait(60)
    page.get_by_role("link", name="grown sums").click()
    vertices = page.get_by_role("group", name="job graph").get_by_role("button")
    vertices.nth(2).wait_for()
    assert "superstep 5 of at most 5" in vertices.nth(0).text_content()
    assert "0 of 2 tasks done" in vertices.nth(2).text_content()
    page.get_by_text("DataSet program").wait_for()
    columns = page.locator("thead th").all_inner_texts()
    assert "Bytes in" in columns and not {"Watermark", "Slot", "Across hosts"} & set(columns)
    tabs = page.get_by_role("navigation", name="Views of the job").get_by_role("link").all_inner_texts()
    assert tabs == ["Graph", "Exceptions", "Time line", "Metrics", "Accumulators", "Configuration", "Logs"]
    assert page.get_by_role("button", name="Savepoint").count() == 0, "nor a stop with a savepoint"
    if folder := os.environ.get("EKORN_PICTURES"):
        page.screenshot(path=f"{folder}/data_set_job.png", full_page=True)

    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("its sinks leave nothing").wait_for()
    page.get_by_role("button", name="Cancel job").click()
    page.locator("h1 + .badge", has_text="CANCELLING").wait_for()
    GO_ON.set()
    page.locator("h1 + .badge", has_text="CANCELED").wait_for()
    assert not (tmp_path / "out").exists()
