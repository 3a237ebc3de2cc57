"""The page in a real Chromium: a job is watched, saved, stopped, and its failures are read."""

import logging
import re
import socket
import time
from pathlib import Path

import pytest

from ekorn.common import JobStatus
from ekorn.testing.process_engine import on_process_engine
from tests import live_jobs
from tests.browser import WAIT_MS
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import until

pytestmark = pytest.mark.long


def fail_at_100(number):
    if number == 100:
        raise ValueError("no price for this order")
    return number % 5


def test_a_job_is_watched_saved_stopped_and_restored(page, run, tmp_path):
    handle = run(tmp_path / "checkpoints")
    page.get_by_role("link", name="endless").click()
    vertices = page.get_by_role("group", name="job graph").get_by_role("button")
    vertices.nth(1).wait_for()
    assert vertices.count() == 2
    page.get_by_text(re.compile(r"in (1,\d\d\d|[5-9]\d\d)")).first.wait_for()  # about a thousand records a second
    vertices.nth(1).click()
    page.get_by_role("heading", name="most").wait_for()
    assert page.locator("tbody tr").count() == 2, "a line for each subtask"
    assert page.get_by_role("navigation", name="Breadcrumbs").inner_text() == "Driver / endless / Graph"
    assert re.search(r"out .*, [\d,]+ in total, [\d.]+ (B|KiB)", vertices.nth(0).text_content())
    assert "no watermark yet" in vertices.nth(0).text_content()

    page.keyboard.press("2")
    page.locator("tbody tr").first.click()
    page.get_by_role("heading", name="Checkpoint").wait_for()

    page.get_by_role("button", name="Savepoint", exact=True).click()
    page.get_by_label("Directory or URL").fill(str(tmp_path / "saved"))
    page.get_by_role("button", name="Take savepoint").click()
    told = page.get_by_text("Savepoint: ")
    told.wait_for()
    assert Path(told.inner_text().removeprefix("Savepoint: ")).is_dir()

    page.get_by_role("button", name="Stop with savepoint").click()
    page.get_by_label("Directory or URL").fill(str(tmp_path / "last"))
    page.get_by_role("button", name="Stop", exact=True).click()
    told = page.get_by_text("Stopped. Savepoint: ")
    told.wait_for()
    until(lambda: handle.status() is JobStatus.FINISHED)
    page.locator("h1 + .badge", has_text="FINISHED").wait_for()
    assert page.get_by_role("button", name="Cancel").is_disabled()

    savepoint = told.inner_text().removeprefix("Stopped. Savepoint: ")
    again = run(tmp_path / "checkpoints", execution__savepoint__path=savepoint)
    page.goto(page.url.partition("#")[0] + f"#/jobs/{again.job_id}/checkpoints")
    page.get_by_text(f"Restored from {savepoint}").wait_for()


# [a watermark, the time of the driver], and what is shown: the text, the lag, the words under the pointer
WATERMARKS = [
    ([None, 0], ["no watermark yet", "", "No watermark has arrived yet."]),
    ([-(2**63), 0], ["no watermark yet", "", "No watermark has arrived yet."]),
    ([None, None], ["no watermark", "", "No watermark has arrived."]),
    ([9.3e15, 0], ["end of input", "", "All input has been read (9300000000000000)."]),
    ([4000, 10**12], ["4000", "", "4000, which is not a date"]),
    (
        [10**12 + 5, 10**12 + 3005],
        ["01:46:40", "3.0 s behind", "2001-09-09 01:46:40.005 (1000000000005), 3.0 s behind now"],
    ),
    ([10**12, 10**12 - 2000], ["01:46:40", "2.0 s ahead", "2001-09-09 01:46:40.000 (1000000000000), 2.0 s ahead now"]),
    (
        [10**12, 10**12 + 86_400_000],
        ["2001-09-09 01:46:40", "1 d 0 h behind", "2001-09-09 01:46:40.000 (1000000000000), 1 d 0 h behind now"],
    ),
    ([10**12, None], ["2001-09-09 01:46:40", "", "2001-09-09 01:46:40.000 (1000000000000)"]),
]
SHOWN_WATERMARKS = """async (all) => {
  const { watermark } = await import("./format.js");
  return all.map(([ms, now]) => Object.values(watermark(ms, now)));
}"""


def test_watermarks_are_shown_as_times_with_their_lag(browser, caller):
    context = browser.new_context(timezone_id="UTC")
    tab = context.new_page()
    tab.goto(f"http://127.0.0.1:{caller.port}/")
    shown = tab.evaluate(SHOWN_WATERMARKS, [given for given, _ in WATERMARKS])
    assert shown == [expected for _, expected in WATERMARKS]
    context.close()


COUNTS_OF_FAILURES = """async (failures) => {
  const { grouped } = await import("./exceptions_tab.js");
  return grouped(failures).map((group) => [group.length, group[0].timestamp, group.at(-1).timestamp]);
}"""


def test_equal_failures_are_grouped_by_their_exception_vertex_and_place(page):
    def failure(timestamp, name="ValueError", task="map (1/2)", line=7):
        trace = f"{name}: no price for order {timestamp}\n  File 'job.py', line {line}, in price\n    raise"
        return {"timestamp": timestamp, "exceptionName": name, "taskName": task, "stacktrace": trace}

    equal = [failure(9), failure(7, task="map (2/2)"), failure(3)]
    others = [failure(8, name="KeyError"), failure(6, task="sink (1/1)"), failure(5, line=8)]
    failures = sorted(equal + others, key=lambda each: -each["timestamp"])
    assert page.evaluate(COUNTS_OF_FAILURES, failures) == [[3, 9, 3], [1, 8, 8], [1, 6, 6], [1, 5, 5]]


def test_failures_are_shown_with_the_record_and_the_frames_of_the_user(page, run, tmp_path):
    handle = run(tmp_path, function=fail_at_100)
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/exceptions")
    page.locator("summary", has_text="ValueError").wait_for()
    trace = page.locator("pre").first.inner_text()
    assert "no price for this order" in trace
    assert "fail_at_100" in trace
    page.keyboard.press("4")
    page.locator("tbody .badge", has_text="FAILED").wait_for()


def test_keys_of_a_running_job_are_looked_up(page, serve):
    handle = serve()
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/state")
    page.get_by_label("State", exact=True).select_option("count")
    keys = page.get_by_label("Keys, one per line")
    keys.fill("3\n77")
    page.get_by_role("button", name="Look up").click()
    page.get_by_role("row", name="77 no value").wait_for()
    page.get_by_role("row", name="3 3").wait_for()
    page.get_by_label("Consistency").select_option("checkpoint")
    keys.fill("77")
    page.get_by_role("button", name="Look up").click()
    page.get_by_role("alert").get_by_text("has no value for key 77").wait_for()
    keys.fill("tea")
    page.get_by_role("button", name="Look up").click()
    page.get_by_role("alert").get_by_text("'tea' is not a key of type Long").wait_for()


def test_a_field_keeps_its_text_and_the_focus_while_the_page_shows_itself_anew(page, serve):
    handle = serve()
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/state")
    keys = page.get_by_label("Keys, one per line")
    keys.focus()
    page.keyboard.type("12")
    page.evaluate("document.querySelector('.tabs').dataset.old = 'yes'")
    page.locator(".tabs:not([data-old])").wait_for()  # another look has replaced the tabs
    page.keyboard.type("34")
    assert keys.input_value() == "1234"

    # Text that is selected, and a click that has begun, are not taken away either.
    tabs = page.locator(".tabs[data-old]")
    for begin, end in (
        (lambda: page.locator("main h1").select_text(), lambda: page.evaluate("getSelection().removeAllRanges()")),
        (lambda: (page.locator("main h1").hover(), page.mouse.down()), page.mouse.up),
    ):
        page.evaluate("document.querySelector('.tabs').dataset.old = 'yes'")
        begin()
        page.wait_for_event("response", lambda answer: answer.url.endswith("/state"))  # the last answer of a look
        page.evaluate("fetch('index.html').then((answer) => answer.text())")
        assert tabs.count() == 1
        end()
        page.evaluate("document.activeElement.blur()")  # in the field "r" is a letter
        page.keyboard.press("r")
        tabs.wait_for(state="detached")


def slow_price(number):
    time.sleep(0.002)
    return number % 5


# In one step: the page shows itself anew every two seconds, and an element that was found before is not in it any more.
WIDTH_OF_FLAME = """(name) => {
  const flames = [...document.querySelectorAll(".flames .flame")];
  return flames.find((each) => each.textContent.includes(name)).getBoundingClientRect().width;
}"""


def test_a_flame_graph_is_drawn_enlarged_and_the_threads_of_a_slot_are_shown(page, run):
    handle = run(function=slow_price, **{"rest__flamegraph__num_samples": "20"})
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/threads")
    frames = page.get_by_role("group", name="flame graph").get_by_role("button")
    own = frames.filter(has_text="slow_price")
    own.first.wait_for()
    page.reload()  # the graph is there before anything else is drawn
    own.first.wait_for()
    before = page.evaluate(WIDTH_OF_FLAME, "slow_price")
    own.first.click()
    page.locator(".flames > .flame:last-child", has_text="slow_price").wait_for()
    assert page.evaluate(WIDTH_OF_FLAME, "slow_price") >= before
    frames.first.click()  # the root: everything is shown again
    page.get_by_label("Samples", exact=True).select_option("OFF_CPU")
    page.get_by_text("samples until").wait_for()
    page.get_by_label("Slot", exact=True).select_option(index=1)
    page.locator("pre", has_text=f"ekorn-{handle.job_name}").wait_for()


def printing(number):
    print("price of", number)
    if number == 0:
        logging.getLogger("of.the.user").warning("order %d has no price", number)
    return slow_price(number)


def look_at_the_slot(page, handle):
    """Find the only slot of a job among all slots, and read its subtasks, output, log and threads."""
    page.keyboard.press("s")
    row = page.get_by_role("row", name="slot 0")
    row.get_by_text("used").wait_for()
    (pid,) = handle.progress().slot_pids
    cells = row.get_by_role("cell").all_inner_texts()
    assert cells[2:5] == ["printing", socket.gethostname(), str(pid)] and "MiB" in cells[5]
    row.get_by_role("link", name="slot 0").click()
    page.get_by_role("row", name=re.compile("Source.* 0 RUNNING")).wait_for()
    crumbs = page.get_by_role("navigation", name="Breadcrumbs")
    assert crumbs.inner_text() == "Driver / Slots / printing / slot 0 / Subtasks"
    for tab, expected in (("Output", "price of "), ("Log", "slot 0"), ("Threads", "slot_main.py")):
        page.get_by_role("navigation", name="Views of the slot").get_by_role("link", name=tab).click()
        page.locator("pre", has_text=expected).wait_for()


def test_what_user_code_prints_in_a_slot_is_read_among_the_logs(page, web):
    env = live_jobs.environment(parallelism=1)
    live_jobs.generated(env, None, 1000).map(printing)
    with on_process_engine(), noted_handles() as handles:
        env.execute_async("printing")
        (handle,) = handles
        web.jobs.add(handle)
        try:
            page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/logs")
            files = page.get_by_label("log file")
            printed = files.locator("option", has_text=re.compile(r"\.out$"))
            printed.wait_for(state="attached")
            files.select_option(printed.get_attribute("value"))
            page.locator("pre", has_text=re.compile(r"price of \d+\nprice of \d+\n")).wait_for()
            look_at_the_slot(page, handle)
        finally:
            handle.cancel()
            handle.results.wait_for_end(30)


OVERFLOW_OF_LONG_PATH = """() => {
  const text = document.createElement("p");
  text.textContent = "/".padEnd(300, "x");
  document.querySelector("main").append(text);
  const found = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  text.remove();
  return found;
}"""


def test_every_view_opens_in_both_themes_and_on_a_narrow_screen(page, run, tmp_path):
    handle = run(tmp_path)
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/graph")
    page.locator(".vertex").first.wait_for()
    themes = set()
    for width in (1200, 380):
        page.set_viewport_size({"width": width, "height": 800})
        for number in range(1, 11):
            page.keyboard.press(str(number % 10))
            page.locator(f".tabs a:nth-child({number})[aria-current]").wait_for()
            page.locator("main h1").wait_for()
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow <= 0, f"view {number} is wider than {width} pixels"
            assert page.evaluate(OVERFLOW_OF_LONG_PATH) <= 0
        page.keyboard.press("s")
        page.get_by_role("row", name="slot 1").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert page.locator("thead").is_visible() is (width == 1200), "a row of many columns becomes a list"
        page.go_back()
        page.locator(".tabs").wait_for()
        page.keyboard.press("t")
        themes.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(themes) == 2
    page.keyboard.press("?")
    page.get_by_text("open a view of the job").wait_for()


def test_the_page_follows_the_theme_of_the_system_until_somebody_selects_one(page, run):
    run()
    page.locator(".badge").first.wait_for()  # keys are read once the field of the token is gone
    for scheme in ("dark", "light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.locator(f"html[data-theme={scheme}]").wait_for()
    page.keyboard.press("t")
    page.locator("html[data-theme=light]").wait_for()
    page.emulate_media(color_scheme="light")
    page.emulate_media(color_scheme="dark")
    page.reload()
    page.locator("html[data-theme=light]").wait_for()


def test_a_wrong_and_an_old_token_are_named_and_a_cancelled_job_is_shown(browser, caller, run):
    handle = run()
    context = browser.new_context()
    tab = context.new_page()
    tab.set_default_timeout(WAIT_MS)
    tab.goto(f"http://127.0.0.1:{caller.port}/#/jobs/{handle.job_id}/graph")
    field = tab.get_by_label("The token of this server")
    field.fill("guessed")
    tab.keyboard.press("Enter")
    tab.get_by_role("alert").get_by_text("The server does not accept this token.").wait_for()
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Sign in").click()
    field.fill(caller.token)
    tab.get_by_role("button", name="Open").click()
    tab.get_by_role("button", name="Cancel").wait_for()

    # The server was started again, and has another token than the one that it accepted before.
    tab.evaluate("for (const key of ['ekorn-token', 'ekorn-token-accepted']) sessionStorage.setItem(key, 'old')")
    tab.keyboard.press("r")
    tab.get_by_role("alert").get_by_text("The server no longer accepts the token of this tab").wait_for()
    field.fill(caller.token)
    tab.get_by_role("button", name="Open").click()
    tab.get_by_role("button", name="Cancel").click()
    tab.get_by_role("button", name="Cancel job").click()
    tab.locator("h1 + .badge", has_text="CANCELED").wait_for()
    assert handle.status() is JobStatus.CANCELED
    context.close()
