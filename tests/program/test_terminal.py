"""What a person at a terminal sees: the lines about a job mix neither with prints nor with records."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import pytest

from tests.program.endless import heed_interrupts
from tests.program.terminal import PRELUDE, SOURCE, screen, written_to_terminal

pytestmark = pytest.mark.long

START = re.compile(r"job 'numbers' \([0-9a-f]{32}\) starts on this process, without Spark, parallelism 1")
END = re.compile(r"job 'numbers' finished after [0-9.]+ s: [0-9,]+ records read")


def test_the_line_of_progress_is_written_over_and_gone_when_execute_returns():
    written = written_to_terminal("numbers(2500).add_sink(Nowhere())\nenv.execute('numbers')\nprint('after it')")
    assert "\r\x1b[Krunning, " in written
    start, end, after = screen(written)
    assert START.fullmatch(start) and END.fullmatch(end) and after == "after it"


def test_a_line_of_progress_is_shorter_than_a_narrow_terminal():
    written = written_to_terminal("numbers(2500).add_sink(Nowhere())\nenv.execute('numbers')", columns=20)
    lines = re.findall(r"\x1b\[K(running[^\r]*)", written)
    assert lines and all(len(line) == 19 for line in lines)


def test_prints_beside_a_job_in_the_background_are_not_mixed_with_lines_about_it(tmp_path):
    printed = tmp_path / "printed"
    written = written_to_terminal(f"""
def last(number):  # comes when everything is printed
    while number == 999 and not os.path.exists({str(printed)!r}):
        time.sleep(0.01)
    return number

numbers(1000).map(last).add_sink(Nowhere())
client = env.execute_async('numbers')
for number in range(15):
    print("tick", end=" ")
    sys.stdout.flush()
    time.sleep(0.1)
    print(number)
open({str(printed)!r}, "w").close()
client.get_job_execution_result().result()
print("after it")
""")
    start, *ticks, end, after = screen(written)
    assert START.fullmatch(start) and ticks == [f"tick {number}" for number in range(15)]
    assert END.fullmatch(end) and after == "after it"


def test_what_is_printed_and_logged_beside_the_line_of_progress_has_lines_of_its_own(tmp_path):
    spoken = tmp_path / "spoken"
    written = written_to_terminal(f"""
import logging, threading
logging.basicConfig(format="log %(message)s")  # holds the stream of standard error from now on

def last(number):  # comes when everything is printed
    while number == 500 and not os.path.exists({str(spoken)!r}):
        time.sleep(0.01)
    return number

def speak():
    while "write" not in sys.stdout.__dict__:  # the line of progress is shown from then on
        time.sleep(0.01)
    for number in range(5):
        print("printed", end=" ")
        sys.stdout.flush()
        time.sleep(0.3)
        print(number)
        logging.warning("%d", number)
        time.sleep(0.6)
    print("is cut", end="")
    open({str(spoken)!r}, "w").close()

threading.Thread(target=speak).start()
numbers(501).map(last).add_sink(Nowhere())
env.execute('numbers')
print("after it", "write" in sys.stdout.__dict__)
""")
    assert written.count("\x1b[Krunning, ") > 1
    spoken = [line for number in range(5) for line in (f"printed {number}", f"log {number}")]
    start, *lines, cut, end, after = screen(written)
    assert START.fullmatch(start) and lines == spoken
    assert cut == "is cut" and END.fullmatch(end) and after == "after it False"


def test_collected_records_are_not_mixed_with_lines_about_the_job():
    written = written_to_terminal("""
with numbers(1500).filter(lambda n: n % 100 == 0).execute_and_collect('numbers') as records:
    for record in records:
        print("record", record)
print("after it")
""")
    start, *records, end, after = screen(written)
    assert START.fullmatch(start) and records == [f"record {number}" for number in range(0, 1500, 100)]
    assert END.fullmatch(end) and after == "after it"


def test_printed_records_are_not_mixed_with_lines_about_the_job():
    written = written_to_terminal("numbers(1500).filter(lambda n: n % 100 == 0).print()\nenv.execute('numbers')")
    start, *records, end = screen(written)
    assert START.fullmatch(start) and records == [str(number) for number in range(0, 1500, 100)]
    assert END.fullmatch(end)


SLOW = """
class Slow:
    def isatty(self):
        return True
    def write(self, text):
        if "finished" in text:
            time.sleep(0.3)
        sys.__stderr__.write(text)
    def flush(self):
        sys.__stderr__.flush()

sys.stderr = Slow()
numbers(10).add_sink(Nowhere())
"""
UNTIL_ITS_END = """
client = env.execute_async('numbers')
while not client.get_job_status().result().is_terminal_state():
    time.sleep(0.01)
"""


@pytest.mark.parametrize("more", ["env.execute('numbers')\nprint('after it', file=sys.stderr)", UNTIL_ITS_END])
def test_the_last_line_comes_before_the_program_goes_on_and_before_it_ends(more):
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + SLOW + more],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PYTHONPATH": str(SOURCE)},
    )
    start, end, *after = done.stderr.splitlines()
    assert START.fullmatch(start) and END.fullmatch(end)
    assert after == (["after it"] if "after it" in more else [])


# ------------------------------------------------------------------------------------------------------- Ctrl-C

ENDLESS = "numbers(10**9).add_sink(Nowhere())\nenv.execute('numbers')"
ENDED = (
    "ekorn: Ctrl-C ended job 'numbers'; it has no checkpoint in a directory, so the next run starts from the beginning"
)


def test_ctrl_c_leaves_one_line_below_the_first():
    start, *rest = screen(written_to_terminal(ENDLESS, interrupt_at="Krunning, "))
    assert START.fullmatch(start)
    assert rest == [ENDED]


def test_ctrl_c_at_python_s_prompt_is_answered_in_one_line_and_the_session_goes_on(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-i", "-q"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - one system call, which takes no lock
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert process.stdin is not None
    script, started = tmp_path / "declared.py", tmp_path / "started"
    opens = f"numbers(10**9).map(lambda n: n < 500 or open({str(started)!r}, 'a').close())"
    script.write_text(PRELUDE + opens + ".add_sink(Nowhere())")
    process.stdin.write(f"exec(open({str(script)!r}).read())\nenv.execute('numbers')\n")
    process.stdin.flush()
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate("print('the session goes on')\n1 / 0\n", timeout=60)
    assert out == "the session goes on\n"
    start, ended, *rest = said.replace(">>> ", "").splitlines()
    assert START.fullmatch(start) and ended == ENDED
    assert rest[0] == "Traceback (most recent call last):" and "ZeroDivisionError: division by zero" in rest
