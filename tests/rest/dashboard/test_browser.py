"""The page in a real Chromium: a job is watched, saved, stopped, and its failures are read."""

import shutil
from pathlib import Path

import pytest

from tamias.common import JobStatus
from tests.live_jobs import until

pytestmark = pytest.mark.long

WAIT_MS = 30_000


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    assert chromium is not None, "Debian's package chromium is missing: `make browser` installs it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser, caller):
    """A tab that has given the token; an error of a script fails the test."""
    errors = []
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    tab = context.new_page()
    tab.set_default_timeout(WAIT_MS)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"http://127.0.0.1:{caller.port}/")
    tab.get_by_label("The token of this server").fill(caller.token)
    tab.get_by_role("button", name="Open").click()
    yield tab
    context.close()
    assert errors == []


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
    page.get_by_text("in 1,").first.wait_for()  # about a thousand records a second
    vertices.nth(1).click()
    page.get_by_role("heading", name="most").wait_for()
    assert page.locator("tbody tr").count() == 2, "a line for each subtask"

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


def test_failures_are_shown_with_the_record_and_the_frames_of_the_user(page, run, tmp_path):
    handle = run(tmp_path, function=fail_at_100)
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/exceptions")
    page.locator("summary", has_text="ValueError").wait_for()
    trace = page.locator("pre").first.inner_text()
    assert "no price for this order" in trace
    assert "fail_at_100" in trace
    page.keyboard.press("4")
    page.locator("tbody .badge", has_text="FAILED").wait_for()


def test_every_view_opens_in_both_themes_and_on_a_narrow_screen(page, run, tmp_path):
    handle = run(tmp_path)
    page.goto(page.url.partition("#")[0] + f"#/jobs/{handle.job_id}/graph")
    page.locator(".vertex").first.wait_for()
    themes = set()
    for width in (1200, 380):
        page.set_viewport_size({"width": width, "height": 800})
        for number in range(1, 9):
            page.keyboard.press(str(number))
            page.locator(f".tabs a:nth-child({number})[aria-current]").wait_for()
            page.locator("main h1").wait_for()
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow <= 0, f"view {number} is wider than {width} pixels"
        page.keyboard.press("t")
        themes.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(themes) == 2
    page.keyboard.press("?")
    page.get_by_text("the views of a job").wait_for()


def test_a_wrong_token_is_asked_for_again_and_a_cancelled_job_is_shown(browser, caller, run):
    handle = run()
    context = browser.new_context()
    tab = context.new_page()
    tab.set_default_timeout(WAIT_MS)
    tab.goto(f"http://127.0.0.1:{caller.port}/#/jobs/{handle.job_id}/graph")
    for token in ("guessed", caller.token):
        tab.get_by_label("The token of this server").fill(token)
        tab.get_by_role("button", name="Open").click()
    tab.get_by_role("button", name="Cancel").click()
    tab.get_by_role("button", name="Cancel job").click()
    tab.locator("h1 + .badge", has_text="CANCELED").wait_for()
    assert handle.status() is JobStatus.CANCELED
    context.close()
