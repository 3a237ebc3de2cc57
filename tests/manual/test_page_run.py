"""A page that is wrong fails: what the other tests of this folder rely on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ekorn.errors import ConfigurationError
from tests.manual.blocks import blocks_in
from tests.manual.page_run import PageRun, check_settings

RIGHT = """
```python
print("a", 17)
```

```text title="prints"
a ...
```

```python title="beside.py"
NAME = "from a file"
```

```console
$ cat beside.py
NAME = ...
$ python -c 'import beside; print(beside.NAME)'
from a file
```
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a text as a page, in a folder of its own."""

    def run_page(text: str) -> int:
        folder = tmp_path / "folder"
        folder.mkdir()
        page = tmp_path / "page.md"
        page.write_text(text)
        monkeypatch.chdir(folder)
        return PageRun(page, folder).run()

    return run_page


def test_a_page_that_is_right_runs(run):
    assert run(RIGHT) == 4


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("a ...", "b ..."),
        ('print("a", 17)', "print(name)"),
        ("NAME = ...", "TITLE = ..."),
        ("$ cat beside.py", "$ cat missing.py"),
    ],
)
def test_a_page_that_shows_what_is_not_so_fails(run, right, wrong):
    with pytest.raises((AssertionError, NameError)):
        run(RIGHT.replace(right, wrong))


def test_a_block_is_left_out_for_a_reason_that_the_page_gives():
    below = "Not run by the tests: it needs a cluster.\n\n```console\n$ false\n```\n"
    (block,) = blocks_in(below)
    assert block.not_run == "it needs a cluster"
    (block,) = blocks_in(below.replace("Not run by the tests: it", "It"))
    assert not block.not_run


def test_a_block_is_left_to_the_test_that_a_comment_names():
    below = "Text.\n\n<!-- Run by tests/manual/test_readme.py -->\n\n```console\n$ false\n```\n"
    (block,) = blocks_in(below)
    assert block.run_by == "tests/manual/test_readme.py"
    assert not block.not_run


@pytest.mark.parametrize(
    "text", ["parallelism.defualt: 2", "state.backend.async: tape", "rest.port: none", "high-availability.type: tape"]
)
def test_a_setting_that_does_not_exist_fails(run, text):
    assert run("```yaml\nparallelism.default: 2\nrest.port: 8081\n```\n") == 1
    with pytest.raises(ConfigurationError):
        check_settings(text, "page")
