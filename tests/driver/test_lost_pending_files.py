"""A pending file of a sink that is lost ends the job at once, and the checkpoints of the job stay."""

from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.common.serialization import Encoder
from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from ekorn.errors import JobExecutionError
from ekorn.functions.state.checkpointed import CheckpointListener
from ekorn.testing import on_local_engine
from tests.connectors.writing import hidden_files, visible_lines


class Loses(MapFunction, CheckpointListener):
    """Moves the pending files away, once, before the sink commits them: the end of a chain is notified first."""

    def __init__(self, folder):
        self._out, self._lost = folder / "out", folder / "lost"

    def map(self, value):
        return value

    def notify_checkpoint_complete(self, checkpoint_id):
        found = hidden_files(self._out)
        if found and not self._lost.exists():
            self._lost.mkdir()
            for each in found:
                each.rename(self._lost / each.name)


def run(folder, *, resume=False):
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.checkpointing.dir": f"{folder}/checkpoints"})
    )
    env.set_parallelism(1).enable_checkpointing(10)
    if resume:
        env.resume()
    rows = FileSink.for_row_format(f"{folder}/out", Encoder.simple_string_encoder())
    rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = rows.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    lines = env.from_collection(["a", "b"])
    lines.sink_to(sink).uid("lines")
    lines.map(Loses(folder)).uid("losing").print()
    with on_local_engine():
        return env.execute("lines")


def test_a_lost_pending_file_ends_the_job_at_once_and_its_checkpoints_stay(tmp_path: Path) -> None:
    with pytest.raises(JobExecutionError, match=r"cannot commit .* The job is not restarted") as raised:
        run(tmp_path)
    (lost,) = (tmp_path / "lost").iterdir()
    assert raised.value.restarts == 0  # the default strategy would restart for ever
    assert f"the pending file '{tmp_path}/out/{lost.name}' is gone" in str(raised.value)
    assert list(tmp_path.glob("checkpoints/*/chk-*/_metadata"))

    lost.rename(tmp_path / "out" / lost.name)  # as the message says
    run(tmp_path, resume=True)
    assert visible_lines(tmp_path / "out") == ["a", "b"]
