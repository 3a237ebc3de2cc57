"""Random lives of one job, with savepoints, checkpoints, crashes and changes of parallelism: every record once."""

import pytest

from tests.driver.lives import Lives

NOTHING = {"too many": [], "missing": []}


@pytest.mark.parametrize("seed", range(6))
def test_through_all_its_lives_a_job_writes_every_record_once(tmp_path, seed):
    lives = Lives(seed, tmp_path)
    lives.run()
    assert lives.outcome() == {"till": NOTHING, "files": NOTHING}, "\n".join(lives.story)
