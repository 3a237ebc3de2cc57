"""Commands and paths that pages show in their general form, as text, exist with the options that they show."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ekorn.cli.main import main
from tests.manual import rest_page
from tests.manual.blocks import DOCS, ROOT, blocks_of

PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def shown(beginning: str) -> list[str]:
    """Return the lines of all text blocks that begin so, without what stands behind them in another column."""
    texts = [block.text for page in PAGES for block in blocks_of(page) if block.language == "text"]
    lines = [re.split(r" {3,}| +#", line)[0] for text in texts for line in text.splitlines()]
    return [line for line in lines if re.match(beginning, line)]


def alternatives(line: str) -> Iterator[list[str]]:
    """Yield each command of a line: `ekorn state show | get` has two. A choice of options is in brackets."""
    first, *others = re.split(r" \| (?![^\[]*\])", line)
    words = first.split()
    yield words
    for other in others:
        yield [*words[:2], *other.split()]


def commands_of_ekorn() -> list[list[str]]:
    return [words for line in shown("ekorn ") for words in alternatives(line)]


@pytest.mark.parametrize("words", commands_of_ekorn(), ids=" ".join)
def test_a_command_has_the_options_that_are_shown(words, capsys):
    grouped = words[1] in ("savepoint", "state", "service")
    with pytest.raises(SystemExit) as ended:
        main([*words[1 : 3 if grouped else 2], "--help"])
    assert ended.value.code == 0
    described = capsys.readouterr().out
    known = set(OPTION.findall(described))
    assert not [option for option in OPTION.findall(" ".join(words)) if option not in known], described


def test_targets_and_programs_of_the_repository_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [line.split()[1] for line in shown("make ")]
    assert len(targets) >= 5
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
    programs = [line.split()[2:] for line in shown("python -m ")]
    assert programs
    for module in {words[0] for words in programs}:
        asked = subprocess.run(
            [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert asked.returncode == 0, asked.stderr
        options = OPTION.findall(" ".join(" ".join(words[1:]) for words in programs if words[0] == module))
        assert not [option for option in options if option not in OPTION.findall(asked.stdout)]


def test_paths_are_those_of_the_servers():
    known = [
        (method, re.sub(r":[\w-]+|\{[\w-]+\}", "[^/]+", path))
        for method, path in re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", rest_page.page(), re.MULTILINE)
    ]
    paths = [line.split()[:2] for line in shown("GET |POST ")]
    assert len(paths) >= 3
    wrong = [
        (method, path)
        for method, path in paths
        if not any(method == m and re.fullmatch(p, path.partition("?")[0]) for m, p in known)
    ]
    assert not wrong


def test_the_broker_of_the_tutorial_is_that_of_the_tests():
    page = (DOCS / "tutorial" / "8-fraud_on_kafka.md").read_text(encoding="utf-8")
    (version,) = re.findall(r"apache/kafka:([\d.]+)", page)
    jars = (ROOT / "src" / "ekorn" / "testing" / "kafka" / "jars.txt").read_text(encoding="utf-8")
    assert f"/kafka-server-{version}.jar" in jars
    assert f"Kafka {version} listens on" in page
