"""What is deleted of checkpoints that did not complete."""

import pytest

from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.recovery.job_recovery import JobRecovery
from tests.checkpoint.checkpoint_values import all_files, opened
from tests.driver.savepoint_programs import environment

FILES = ("chk-3/3-a", "shared/3-b", "shared/3-c")


@pytest.mark.parametrize(("whole", "left"), [(False, ["chk-3/3-a", "shared/3-c"]), (True, ["shared/3-c"])])
def test_the_files_of_a_late_answer_are_deleted_and_with_the_checkpoint_its_directory(tmp_path, whole, left):
    directory, settings = opened(), environment(tmp_path).job_settings("job")
    for path in FILES:
        directory.files.write(path, b"state")
    retained = RetainedCheckpoints(settings, directory, JobRecovery(settings, directory))
    retained.discard(3, ("shared/3-b",), whole=whole)
    found = [path for path in all_files(directory.files) if path.startswith(("chk-", "shared/"))]
    assert sorted(path for path in found if "_discarded" not in path) == left
