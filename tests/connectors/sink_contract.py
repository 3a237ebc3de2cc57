"""The kit of sinks, with kills inside the sinks of ekorn: at their fault points."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from ekorn import faults
from ekorn.testing.kits import SinkCase, SinkJob, SinkKit
from ekorn.testing.kits.sinks import STORY


class SinkContract(SinkKit):
    """Tests of one sink; a subclass has a fixture `make_case`."""

    # Fault points inside the sink (`ekorn.faults`); the contract kills it there too.
    fault_points: ClassVar[tuple[str, ...]] = ()

    def test_a_kill_at_every_fault_point_loses_and_repeats_nothing(
        self, make_case: Callable[[], SinkCase], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for point in type(self).fault_points:
            met = 0
            for count in range(1, 100):
                case = make_case()
                faults.reset_counts()
                monkeypatch.setenv("EKORN_FAULT", f"{point}:*:{count}:error")
                job = SinkJob(case.sink(), 2)
                try:
                    self.play(job, case, STORY)
                    job.finish()
                except OSError as error:
                    assert "was set" in str(error)
                    met += 1
                    monkeypatch.delenv("EKORN_FAULT")
                    job.crash(3)
                    self.play(job, case, STORY)
                    job.finish()
                    self.compare(case, job, f"after a kill at {point}")
                else:
                    monkeypatch.delenv("EKORN_FAULT")
                    break
            assert met, f"the sink never passes the point {point!r}"
