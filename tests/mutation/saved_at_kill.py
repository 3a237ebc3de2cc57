"""A plugin of coverage, for the run that measures: saves what was measured before a process kills its own group.

Slots and the drivers of leaders end so, and nothing else would be known of what they ran.
"""

from __future__ import annotations

import os
from typing import Any

from coverage import Coverage


def coverage_init(_registry: Any, _options: Any) -> None:
    """Save first wherever this process ends itself. Coverage calls it."""
    killpg, kill = os.killpg, os.kill

    def save_if(ends: bool) -> None:
        measured = Coverage.current()
        if ends and measured is not None:
            measured.save()

    def killing_group(group: int, number: int) -> None:
        save_if(number != 0 and group in (0, os.getpgrp()))
        killpg(group, number)

    def killing(process: int, number: int) -> None:
        save_if(number != 0 and process == os.getpid())
        kill(process, number)

    os.killpg, os.kill = killing_group, killing
