"""Runs the blocks of one page, in their order, in a folder of their own."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from ekorn.config.configuration import Configuration
from ekorn.config.options.listing import all_options, service_keys
from ekorn.config.settings.service_settings import service_settings
from ekorn.config.unread_keys import refuse_unread_keys
from ekorn.config.yaml_text import parse_configuration
from tests.manual.blocks import DOCS, ROOT, Block, blocks_of

_SETTING = re.compile(r"[\w-]+(\.[\w-]+)+:")
HERE = Path(__file__).resolve().parent
SECONDS_PER_COMMAND = 200


class PageRun:
    """One page while it runs.

    Args:
        page: The page.
        folder: Where its files are written and its commands run.
        replaced: Addresses on the page, and those of the services that the tests start.
        on_spark: Whether programs that commands start run on Spark. Else they run in their own process, without a JVM.
    """

    def __init__(self, page: Path, folder: Path, replaced: dict[str, str] | None = None, *, on_spark: bool = False):
        self.page = page
        self.folder = folder
        self.replaced = replaced or {}
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""
        self._groups: list[int] = []
        self._path = [str(ROOT / "src"), *([] if on_spark else [str(HERE / "in_process")])]

    def run(self) -> int:
        """Run every block; return how many ran."""
        (self.folder / "examples").symlink_to(ROOT / "examples")  # a page may speak of a clone of the repository
        prepare = HERE / "setups" / os.path.relpath(self.page.with_suffix(".py"), DOCS)
        if prepare.exists():  # the names that the page's fragments take for granted
            exec(compile(prepare.read_text(encoding="utf-8"), str(prepare), "exec"), self.names)
        runs = [block for block in blocks_of(self.page) if not block.not_run and not block.run_by]
        try:
            for block in runs:
                self._run(block)
        finally:
            self._end_what_is_left()
        return len(runs)

    def _run(self, block: Block) -> None:
        where = f"{os.path.relpath(self.page, ROOT)}:{block.line}"
        text = block.text
        for shown, real in self.replaced.items():
            text = text.replace(shown, real)
        match block.language:
            case _ if block.title.startswith("examples/"):  # a program of the repository, which has tests of its own
                assert block.text == (ROOT / block.title).read_text(encoding="utf-8"), (
                    f"{where} is not {block.title}: run python -m tests.manual.gallery_pages"
                )
            case _ if block.is_file:
                (self.folder / block.title).write_text(text, encoding="utf-8")
            case "python" if text.startswith(">>>"):
                self._doctest(text, where)
            case "python":
                source = "\n" * block.line + text  # an error names the line of the page
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(source, str(self.page), "exec"), self.names)
                self.printed = out.getvalue()
            case "console":
                self._commands(text, where)
            case "text" if block.title == "prints":
                assert same(text, self.printed), (
                    f"{where} shows\n{text}\nbut the block before it printed\n{self.printed}"
                )
            case "yaml":
                check_settings(text, where)
            case "json":
                json.loads(text)
            case "toml":
                tomllib.loads(text)

    def _doctest(self, text: str, where: str) -> None:
        test = doctest.DocTestParser().get_doctest(text, self.names, where, str(self.page), 0)
        out = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=out.write, clear_globs=False)
        self.names.update(test.globs)
        assert not runner.failures, out.getvalue()

    def _commands(self, text: str, where: str) -> None:
        for command, shown in commands_of(text):
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self._environment(),
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            out, err = process.communicate(timeout=SECONDS_PER_COMMAND)
            said = f"{where}: {command}\n{out}\n{err}"
            assert process.returncode == 0, said
            assert not shown or same(shown, out + err), f"the page shows\n{shown}\n{said}"
            self.printed = out

    def _end_what_is_left(self) -> None:
        """End the programs that commands have left in the background."""
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)

    def _environment(self) -> dict[str, str]:
        variables = {name: value for name, value in os.environ.items() if name != "EKORN_CONF_DIR"}
        variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables["PATH"]])
        variables["PYTHONPATH"] = os.pathsep.join(self._path)
        variables["PYTHONUNBUFFERED"] = "1"
        return variables


def commands_of(text: str) -> list[tuple[str, str]]:
    """Return each command of a console block with the output that the page shows."""
    commands: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            commands.append((line[2:].rstrip("\n"), ""))
        elif commands and commands[-1][0].endswith("\\"):
            commands[-1] = (f"{commands[-1][0]}\n{line.rstrip()}", "")
        elif commands:
            commands[-1] = (commands[-1][0], commands[-1][1] + line)
        else:
            raise AssertionError(f"output before the first command: {line!r}")
    return commands


def check_settings(text: str, where: str) -> None:
    """Read a block of YAML; if it has settings of Ekorn, each key must exist and each value must be one of its."""
    assert yaml.safe_load(text), where
    if not _SETTING.match(text):  # the configuration of another program
        return
    settings = parse_configuration(text, where=where)
    of_service = service_keys()
    of_job = {key: value for key, value in settings.to_dict().items() if key not in of_service}
    refuse_unread_keys(Configuration.from_dict(of_job))
    for option in all_options():
        option.read(settings)
    if len(of_job) < len(settings.to_dict()):
        service_settings(settings)


def same(shown: str, printed: str) -> bool:
    """Return whether a command printed what the page shows; `...` stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(shown.strip() + "\n", printed.strip() + "\n", flags)
