"""The plan of a program of a service: the program runs up to the start of its first job, in its own process."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ekorn.errors import ConfigurationError
from ekorn.service.jobs.job_process import plan_command
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_submission import Submission, submitted_record

__all__ = ["plan_of_program"]

_PLAN_S = 60.0


def plan_of_program(service: JobService, wanted: Submission) -> dict[str, Any]:
    """Return the plan of a program's first job, in Flink's form.

    Raises:
        ConfigurationError: The program does not come to the start of a job.
    """
    record = submitted_record(wanted, service.clock.now_ms())
    folder = Path(tempfile.mkdtemp(prefix="plan-", dir=service.store.folder))
    try:
        script = service.store.unpack_into(
            record.program, record.script, folder / "program", service.settings.bundle_bytes
        )
        plan = folder / "plan.json"
        done = subprocess.run(
            plan_command(script, record.arguments, record.settings, folder, plan),
            cwd=script.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PLAN_S,
            check=False,
        )
        if plan.is_file():
            found: dict[str, Any] = json.loads(plan.read_bytes())
            return found
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-2000:]
        raise ConfigurationError(f"the program ended with exit code {done.returncode} and started no job: {said}")
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"the program did not come to the start of a job within {_PLAN_S:.0f} s") from None
    except OSError as error:
        raise ConfigurationError(f"the program could not be run: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
