"""The site's search runs in pages that are opened as files, where browsers start no worker."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.browser import WAIT_MS, chromium
from tests.manual.blocks import DOCS, ROOT

pytestmark = pytest.mark.heavy  # it starts a browser

WORKER = """
addEventListener("message", async (event) => {
  if (event.data === "import") await importScripts(new URL("more.js", WHERE));
  postMessage(event.data === "import" ? MORE : event.data.toUpperCase());
});
"""
PAGE = """<!doctype html><body><script src="{script}"></script><script>
const answers = [];
try {{
  const worker = new Worker(new URL("worker.js", location));
  worker.addEventListener("message", (event) => answers.push(event.data));
  worker.postMessage("acorn");  // before the worker has started
  worker.postMessage("import");
}} catch (error) {{ answers.push("refused") }}
</script></body>"""


def answers(folder: Path, script: Path, count: int) -> list[str]:
    """Open a page with a worker as a file; return the first answers of the worker."""
    (folder / "worker.js").write_text(f"const WHERE = {str(folder.as_uri() + '/')!r};\n{WORKER}")
    (folder / "more.js").write_text('self.MORE = "imported";')
    (folder / "page.html").write_text(PAGE.format(script=script.as_uri()))
    with chromium() as browser:
        tab = browser.new_page()
        tab.goto((folder / "page.html").as_uri())
        tab.wait_for_function(f"answers.length >= {count}", timeout=WAIT_MS)
        return sorted(tab.evaluate("answers"))


def test_code_of_a_worker_runs_in_a_page_that_is_a_file(tmp_path: Path) -> None:
    assert answers(tmp_path, DOCS / "iframe-worker.js", 2) == ["ACORN", "imported"]


def test_the_site_has_an_index_that_pages_opened_as_files_can_load_and_the_script_that_runs_the_search() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert "offline" in site["plugins"]
    assert site["use_directory_urls"] is False
    assert site["extra"]["polyfills"] == ["iframe-worker.js"]
