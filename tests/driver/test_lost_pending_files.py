"""A pending file of a sink that is lost ends the job at once, and the checkpoints of the job stay."""

from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.common.serialization import Encoder
from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from ekorn.errors import JobExecutionError
from ekorn.functions.state.checkpointed import CheckpointListener
from ekorn.testing import on_local_engine
from tests.connectors.writing import hidden_files, visible_files, visible_lines
from tests.live_jobs import Held, generated


class Loses(MapFunction, CheckpointListener):
    """Moves the pending files away, once, before the sink commits them: the end of a chain is notified first."""

    def __init__(self, folder, held):
        self._out, self._lost, self._held = folder / "out", folder / "lost", held

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        found = hidden_files(self._out)
        if found and not self._lost.exists():
            self._lost.mkdir()
            for each in found:
                each.rename(self._lost / each.name)
            self._held.let_go()


def run(folder, *, resume=False, merged=False):
    """Write the numbers 0 and 1. The first one is lost; the second is read after that."""
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.checkpointing.dir": f"{folder}/checkpoints"})
    )
    env.set_parallelism(1).enable_checkpointing(10)
    if resume:
        env.resume()
    rows = FileSink.for_row_format(f"{folder}/out", Encoder.simple_string_encoder())
    rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    if merged:
        at_the_end = FileCompactStrategy.builder().set_size_threshold(1000).build()
        rows.enable_compact(at_the_end, FileCompactor.concat_file_compactor())
    sink = rows.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    held = Held(folder, 1)
    lines = generated(env, 2, held)
    lines.sink_to(sink).uid("lines")
    lines.map(Loses(folder, held)).uid("losing").print()
    with on_local_engine():
        return env.execute("lines")


@pytest.mark.parametrize("merged", [False, True])
def test_a_lost_pending_file_ends_the_job_at_once_and_its_checkpoints_stay(tmp_path: Path, merged: bool) -> None:
    with pytest.raises(JobExecutionError, match=r"cannot commit .* The job is not restarted") as raised:
        run(tmp_path, merged=merged)
    (lost,) = (tmp_path / "lost").iterdir()
    assert raised.value.restarts == 0  # the default strategy would restart for ever
    assert f"the pending file '{tmp_path}/out/{lost.name}' is gone" in str(raised.value)
    assert list(tmp_path.glob("checkpoints/*/chk-*/_metadata"))

    with pytest.raises(JobExecutionError):  # too early: the checkpoints stay again
        run(tmp_path, resume=True, merged=merged)
    lost.rename(tmp_path / "out" / lost.name)  # as the message says
    run(tmp_path, resume=True, merged=merged)
    assert sorted(visible_lines(tmp_path / "out")) == ["0", "1"]
    assert len(visible_files(tmp_path / "out")) == (1 if merged else 2)
