"""Takes the pictures of the dashboard for the manual: python docs/pictures/dashboard.py (needs Debian's chromium).

A job with a failure in its first seconds runs in this process; a browser without a window looks at it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tamias.common import Configuration, WatermarkStrategy
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tamias.rest.driver_web import WEB
from tamias.testing.local_run import on_local_engine

FOLDER = Path(__file__).parent
VIEWS = ["graph", "checkpoints", "exceptions", "time-line", "metrics"]
SECONDS_OF_FIGURES = 20


class Priced:
    """Gives orders a customer; fails once, so that there is a failure to show."""

    def __init__(self, folder: str) -> None:
        self._failed = Path(folder) / "failed"

    def __call__(self, order: int) -> tuple[int, int]:
        if order == 10_000 and not self._failed.exists():
            self._failed.touch()
            raise ValueError(f"no price for order {order}")
        return order % 50, order


def main() -> None:
    """Run the job and take the pictures."""
    folder = tempfile.mkdtemp()
    settings = {
        "tamias.web": "auto",
        "tamias.web.authentication": "none",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": f"{folder}/checkpoints",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(2)
    orders = DataGeneratorSource(lambda number: number, None, RateLimiterStrategy.per_second(2000))
    stream = env.from_source(orders, WatermarkStrategy.no_watermarks(), "orders").map(Priced(folder)).name("price")
    by_customer = stream.key_by(lambda order: order[0])
    by_customer.reduce(max).name("highest").filter(lambda order: False).name("alerts").print()
    by_customer.map(lambda order: order[1]).name("number").rebalance().filter(lambda n: False).name("audit").print()
    with on_local_engine():
        client = env.execute_async("orders by customer")
        _take(f"{WEB.address}/#/jobs/{client.get_job_id()}")
        client.cancel().result()


def _take(address: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 700}, color_scheme="light")
        page.goto(f"{address}/graph")
        page.wait_for_timeout(SECONDS_OF_FIGURES * 1000)
        for view in VIEWS:
            page.goto(f"{address}/{view}")
            page.locator(".tabs a[aria-current]").wait_for()
            page.wait_for_timeout(1500)
            page.screenshot(path=str(FOLDER / f"dashboard-{view}.png"))
        browser.close()


if __name__ == "__main__":
    main()
