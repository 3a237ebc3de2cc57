"""A real Chromium, without a window, and tabs of it that show a server's page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WAIT_MS = 60_000


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser; end it with the block."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    assert found is not None, "Debian's package chromium is missing: `make browser` installs it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def tab_of(browser: Any, address: str, token: str) -> Iterator[Any]:
    """Open a tab that has given the token. An error of a script fails the test."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    tab = context.new_page()
    tab.set_default_timeout(WAIT_MS)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(address)
    tab.get_by_label("The token of this server").fill(token)
    tab.get_by_role("button", name="Open").click()
    yield tab
    context.close()
    assert errors == []
