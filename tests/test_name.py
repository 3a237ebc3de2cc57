"""The name of the project: the old one is nowhere left, and every command that installs it names the distribution."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLD = "tam" + "ias"
OLD_MAGIC = [("TAM" + rest).encode() for rest in ("K", "STATE", "OPST", "FLGT")]
# What other lines of `pip install` may name: the clone itself, options, and packages that are not ours.
NOT_OURS = ("apache-flink", "bytewax", "setuptools", "pip", "wheel")

COMMAND = re.compile(r"""\bpip install ((?:--?[\w-]+ (?:\S+\.txt )?)*(?:'[^']*'|"[^"]*"|[\w<>./\[\],-]+))""")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def test_the_old_name_is_in_no_file_and_in_no_file_name():
    files = tracked()
    assert len(files) > 1000
    names = [str(path.relative_to(ROOT)) for path in files]
    assert [name for name in names if OLD in name.lower()] == []
    assert [name for name, path in zip(names, files, strict=True) if OLD.encode() in path.read_bytes().lower()] == []


def test_the_old_magic_bytes_are_in_no_stored_file():
    stored = [path for path in tracked() if "golden" in path.parts]
    assert stored
    assert [path for path in stored for magic in OLD_MAGIC if magic in path.read_bytes()] == []


def test_every_command_that_installs_names_the_distribution_and_an_extra_that_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "ekorn"
    wrong, found = [], 0
    for path in tracked():
        if path.suffix not in (".py", ".md", ".ipynb", ".toml", ".txt") or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").replace("\\", "").splitlines(), 1):
            for what in COMMAND.findall(line):
                found += 1
                wrong += [f"{path.relative_to(ROOT)}:{number}: {what}"] if not _is_right(what, project) else []
    assert found > 30
    assert not wrong, "\n".join(wrong)


def _is_right(what: str, project: dict) -> bool:
    requirement = what.split(" ", 1)[-1].rsplit(maxsplit=1)[-1] if what.startswith("-") else what
    name, _, extras = requirement.strip("\"'").rstrip("]").partition("[")
    if not extras:
        return name in (".", "", "ekorn", "pyspark", *NOT_OURS)
    quoted = requirement.startswith('"')  # zsh expands brackets, and cmd.exe knows no other quotes
    known = all(extra in project["optional-dependencies"] for extra in extras.split(","))
    return quoted and known and name in ("ekorn", ".", "./ekorn", "<path to the clone>")
