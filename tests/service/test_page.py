"""The page of a service in a real Chromium: a job is started, watched, saved, stopped and restored from it alone."""

import re
from pathlib import Path

import pytest

from tests.browser import chromium, tab_of

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser, running):
    token = Path(running.serving.token_file).read_text().strip()
    with tab_of(browser, f"{running.serving.address}/", token) as tab:
        yield tab


def upload_and_run(page, programs):
    """Bring the endless program and its module, and run it with an argument at parallelism 2."""
    page.get_by_role("button", name="Upload").click()
    page.get_by_label("The script and the modules").set_input_files([programs / "endless.py", programs / "steps.py"])
    page.get_by_role("dialog").get_by_role("button", name="Upload").click()
    page.get_by_role("status").get_by_text("Uploaded: endless.py").wait_for()
    page.get_by_role("button", name="Run").click()
    page.get_by_label("Arguments, one per line").fill("a\nb c")
    page.get_by_label("Parallelism").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Run").click()


def test_a_job_is_started_watched_saved_stopped_and_restored_from_the_page(page, running, programs, tmp_path):
    upload_and_run(page, programs)
    page.locator("h1 + .badge", has_text="RUNNING").wait_for()
    (first,) = running.service.jobs()
    assert first.arguments == ("a", "b c") and first.slots == 2
    vertices = page.get_by_role("group", name="job graph").get_by_role("button")
    vertices.nth(1).wait_for()

    page.get_by_role("button", name="Savepoint", exact=True).click()
    page.get_by_label("Directory or URL").fill(str(tmp_path / "saved"))
    page.get_by_role("button", name="Take savepoint").click()
    told = page.get_by_text("Savepoint: ")
    told.wait_for()
    saved = told.inner_text().removeprefix("Savepoint: ")
    page.get_by_role("button", name="Stop with savepoint").click()
    page.get_by_label("Directory or URL").fill(str(tmp_path / "last"))
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_text("Stopped. Savepoint: ").wait_for()
    page.locator("h1 + .badge", has_text="FINISHED").wait_for()

    page.get_by_role("button", name="Start from savepoint").click()
    choices = page.get_by_label("Start from", exact=True)
    choices.wait_for()
    assert choices.locator("option").count() == 3, "both savepoints, and another path"
    choices.select_option(saved)
    page.get_by_role("dialog").get_by_label("Parallelism").fill("1")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text(f"Restored from {saved}").wait_for()
    page.locator("h1 + .badge", has_text="RUNNING").wait_for()
    again = running.service.jobs()[-1]
    assert len({first.submission_id, again.submission_id, ""}) == 3, "each request of the page has a name of its own"
    assert again.job_id != first.job_id and again.job_id in page.url
    assert again.arguments == first.arguments and again.slots == 1
    assert page.get_by_role("navigation", name="Breadcrumbs").inner_text() == "Service / endless / Checkpoints"

    page.keyboard.press("j")
    page.get_by_role("button", name="Run").click()
    choices.wait_for()
    offered = choices.locator("option").all_inner_texts()
    assert offered[0] == "empty state" and len(offered) == 3, "checkpoints of a running job do not stay"
    assert all(re.match(r"\d{4}-\d\d-\d\d [\d:]+, endless, savepoint \d+, [\d.]+ \w+$", each) for each in offered[1:])
    assert offered[1:] == sorted(offered[1:], reverse=True), "the newest is the first"
    page.keyboard.press("Escape")


def test_a_job_that_failed_to_start_shows_its_id_and_its_log(page, client, programs):
    (programs / "broken.py").write_text("import nothing_of_this_name")
    job_id = str(client.submit(programs / "broken.py").get_job_id())
    page.get_by_role("row").get_by_text("the program ended with exit code 1 and started no job").wait_for()
    page.get_by_role("link", name="broken").click()
    page.get_by_role("alert").get_by_text("The job failed to start: the program ended with exit code 1").wait_for()
    page.locator("pre", has_text="No module named 'nothing_of_this_name'").wait_for()
    assert page.locator("code").inner_text() == job_id
    assert page.get_by_role("button", name="Cancel").is_disabled()


def test_the_page_shows_the_log_and_the_configuration_of_the_jobs_driver(page, running, programs):
    upload_and_run(page, programs)
    page.locator("h1 + .badge", has_text="RUNNING").wait_for()
    (record,) = running.service.jobs()
    page.keyboard.press("0")
    page.locator("pre", has_text="arguments ['a', 'b c']").wait_for()
    page.keyboard.press("9")
    page.get_by_role("row", name=f"$internal.pipeline.job-id {record.job_id}").wait_for()


def test_what_the_service_refuses_is_said_on_the_page(page, running, programs, tmp_path):
    upload_and_run(page, programs)
    page.locator("h1 + .badge", has_text="RUNNING").wait_for()
    page.get_by_role("button", name="Start from savepoint").click()
    page.get_by_text("The job is still running. This starts a second job in parallel.").wait_for()
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("alert").get_by_text("'savepointPath' is required").wait_for()
    page.get_by_role("button", name="Start from savepoint").click()
    page.get_by_label("Path of a savepoint").fill(str(tmp_path / "nothing"))
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("has not started: it needs 2 slots, but only 0 of 2 are free").wait_for()
    assert len(running.service.jobs()) == 2
    page.keyboard.press("j")
    page.get_by_role("row").get_by_text("it waits: it needs 2 slots, but only 0 of 2 are free").wait_for()
