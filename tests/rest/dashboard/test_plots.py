"""The plots of metrics in a real Chromium: axes, values under the pointer, gaps, and what a person chooses."""

import re
from pathlib import Path

import pytest

from ekorn.datastream import MapFunction
from ekorn.driver.statistics.vertex_history import MetricPart
from tests import live_jobs
from tests.driver.submitted_jobs import start_locally
from tests.live_jobs import until

pytestmark = pytest.mark.long


class Checked(MapFunction):
    """Counts frauds, as the detector of the tutorial does, and has a metric of every other kind."""

    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.frauds = group.counter("frauds")
        self.payments = group.meter("payments")
        self.amounts = group.distribution("amount")
        group.gauge("open cases", lambda: 7)
        group.gauge("mood", lambda: "good")

    def map(self, value):
        self.frauds.inc(value % 100 == 0)
        self.payments.mark_event()
        self.amounts.update(value % 10)
        return value % 5


def points_of(handle):
    return len(handle.view.statistics.vertex_history.series([]).times_ms)


def open_metrics(page, handle, points=3):
    until(lambda: points_of(handle) >= points)
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/metrics")
    plot(page, "Records in").locator("path.curve").first.wait_for(state="attached")


def plot(page, title):
    return page.get_by_role("region", name=title, exact=True)


def ticks(found):
    return found.locator(".value-tick").all_text_contents()


def titles(page):
    return page.locator(".plot h3").all_inner_texts()


# In one step: a plot is drawn again while the job runs.
HEIGHTS_OF_CURVE_AND_BASE = """(title) => {
  const plot = document.querySelector(`.plot[aria-label="${title}"]`);
  const path = plot.querySelector("path.curve").getAttribute("d");
  const heights = [...path.matchAll(/[ V](-?[0-9.]+)/g)].map((found) => Number(found[1]));
  return [Math.min(...heights), Math.max(...heights), Number(plot.querySelector(".base").getAttribute("y1"))];
}"""


def test_axes_begin_at_zero_and_have_units_and_clock_times(page, run, tmp_path):
    handle = run(tmp_path)
    open_metrics(page, handle)
    restarts = plot(page, "Restarts")
    restarts.locator("path.curve").wait_for(state="attached")
    assert ticks(restarts) == ["0", "1"]
    top, bottom, base = page.evaluate(HEIGHTS_OF_CURVE_AND_BASE, "Restarts")
    assert top == bottom == pytest.approx(base, abs=0.1), "no restart is a line at zero"
    assert ticks(plot(page, "Busy")) == ["0", "25 %", "50 %", "75 %", "100 %"]
    top, bottom, base = page.evaluate(HEIGHTS_OF_CURVE_AND_BASE, "Back-pressured")
    assert base - top < 30, "a few percent do not fill the height"
    assert ticks(plot(page, "Records in"))[0] == "0" and ticks(plot(page, "Records in"))[-1].endswith("/s")
    plot(page, "State size").locator("path.curve").wait_for(state="attached")
    assert ticks(plot(page, "State size"))[-1].endswith("B")
    assert ticks(plot(page, "Latency"))[-1].endswith("s")
    times = plot(page, "Latency").locator(".time-tick").all_text_contents()
    assert times and all(re.fullmatch(r"\d\d:\d\d:\d\d", time) for time in times)


def test_the_values_under_the_pointer_are_those_of_the_driver(page, run):
    handle = run()
    open_metrics(page, handle)
    records = plot(page, "Records in")
    values, tip = records.locator("svg"), records.locator(".tip")
    width = values.bounding_box()["width"]
    values.hover(position={"x": width * 0.8, "y": 40})
    tip.wait_for()
    others = plot(page, "Busy")
    others.locator(".cross line").wait_for(state="attached")
    assert others.locator(".tip").is_hidden(), "another plot marks the moment alone"

    moment, name, rate, *_ = tip.inner_text().split("\n")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", moment)
    vertex = next(each for each in handle.view.statistics.graph.vertices if each.name == name)
    part = MetricPart(vertex.id, "numRecordsInPerSecond", "sum")
    known = handle.view.statistics.vertex_history.series([part]).values[part]
    assert min(abs(float(rate.removesuffix("/s").replace(",", "")) - value) for value in known) < 0.1

    page.mouse.move(1, 1)
    tip.wait_for(state="hidden")
    values.focus()
    page.keyboard.press("End")
    tip.wait_for()
    last = tip.inner_text().split("\n")[0]
    page.keyboard.press("ArrowLeft")
    assert tip.inner_text().split("\n")[0] < last
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")

    legend = records.get_by_role("button", name="most")
    legend.click()
    assert records.locator("g[data-series]").count() == 1 and legend.get_attribute("aria-pressed") == "false"


def test_a_finger_shows_the_values_and_leaves_them(browser, caller, run):
    handle = run()
    context = browser.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{caller.port}/#/jobs/{handle.job_id}/metrics")
    page.get_by_label("The token of this server").fill(caller.token)
    page.get_by_role("button", name="Open").click()
    until(lambda: points_of(handle) >= 3)
    latency = plot(page, "Latency")
    latency.locator("path.curve").wait_for(state="attached")
    latency.locator("svg").scroll_into_view_if_needed()
    latency.locator("svg").tap(position={"x": 200, "y": 50})
    latency.locator(".tip").wait_for()
    box = latency.locator(".tip").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 400
    assert latency.get_by_role("button", name="Remove").is_visible(), "there is no pointer that could rest on the plot"
    context.close()


def test_metrics_of_functions_are_shown_chosen_and_remembered(page, run):
    handle = run(function=Checked(), name="detector")
    open_metrics(page, handle)
    frauds = plot(page, "frauds")
    frauds.locator("path.curve").wait_for(state="attached")
    assert int(frauds.locator(".latest").inner_text().replace(",", "")) > 0
    assert {"payments", "amount", "open cases"} <= set(titles(page)) and "mood" not in titles(page)
    assert plot(page, "amount").get_by_role("button", name=re.compile("^(min|mean|max) ")).count() == 3

    page.get_by_role("button", name="Add a plot").click()
    page.get_by_label("Operator", exact=True).select_option(index=0)
    page.get_by_label("Search metrics").fill("FRAUDS")
    names = page.get_by_role("group", name="Metrics").get_by_role("checkbox")
    page.get_by_text("1 of ").wait_for()
    assert names.count() == 1
    names.check()
    page.get_by_label("Show", exact=True).select_option("subtasks")
    page.get_by_role("button", name="Add plot", exact=True).click()
    both = page.locator('.plot[data-id^="own:"]')
    both.get_by_role("button", name="Subtask 1").wait_for()
    assert both.locator("g[data-series]").count() == 2
    assert page.locator(".plot").first.get_attribute("data-id").startswith("own:"), "what was added comes first"

    plot(page, "Idle").hover()
    plot(page, "Idle").get_by_role("button", name="Remove").click()
    plot(page, "Idle").wait_for(state="detached")
    page.get_by_label("Time span").select_option(label="Last 5 minutes")
    page.reload()
    both.get_by_role("button", name="Subtask 1").wait_for()
    assert "Idle" not in titles(page) and page.locator(".plot").first.get_attribute("data-id").startswith("own:")
    assert page.get_by_label("Time span").input_value() == "300000"

    both.hover()
    both.get_by_role("button", name="Move on").click()
    page.locator('.plot:nth-child(2)[data-id^="own:"]').wait_for()
    both.get_by_label("Show: frauds").select_option("max")
    both.locator(".latest", has_text=re.compile(r"\d")).wait_for()
    assert both.locator("g[data-series]").count() == 1
    page.get_by_role("button", name="Restore the default plots").click()
    plot(page, "Idle").wait_for()
    assert both.count() == 0


def test_a_restart_is_a_gap_that_is_marked(page, web, tmp_path):
    failed = tmp_path / "failed"

    def fail_once(number):
        if number >= 2500 and not failed.exists():
            Path(failed).touch()
            raise ValueError("no price for this order")
        return number

    env = live_jobs.environment(tmp_path / "checkpoints", interval_ms=100, restarts=1)
    live_jobs.generated(env, None, 1000).map(fail_once)
    handle = start_locally(env, "failing")
    web.jobs.add(handle)
    try:
        until(lambda: handle.progress().restarts == 1)
        before = points_of(handle)
        open_metrics(page, handle, before + 3)
        restarts = plot(page, "Restarts")
        restarts.locator(".latest", has_text="1").wait_for()
        assert restarts.locator(".pause").count() == 1
        path = restarts.locator("path.curve").first.get_attribute("d")
        assert path.count("M") == 2, "the curve is broken at the restart"
    finally:
        handle.cancel()
        handle.results.wait_for_end(30)


def test_plots_survive_a_reload_and_stay_when_the_job_has_ended(page, run, tmp_path):
    handle = run(tmp_path)
    history = handle.view.statistics.history
    until(lambda: sum(each.checkpoint_bytes is not None for each in history.points()) >= 2)
    open_metrics(page, handle)

    def points(title):
        curve = plot(page, title).locator("path.curve").first
        curve.wait_for(state="attached")
        return len(re.findall("[MLH]", curve.get_attribute("d")))

    names = ["Records in", "Latency", "State size", "Checkpoint duration", "Checkpoint size", "Memory"]
    before = [points(name) for name in names]
    assert min(before) >= 2
    page.reload()
    assert all(late >= early for early, late in zip(before, map(points, names), strict=True))
    page.get_by_label("Time span").select_option(label="Last day")
    handle.cancel()
    handle.results.wait_for_end(30)
    page.locator("h1 + .badge", has_text="CANCELED").wait_for()
    page.reload()
    assert all(late >= early for early, late in zip(before, map(points, names), strict=True))


def test_a_list_stays_open_while_the_page_shows_itself_anew(page, run):
    open_metrics(page, run())
    page.get_by_role("button", name="Add a plot").click()
    page.get_by_label("Search metrics").focus()
    page.evaluate("document.activeElement.addEventListener('blur', () => (window.lost = true))")
    page.evaluate("document.querySelector('.tabs').dataset.old = 'yes'")
    page.locator(".tabs:not([data-old])").wait_for()  # another look has replaced the tabs
    assert page.evaluate("window.lost") is None, "the field was not taken out of the page"


AXES = """async () => {
  const [{ valueAxis, timeTicks }, { UNITS, unitOf }, { isGap, nearest }] =
    await Promise.all([import("./axes.js"), import("./units.js"), import("./plot.js")]);
  const labels = (unit, least, most) => valueAxis(UNITS[unit], least, most, 4).ticks.map(([, label]) => label);
  const noon = new Date(2026, 10, 18, 12).getTime();
  const unitNames = new Map(Object.entries(UNITS).map(([name, unit]) => [unit, name]));
  const unit = (name, ...values) => unitNames.get(unitOf(name, values));
  const times = [0, 1000, 2000, 62000, 63000, 64000];
  return {
    zeroCount: labels("count", 0, 0), zeroRate: labels("rate", 0, 0),
    zeroBytes: labels("bytes", 0, 0), zeroMs: labels("ms", 0, 0), bytes: labels("bytes", 0, 1000),
    oneRestart: labels("count", 0, 1), percent: labels("share", 0, 0.01), thousands: labels("rate", 3, 1700),
    millions: labels("number", 0, 3.2e6), mebibytes: labels("bytes", 5, 70 * 1024 ** 2), seconds: labels("ms", 0, 4200),
    minutes: labels("ms", 0, 200000), below: labels("number", -3, 5), small: labels("number", 0, 0.004),
    steady: labels("rate", 990, 1010),
    watermark: labels("moment", noon, noon + 20000),
    fine: timeTicks(noon + 1, noon + 60000, 4).map(([, label]) => label),
    day: timeTicks(noon, noon + 24 * 3600000, 8).map(([, label]) => label),
    units: [
      unit("numRecordsInPerSecond", 1.5), unit("numBytesOutPerSecond", 1), unit("numBytesOut", 1),
      unit("busyTimeMs", 2), unit("map.frauds", 3), unit("map.share", 0.5), unit("map.orders.rate", 1),
      unit("currentInputWatermark", 1.7e12), unit("currentInputWatermark", 250),
    ],
    gaps: [1, 2, 3, 4].map((index) => isGap(times, index, [])),
    paused: isGap(times, 1, [{ from: 100, to: 900 }]),
    nearest: [nearest(times, -5), nearest(times, 1400), nearest(times, 40000), nearest(times, 1e9), nearest([], 3)],
  };
}"""


def test_ticks_are_round_and_units_fit_their_metrics(page):
    found = page.evaluate(AXES)
    assert found["zeroCount"] == ["0", "1"] and found["zeroRate"] == ["0", "0.5/s", "1.0/s"]
    assert found["zeroBytes"] == ["0", "1 KiB", "2 KiB", "3 KiB", "4 KiB"]
    assert found["bytes"] == ["0", "0.25 KiB", "0.50 KiB", "0.75 KiB", "1.00 KiB"], "no label is rounded"
    assert found["zeroMs"] == ["0", "5 ms", "10 ms"]
    assert found["oneRestart"] == ["0", "1"]
    assert found["percent"] == ["0", "25 %", "50 %", "75 %", "100 %"]
    assert found["thousands"] == ["0", "500/s", "1,000/s", "1,500/s", "2,000/s"]
    assert found["steady"] == ["0", "500/s", "1,000/s", "1,500/s"], "a steady rate is far from zero"
    assert found["millions"] == ["0", "1 M", "2 M", "3 M", "4 M"]
    assert found["mebibytes"] == ["0", "32 MiB", "64 MiB", "96 MiB"]
    assert found["seconds"] == ["0", "2 s", "4 s", "6 s"]
    assert found["minutes"] == ["0", "1 min", "2 min", "3 min", "4 min"]
    assert found["below"] == ["-4", "-2", "0", "2", "4", "6"]
    assert found["small"] == ["0", "0.001", "0.002", "0.003", "0.004"]
    assert found["watermark"] == ["12:00:00", "12:00:05", "12:00:10", "12:00:15", "12:00:20"]
    assert found["fine"] == ["12:00:15", "12:00:30", "12:00:45", "12:01:00"]
    assert found["day"] == ["12:00", "15:00", "18:00", "21:00", "Nov 19", "03:00", "06:00", "09:00", "12:00"]
    assert found["units"] == ["rate", "byteRate", "bytes", "ms", "count", "number", "rate", "moment", "number"]
    assert found["gaps"] == [False, False, True, False] and found["paused"]
    assert found["nearest"] == [0, 1, 3, 5, -1]
