"""Views of the page in a real Chromium: jobs that are over or missing, figures, settings, and the keyboard."""

import pytest

from ekorn.common import JobStatus, LongCounter
from ekorn.datastream import MapFunction
from tests.live_jobs import until

pytestmark = pytest.mark.long


class Counting(MapFunction):
    """Counts its records in an accumulator."""

    def open(self, runtime_context):
        self._seen = LongCounter()
        runtime_context.add_accumulator("numbers seen", self._seen)

    def map(self, value):
        self._seen.add(1)
        return value % 5


def opened(page, view):
    page.goto(page.url.partition("#")[0] + f"#/{view}")


def test_a_job_that_is_over_has_totals_but_no_rates_no_slots_to_open_and_nothing_in_progress(page, run, tmp_path):
    handle = run(tmp_path)
    handle.cancel()
    until(lambda: handle.status() is JobStatus.CANCELED)
    opened(page, f"jobs/{handle.job_id}/graph")
    page.locator("h1 + .badge", has_text="CANCELED").wait_for()
    vertices = page.get_by_role("group", name="job graph")
    assert "records" in vertices.text_content()
    shown = page.locator("main").text_content()
    assert "/s" not in shown, "a job that is over has no rates"
    assert "busy" not in shown
    assert page.locator("tbody a").count() == 0, "its slots are gone"

    page.keyboard.press("2")
    page.get_by_role("heading", name="History").wait_for()
    assert page.get_by_text("IN_PROGRESS").count() == 0
    page.keyboard.press("4")
    last = page.locator("tbody tr").first
    last.get_by_text("CANCELED").wait_for()
    assert last.locator("td").last.inner_text() == "-", "the job stays in its last state"

    opened(page, "")
    line = page.get_by_role("row").filter(has_text=str(handle.job_id))
    line.wait_for()
    assert line.locator("td").nth(4).inner_text().isdigit(), "of its tasks, none run: only their number is shown"


def test_the_state_of_a_job_that_is_over_is_not_offered_for_look_ups(page, serve):
    handle = serve()
    opened(page, f"jobs/{handle.job_id}/state")
    page.get_by_role("button", name="Look up").wait_for()
    handle.cancel()
    page.get_by_text("The job has ended. State can be looked up only while a job runs.").wait_for()


def test_a_missing_job_is_said_and_breadcrumbs_and_title_do_not_name_the_page_before(page, run):
    handle = run()
    opened(page, "slots")
    page.get_by_role("row", name="slot 1").wait_for()
    opened(page, "jobs/0000/graph")
    page.get_by_role("alert").get_by_text("there is no job '0000'").wait_for()
    assert page.get_by_role("navigation", name="Breadcrumbs").inner_text() == "Jobs / Not found"
    assert page.title() == "Not found · Jobs · Ekorn"
    assert page.get_by_role("link", name="Jobs", exact=True).first.get_attribute("aria-current") == "page"
    page.get_by_role("link", name="All jobs").click()
    page.get_by_role("link", name="endless").click()
    page.locator(".vertex").first.wait_for()
    assert str(handle.job_id) in page.url


def test_a_job_without_checkpoints_says_which_option_turns_them_on(page, run):
    handle = run()
    opened(page, f"jobs/{handle.job_id}/checkpoints")
    page.get_by_text("because execution.checkpointing.interval is not set").wait_for()


def test_accumulators_and_settings_are_listed(page, run):
    handle = run(function=Counting())
    opened(page, f"jobs/{handle.job_id}/accumulators")
    page.get_by_role("row", name="numbers seen LongCounter").wait_for()
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, f"jobs/{handle.job_id}/configuration")
    key = page.get_by_role("cell", name="parallelism.default", exact=True).or_(
        page.get_by_role("cell", name="job-parallelism", exact=True)
    )
    key.first.wait_for()
    assert key.first.locator("wbr").count() == 1, "a name breaks behind its dots and hyphens"
    broken = "all => all.filter((each) => each.scrollWidth > each.clientWidth + 1).length"
    assert page.locator("td.key").evaluate_all(broken) == 0


FOCUS = """() => {
  const style = getComputedStyle(document.activeElement);
  return [document.activeElement.getAttribute("class") ?? "", style.outlineStyle, style.outlineWidth];
}"""
# Becomes true when the page has replaced the element that has the focus now.
REPLACED = """() => {
  window.focusedBefore ??= document.activeElement;
  return !window.focusedBefore.isConnected;
}"""


def test_vertices_and_rows_are_chosen_by_keyboard_and_show_that_they_have_the_focus(page, run, tmp_path):
    handle = run(tmp_path)
    opened(page, f"jobs/{handle.job_id}/graph")
    page.locator(".vertex").nth(1).wait_for()
    page.get_by_role("link", name="Logs").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    name, style, width = page.evaluate(FOCUS)
    assert (name, style, width) == ("vertex", "solid", "2px"), "the second vertex, which is not the chosen one"
    page.wait_for_function(REPLACED)
    assert page.evaluate(FOCUS) == ["vertex", "solid", "2px"], "the focus outlives a refresh of the page"
    page.keyboard.press("Space")
    page.get_by_role("heading", name="most").wait_for()

    handle.cancel()  # so that no checkpoint is added to the list
    page.locator("h1 + .badge", has_text="CANCELED").wait_for()
    page.keyboard.press("2")
    page.get_by_role("heading", name="History").wait_for()
    page.locator("tbody tr").first.focus()
    number = page.evaluate("document.activeElement.cells[0].textContent")
    page.keyboard.press("Space")
    page.get_by_role("heading", name=f"Checkpoint {number}", exact=True).wait_for()


def test_the_newest_checkpoints_are_shown_and_all_on_demand(page, run, tmp_path):
    handle = run(tmp_path)
    opened(page, f"jobs/{handle.job_id}/checkpoints")
    page.get_by_role("button", name="Show all").click()  # there are more than ten
    page.get_by_role("button", name="Show the newest 10").wait_for()
    assert page.locator("tbody tr").count() > 10
    page.get_by_role("button", name="Show the newest 10").click()
    page.get_by_role("button", name="Show all").wait_for()
    assert page.locator("tbody tr").count() == 10


def test_a_job_of_which_nothing_was_measured_says_so(page, run):
    handle = run()

    def without_figures(route):
        empty = {"timestamps": [], "series": []} if "/vertices/" in route.request.url else {"points": []}
        route.fulfill(json=empty)

    page.route("**/metric-history?*", without_figures)
    opened(page, f"jobs/{handle.job_id}/metrics")
    page.get_by_text("Nothing has been measured yet.").wait_for()
    handle.cancel()
    page.get_by_text("The job ended before anything was measured.").wait_for()


WIDER_THAN_ITS_FRAME = """async () => {
  const { flameGraph } = await import("./flame_graph.js");
  const leaf = (name) => ({ name, value: 1, children: [] });
  const children = ["a", "b", "c", "d", "e"].map((letter) => leaf(letter.repeat(200)));
  const root = { name: "root", value: 5, children };
  const graph = flameGraph(root, [], () => {}, 1000);
  document.querySelector("main").replaceChildren(graph);
  const width = (rect) => rect.getBBox().width;
  const widths = (frame) => [frame.querySelector("text").getComputedTextLength(), width(frame.querySelector("rect"))];
  const frames = [...graph.querySelectorAll(".flame")].map(widths);
  return [frames.length, frames.filter(([text, rect]) => text + 4 > rect).length];
}"""


def test_the_names_in_a_flame_graph_end_with_their_frames(page):
    page.get_by_role("heading", name="Jobs").wait_for()
    assert page.evaluate(WIDER_THAN_ITS_FRAME) == [6, 0]
