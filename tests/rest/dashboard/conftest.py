"""A real Chromium, and a tab of it that shows the page of a driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import chromium, tab_of
from tests.rest.conftest import Caller


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Any, caller: Caller) -> Iterator[Any]:
    assert caller.token is not None
    with tab_of(browser, f"http://127.0.0.1:{caller.port}/", caller.token) as tab:
        yield tab
