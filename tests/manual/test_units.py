"""The units of systemd and the image of the manual start commands that exist, with options that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex

import pytest

from ekorn.cli.main import main
from tests.manual.blocks import DOCS, blocks_of

PAGE = DOCS / "guides" / "systemd_and_docker.md"


def block(title: str) -> str:
    (found,) = (block.text for block in blocks_of(PAGE) if block.title == title)
    return found


def options_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Return the options that the help of a command has."""
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", capsys.readouterr().out))


@pytest.mark.parametrize("title", ["ekorn.service", "fraud.service"])
def test_a_unit_starts_a_command_with_options_that_exist(title, capsys):
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(block(title))
    assert unit.sections() == ["Unit", "Service", "Install"]
    binary, *words = shlex.split(unit["Service"]["ExecStart"])
    assert binary == "/opt/ekorn/bin/ekorn"
    command = words[:2] if words[0] == "service" else words[:1]
    given = {word for word in words if word.startswith("-")}
    assert given
    assert given <= options_of(command, capsys)


def test_the_unit_of_the_service_leaves_the_jobs_alone():
    assert "KillMode=process\n" in block("ekorn.service")
    assert "KillMode" not in block("fraud.service")


def test_the_image_starts_the_service_and_installs_extras_that_exist(capsys):
    lines = block("Dockerfile").splitlines()
    (entry,) = (json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT"))
    assert entry[:3] == ["ekorn", "service", "start"]
    assert set(entry[3:]) <= options_of(entry[1:3], capsys)
