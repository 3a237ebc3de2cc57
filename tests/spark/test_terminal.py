"""A job on Spark at a terminal: the first line names Spark's log, and Ctrl-C leaves one line of it all."""

from __future__ import annotations

import re
from pathlib import Path

from tests.program.terminal import screen, written_to_terminal

PROGRAM = """
import os
env.enable_checkpointing(100).get_checkpoint_config().set_checkpoint_storage_dir({directory!r})
numbers(10**9, 100_000).key_by(lambda n: n % 7).map(lambda n: os.getpid()).add_sink(Nowhere())
env.execute("numbers")
"""


def test_ctrl_c_leaves_one_line_below_the_first_which_names_spark_s_log(tmp_path: Path) -> None:
    program = PROGRAM.format(directory=str(tmp_path))
    written = written_to_terminal(program, columns=300, interrupt_at=", checkpoint 3", spark=True)
    start, *rest = screen(written)
    assert re.fullmatch(
        r"job 'numbers' \([0-9a-f]{32}\) starts on embedded Spark local\[\*\], parallelism 1, log /.*/spark\.log", start
    )
    assert len(rest) == 1, written
    assert re.fullmatch(
        rf"ekorn: Ctrl-C ended job 'numbers'; to resume it: ekorn run --resume SCRIPT, or start from {tmp_path}/.*",
        rest[0],
    )
