"""Random lives of one job, with savepoints, checkpoints, crashes and changes of parallelism: every record once."""

import pytest

from tests.driver.lives import Lives
from tests.storage.power_loss import Disk

NOTHING = {"too many": [], "missing": []}


@pytest.mark.parametrize("seed", range(6))
def test_through_all_its_lives_a_job_writes_every_record_once(tmp_path, seed):
    lives = Lives(seed, tmp_path)
    lives.run()
    assert lives.outcome() == {"till": NOTHING, "files": NOTHING}, "\n".join(lives.story)


@pytest.mark.parametrize("names", ["synced", "present"])
@pytest.mark.parametrize("seed", [102, 105, 229])
def test_when_the_power_fails_with_the_driver_every_record_is_still_written_once(tmp_path, monkeypatch, seed, names):
    disk, lost = Disk(tmp_path, monkeypatch), []

    def lose_power():
        disk.fail(names=names)
        lost.append(names)

    lives = Lives(seed, tmp_path, when_dead=lose_power)
    try:
        lives.run()
    finally:
        disk.close()
    assert lives.outcome() == {"till": NOTHING, "files": NOTHING}, "\n".join(lives.story)
    assert lost, f"seed {seed} loses no power; choose another"
