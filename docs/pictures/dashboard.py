"""Takes the pictures of the dashboard for the manual: python docs/pictures/dashboard.py (needs Debian's chromium).

A job that fails three times in its first seconds runs in slot processes; a browser without a window looks at it. For
the page of a service, also alone as `python docs/pictures/dashboard.py service`, a service in this process runs several
programs in drivers of their own. Traces show the path of this script: run a copy of it elsewhere if that is private.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from ekorn.client import ServiceClient
from ekorn.common import Configuration, DoubleMaximum, LongCounter, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.config.settings.web_settings import WebSettings
from ekorn.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.rest.driver_web import WEB
from ekorn.service.jobs.job_process import end_process
from ekorn.service.service_process import StandingService
from ekorn.testing.process_engine import on_process_engine

FOLDER = Path(__file__).parent
VIEWS = [
    "graph", "checkpoints", "exceptions", "time-line", "metrics", "threads", "state", "accumulators", "configuration",
    "logs",
]  # fmt: skip
HEIGHTS = {"graph": 860, "metrics": 1020}
SECONDS_OF_FIGURES = 40

PROGRAM = """
import sys
from ekorn.common import WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.testing import on_local_engine

name, count = sys.argv[1:]
env = StreamExecutionEnvironment.get_execution_environment()
records = DataGeneratorSource(lambda n: n, int(count) or None, RateLimiterStrategy.per_second(300))
stream = env.from_source(records, WatermarkStrategy.no_watermarks(), "records")
stream.key_by(lambda n: n % 50).reduce(max).name("highest").filter(lambda n: False).name("alerts").print()
with on_local_engine():
    env.execute(name)
"""
JOBS = [  # script, name, number of records (0: no end), parallelism
    ("orders.py", "orders by customer", 0, 2),
    ("sessions.py", "sessions", 0, 1),
    ("fraud.py", "fraud alerts", 0, 1),
    ("report.py", "report of yesterday", 400, 1),
    ("backfill.py", "backfill", 0, 4),  # no slots are left for it: it waits
]


class Priced(MapFunction):
    """Gives orders a customer; fails three times, so that there are failures to show."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._priced, self._values = LongCounter(), DoubleMaximum()

    def open(self, runtime_context: RuntimeContext) -> None:
        runtime_context.add_accumulator("orders priced", self._priced)
        runtime_context.add_accumulator("highest value", self._values)
        self._discounts = runtime_context.get_metrics_group().counter("discounts")

    def map(self, order: int) -> tuple[int, int]:
        self._priced.add(1)
        self._values.add(order % 997 / 10)
        self._discounts.inc(order % 9 == 0)
        if order % 10_000 == 0 and order:
            self._fail_at_first(order)
        return order % 50, _discounted(order)

    def _fail_at_first(self, order: int) -> None:
        failures = len(list(self._folder.glob("failed-*")))
        if failures < 3:
            (self._folder / f"failed-{failures}").touch()
            raise ValueError(f"no price for order {order}")


class _Clock(TimestampAssigner):
    """Gives orders the time of the clock a few seconds ago."""

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return round(time.time() * 1000) - 2500


def _discounted(order: int) -> int:
    return order + sum(step % 7 for step in range(2000)) * 0


def main() -> None:
    """Run the job and take the pictures."""
    folder = tempfile.mkdtemp()
    log = logging.getLogger("ekorn")
    log.setLevel(logging.INFO)
    handler = logging.FileHandler(Path(folder) / "driver.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    log.addHandler(handler)
    settings = {
        "ekorn.web": "auto",
        "ekorn.web.authentication": "none",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": f"{folder}/checkpoints",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10",
        "queryable-state.enable": "true",
        "queryable-state.proxy.ports": "0",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(2)
    orders = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(2000))
    by_clock = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Clock())
    stream = env.from_source(orders, by_clock, "orders").map(Priced(folder)).name("price")
    by_customer = stream.key_by(lambda order: order[0], Types.LONG())
    by_customer.as_queryable_state("latest-order")
    by_customer.reduce(max).name("highest").filter(lambda order: False).name("alerts").print()
    by_customer.map(lambda order: order[1]).name("number").rebalance().filter(lambda n: False).name("audit").print()
    with on_process_engine():
        client = env.execute_async("orders by customer")
        _take(str(WEB.address), str(client.get_job_id()))
        client.cancel().result()


def picture_of_a_service() -> None:
    """Run a service with several jobs and take a picture of its page."""
    folder = Path(tempfile.mkdtemp())
    web = WebSettings(port=0, needs_token=False)
    service = StandingService(ServiceSettings(folder=str(folder / "service"), web=web, slots=5))
    try:
        client = ServiceClient(service.serving.address)
        for script, name, count, parallelism in JOBS:
            (folder / script).write_text(PROGRAM)
            settings = {
                "execution.checkpointing.interval": "1 s",
                "execution.checkpointing.dir": f"{folder}/checkpoints",
            }
            client.submit(folder / script, parallelism, arguments=[name, str(count)], settings=settings)
        with _tab() as page:
            page.goto(f"{service.serving.address}/")
            page.locator(".badge.FINISHED").first.wait_for(timeout=180_000)
            page.get_by_text("it waits: it needs 4 slots").wait_for()
            page.wait_for_timeout(5000)
            page.screenshot(path=str(FOLDER / "dashboard-service.png"))
    finally:
        service.close()
        for record in service.service.jobs():
            if record.phase == "STARTED":
                end_process(record.pid, record.pid_started, at_once=True)


def _draw_flames(page: Page) -> None:
    """Wait for the samples, then show those of the functions."""
    page.locator(".flames").wait_for()
    page.get_by_label("Samples", exact=True).select_option("ON_CPU")
    page.wait_for_timeout(1500)


def _look_up(page: Page) -> None:
    page.get_by_label("Keys, one per line").fill("7\n12\n99")
    page.get_by_role("button", name="Look up").click()
    page.get_by_role("row", name="99 no value").wait_for()


def _point(page: Page) -> None:
    """Show the values under the pointer of a plot."""
    curves = page.get_by_role("region", name="Records out", exact=True).locator("svg")
    curves.locator("path.curve").first.wait_for(state="attached")
    curves.hover(position={"x": 270, "y": 60})


_PREPARED = {"metrics": _point, "threads": _draw_flames, "state": _look_up}


@contextmanager
def _tab() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1200, "height": 700}, color_scheme="light")
        browser.close()


def _take(server: str, job_id: str) -> None:
    address = f"{server}/#/jobs/{job_id}"
    with _tab() as page:
        page.goto(f"{address}/graph")
        page.wait_for_timeout(SECONDS_OF_FIGURES * 1000)
        for view in VIEWS:
            page.set_viewport_size({"width": 1200, "height": HEIGHTS.get(view, 700)})
            page.goto(f"{address}/{view}")
            page.locator(".tabs a[aria-current]").wait_for()
            page.wait_for_timeout(1500)
            if view in _PREPARED:
                _PREPARED[view](page)
            page.screenshot(path=str(FOLDER / f"dashboard-{view}.png"))
        page.goto(f"{server}/#/slots")
        page.get_by_role("row", name="slot 1").wait_for()
        page.set_viewport_size({"width": 1200, "height": 320})
        page.screenshot(path=str(FOLDER / "dashboard-slots.png"))


if __name__ == "__main__":
    if sys.argv[1:] == ["service"]:
        picture_of_a_service()
    else:
        main()
        picture_of_a_service()
