"""What Spark's Java process writes to standard error reaches the driver's, except for one line."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

PROGRAM = """
import os, subprocess, sys, time
from tamias.engine.spark.driver_side.filtered_errors import errors_without_java_s_warning

child = '''
import os, sys, time
write = lambda text: os.write(2, text.encode())
write("first\\\\nWARNING: Using incub")
time.sleep(0.1)
write("ator modules: jdk.incubator.vector\\\\nWARNING: another")
time.sleep(0.1)
write(" one\\\\n")
sys.stdin.read()
write("WARNING: Using incubator modules: jdk.incubator.vector\\\\nlater\\\\nno end of line")
'''
with errors_without_java_s_warning():
    process = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE)
time.sleep(0.5)
print("the driver's own", file=sys.stderr, flush=True)
process.communicate()
time.sleep(0.3)
"""


def test_everything_but_one_line_passes_through_in_order():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)}
    )
    assert done.stderr == "first\nWARNING: another one\nthe driver's own\nlater\nno end of line"
