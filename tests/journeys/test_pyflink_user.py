"""A PyFlink user's first hour: programs run as they are, and moved by changing their imports, with PyFlink's output."""

from __future__ import annotations

import re
from pathlib import Path

from tests.journeys.users import run, user_python
from tests.pyflink.runs import HERE, OURS, Run, lines_of, recorded

SCRIPTS = HERE / "scripts"
MOVED = ["word_count.py", "balances.py", "reminders.py", "rules.py", "lookups.py"]

# One process and one Spark for all programs: `python script.py` for each would start Spark ten times.
BOTH_WAYS = """
import sys
from ekorn.cli.run_command import run_program
from ekorn.common import Configuration
from ekorn.pyflink import run_script

moved, as_it_is, *programs = sys.argv[1:]
for program in programs:
    print("=== moved", program, flush=True)
    assert run_program(f"{moved}/{program}", [], Configuration()) == 0
for program in programs:
    print("=== as it is", program, flush=True)
    run_script(f"{as_it_is}/{program}")
"""


def test_five_programs_print_what_pyflink_printed_moved_and_as_they_are(tmp_path: Path) -> None:
    for program in MOVED:
        text = (SCRIPTS / program).read_text()
        changed, imports = re.subn(r"^(from|import) pyflink\b", r"\1 ekorn", text, flags=re.MULTILINE)
        assert imports and "pyflink" not in changed
        (tmp_path / program).write_text(changed)
    command = [user_python(tmp_path / "venv"), "-c", BOTH_WAYS, str(tmp_path), str(SCRIPTS), *MOVED]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    found = dict(re.findall(r"^=== (.*)\n((?:(?!===).*\n)*)", done.stdout, re.MULTILINE))
    printed = {Run(program): recorded()[Run(program).name] for program in MOVED}
    assert set(printed) <= set(OURS)
    for one, lines in printed.items():
        assert lines_of(found[f"moved {one.script}"]) == lines
        assert lines_of(found[f"as it is {one.script}"]) == lines
