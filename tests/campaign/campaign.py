"""Plays a schedule: starts drivers, injects faults, and checks at the end that the output is exact.

Faults that have not happened when a driver ends are set for the next driver too. When all checkpoints are damaged and
the job is refused, the damaged files are restored as from a backup and the job goes on: no record may be lost then.
"""

from __future__ import annotations

import random
import signal
import time
import uuid
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ekorn.errors import (
    CorruptFileError,
    Fenced,
    JobHasFinished,
    JobWasCancelled,
    NoReadableCheckpoint,
    SinkFilesMissing,
)
from tests.campaign import damage
from tests.campaign.column_jobs import COLUMNS, FORMS
from tests.campaign.driver import LEASE_MS, Run
from tests.campaign.driver_life import CampaignFailed, Driver
from tests.campaign.faulty_storage import CONTROL, set_faults
from tests.campaign.jobs import verify
from tests.campaign.on_spark import MARKS, SparkProcesses, one_of, send
from tests.campaign.outcome import Outcome
from tests.campaign.schedules import Act, Scene, Schedule
from tests.campaign.services import Services, SharedServices
from tests.campaign.zygote import Zygote
from tests.live_jobs import process_state
from tests.spark.processes import java_of, with_variable

LIVES = 20
SETTINGS = {f.name for f in fields(Run)} & {f.name for f in fields(Schedule)}  # settings that a schedule decides
PER_SECOND = 600  # slow enough for some checkpoints in the shortest job
FASTER = 2_000  # than the operator that holds up jobs with unaligned checkpoints
HEARTBEAT_TIMEOUT_MS = 1_500

STORAGE_FAULTS: dict[str, dict[str, Any]] = {
    "errors": {"rate": 0.1},
    "lasting-errors": {"rate": 0.1},
    "full": {"rate": 1.0, "error": "ENOSPC"},
    "read-only": {"rate": 1.0, "error": "EROFS"},
    "slow": {"delay_ms": 400},
}
CORRUPT = (NoReadableCheckpoint, CorruptFileError)  # all checkpoints, or the named one, are damaged
OVERTAKEN = (SinkFilesMissing,)  # files were made visible since the older checkpoint
INJECTED = ("(injected", "was set")  # in the words of `faulty_storage` and `faults`: any error may carry them


class Campaign:
    """Plays one schedule in a folder."""

    def __init__(
        self,
        schedule: Schedule,
        folder: Path,
        zygote: Zygote,
        s3: str | None = None,
        services: Services | None = None,
    ) -> None:
        self.schedule = schedule
        self.folder = folder
        self.outcome = Outcome(schedule.seed)
        self._zygote = zygote
        self._chance = random.Random(schedule.seed + 1)
        self._base = folder / "checkpoints"
        self._address = self._where(s3)
        self._control = folder / "storage.json"
        self._marks = folder / "faults"
        self._marks.mkdir(parents=True, exist_ok=True)
        (folder / "out").mkdir()
        self._job_id = uuid.UUID(int=random.Random(schedule.seed).getrandbits(128)).hex
        self._drivers: list[Driver] = []
        self._host = "host"
        self._left: tuple[str, ...] = ()  # faults that have not happened yet
        self._standing: set[int] = set()  # stopped slots of a dead driver
        self._healthy: dict[Path, bytes] = {}  # the original content of damaged files
        self._best: Path | None = None  # the newest checkpoint before the damage
        self._unreadable: set[Path] = set()  # checkpoints named by path that could not be read
        self._abandoned: set[Path] = set()  # no longer used: the job went on from an older one
        self._went_back: set[Driver] = set()  # drivers that started from an older checkpoint than the newest
        self._refused: set[Driver] = set()
        self._before: dict[Driver, set[Path]] = {}  # directories of jobs that existed when the driver started
        self._spark: SparkProcesses | None = None
        self._per_second = FASTER if schedule.unaligned else PER_SECOND
        self._around = SharedServices(schedule, folder, services or Services(), PER_SECOND)

    def _where(self, s3: str | None) -> str:
        match self.schedule.storage:
            case "faulty":
                return f"faulty://{self._base}"
            case "s3":
                assert s3 is not None, "no S3 server"
                return s3
            case _:
                return str(self._base)

    def play(self) -> Outcome:
        """Play every scene, then start drivers without faults until the job has ended; check the output."""
        started = time.monotonic()
        try:
            if self.schedule.on_spark:
                self._spark = SparkProcesses(
                    self.folder,
                    self._marks,
                    self._chance,
                    on_cluster=self.schedule.engine == "cluster",
                    continuously=self.schedule.execution == "continuous",
                )
            scenes, over = list(self.schedule.scenes), False
            while not over:
                refused = len(self._refused)
                over = self._play(scenes[0] if scenes else Scene(self._chance.choice((1, 2))))
                if len(self._refused) == refused:  # otherwise the scene has not begun
                    del scenes[:1]
            self._judge()
            self._check_leftovers()
        finally:
            self._end_all()
            self._around.close()
            if self._spark is not None:
                self._spark.stop()
            self.outcome.seconds = time.monotonic() - started
            self.outcome.faults = self._happened()
        return self.outcome

    # ---------------------------------------------------------------------------------------------------- one scene

    def _play(self, scene: Scene) -> bool:
        """Play one life of a driver; return whether the job has ended."""
        self.outcome.lives += 1
        if self.outcome.lives > LIVES:
            raise CampaignFailed(f"the job did not end within {LIVES} lives of its driver\n{self._told()}")
        driver = self._start(scene.parallelism, self._arm(scene.faults))
        self._continue_standing(driver)
        acts = list(scene.acts)
        while acts and self._until_due(acts[0], driver):
            driver = self._perform(acts.pop(0), driver)
        if scene.damage is None:
            driver.until(lambda d: False)
        driver.kill()
        over = self._is_over(driver)
        if driver not in self._refused:  # otherwise the scene is played again
            self.outcome.without_effect.update(act.name for act in acts)
            if scene.damage is not None and not over:
                self._inflict(scene.damage)
        return over

    def _arm(self, faults: tuple[str, ...]) -> tuple[str, ...]:
        """Return the faults of the next life: its own, and earlier ones that have not happened, except for stops."""
        self.outcome.armed.update(faults)
        left = [fault for fault in self._left if fault not in self._happened() and not fault.endswith(":stop")]
        self._left = tuple(dict.fromkeys((*left, *faults)))
        return self._left

    def _happened(self) -> set[str]:
        return {mark.name for mark in self._marks.iterdir()}

    @staticmethod
    def _until_due(act: Act, driver: Driver) -> bool:
        """Wait until the act is due; return False if the driver ended before."""
        if not act.after:
            return True
        return driver.until(
            lambda d: (
                bool(d.slots)
                and d.progress.get("read", 0) >= act.after
                and d.progress.get("checkpoints", 0) >= act.checkpoints
            )
        )

    def _inflict(self, how: damage.Damage) -> None:
        best = self._newest()
        touched = damage.inflict(how, self._base, self._chance, self._abandoned)
        if touched is None:
            self.outcome.without_effect["damage"] += 1
            return
        self.outcome.damages[f"{how.how} {how.what}" if touched else how.how] += max(1, len(touched))
        if touched:
            self._best = best
            self._healthy = {**touched, **self._healthy}  # of a file damaged twice, keep the first content

    def _start(self, parallelism: int, faults: tuple[str, ...] = ()) -> Driver:
        s = self.schedule
        restore = None
        if s.storage == "path":
            newest = self._newest()
            restore = str(newest) if newest is not None else None
        run = Run(
            **{name: getattr(s, name) for name in SETTINGS},
            output=str(self.folder / "out"),
            checkpoints=self._address,
            job_id=self._job_id if s.storage != "path" else None,
            restore=restore,
            parallelism=parallelism,
            form=self._form(),
            heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS,
            **(self._spark.settings() if self._spark is not None else {"per_second": self._per_second}),
            host=self._host,
        )
        environment = {
            "EKORN_FAULT": ",".join(faults),
            MARKS: str(self._marks),
            CONTROL: str(self._control),
            "PYTHONFAULTHANDLER": "1",
        }
        before = self._jobs()
        driver = Driver(self._zygote, run, self.folder, environment, self._attend)
        self._drivers.append(driver)
        self._before[driver] = before
        if s.storage == "path" and self._best is not None and restore != str(self._best):
            self._went_back.add(driver)
        return driver

    def _form(self) -> str:
        """Return the form of the streams in the next life. Records in flight restore in the form that they have."""
        if self.schedule.kind != COLUMNS or self.schedule.unaligned:
            return COLUMNS
        return self._chance.choice(FORMS)

    def _attend(self, driver: Driver) -> None:
        if driver.progress.get("status") == "RUNNING":
            self._around.attend()

    def _is_over(self, driver: Driver) -> bool:
        """Return whether the job has ended with this life.

        Raises:
            CampaignFailed: The job failed without an injected fault.
        """
        driver.ended(5.0)
        progress = driver.done or driver.progress
        self.outcome.restarts += progress.get("restarts", 0)
        self.outcome.checkpoints += progress.get("checkpoints", 0)
        self.outcome.checkpoints_failed += progress.get("failed", 0)
        if progress.get("checkpoints", 0) > 0:  # new checkpoints exist: earlier damage no longer matters
            self._abandoned |= self._unreadable
            self._healthy, self._best = {}, None
        if driver.done is not None:
            return True
        if driver.failed is None:
            return self.schedule.storage == "path" and bool(driver.slots) and self._has_finished(driver)
        if driver.failed_with(JobHasFinished) or (driver.failed_with(JobWasCancelled) and self.schedule.grows):
            return True
        if self._healthy and driver.failed_with(*CORRUPT, *OVERTAKEN):
            self._take_refusal(driver, driver.failed)
            return False
        if any(words in driver.failed for words in INJECTED) or driver.failed_with(Fenced):
            return False
        if self._spark is not None and self._spark.has_lost_java(driver):
            return False
        raise CampaignFailed(f"the job failed: {driver.failed}\n{self._told()}")

    def _has_finished(self, driver: Driver) -> bool:
        """Return whether a driver that started from a path died while it cleaned up after its finished job.

        The job has an id of its own, so no other driver notices it. The job has finished if its directory says so, has
        lost its owner file, or is gone.
        """
        for mine in self._jobs() - self._before[driver]:
            marks = (mine / "owner").glob("alive-*")
            return not (mine / "owner").is_dir() or any(b'"finished": true' in mark.read_bytes() for mark in marks)
        return True

    def _jobs(self) -> set[Path]:
        """Return the directories of all jobs so far."""
        return set(self._base.iterdir()) if self._base.is_dir() else set()

    def _take_refusal(self, driver: Driver, said: str) -> None:
        """Check that the refusal names the damage; then use an older checkpoint, or repair if there is none."""
        self._refused.add(driver)
        self.outcome.refusals.append(said)
        # With undamaged metadata of another job in place, the refusal names one of the files missing for that job.
        places = {path.parent if path.name == "_metadata" else path for path in self._healthy}
        if driver.run.restore is not None and damage.is_discarded(Path(driver.run.restore)):
            # The driver before died while it deleted this one, which is older than the damaged one.
            places.add(Path(driver.run.restore))
        if not any(str(place) in said for place in places) and not driver.failed_with(*OVERTAKEN):
            raise CampaignFailed(f"the refusal names none of {list(self._healthy)}: {said}\n{self._told()}")
        if driver.run.restore is not None and driver.failed_with(*CORRUPT):
            self._unreadable.add(Path(driver.run.restore))
            if self._newest() is not None:
                return
        self._repair()

    def _newest(self) -> Path | None:
        """Return the checkpoint that a user would start from."""
        return damage.newest(self._base, self._unreadable | self._abandoned)

    def _repair(self) -> None:
        for path, content in self._healthy.items():
            if path.parent.is_dir():
                path.write_bytes(content)
        self._healthy, self._best = {}, None
        self._unreadable.clear()

    # ---------------------------------------------------------------------------------------------------------- acts

    def _perform(self, act: Act, driver: Driver) -> Driver:
        """Perform an act; return the driver that goes on."""
        done, goes_on = True, driver
        match act.what:
            case "kill-slot" if act.detail == "at-point":
                done = self._kill_slot_at_point(driver)
            case "kill-slot":
                done = self._signal_slot(driver, signal.SIGKILL) is not None
            case "kill-driver":
                done = act.detail != "at-point" or self._stand(driver)
                done = done and not driver.ended()
                if act.detail == "with-java":
                    send(java_of(driver.pid), signal.SIGKILL)
                driver.kill()
            case "stop-slot" | "thaw":
                stop = act.what == "stop-slot"
                victim = self._signal_slot(driver, signal.SIGSTOP) if stop else self._frozen_slot(driver)
                done = victim is not None
                if victim is not None:
                    self._continue_later(driver, victim)
            case "second-driver":
                done = self._second_driver(driver)
            case "usurper":
                if act.detail == "at-point":
                    done = driver.until(Driver.is_stopped)
                else:
                    driver.kill(signal.SIGSTOP)
                if done and not driver.ended():
                    goes_on = self._usurp(driver)
            case "storage":
                done = self._storage_fault(driver, act.detail)
            case "pause-broker" | "restart-broker" | "restart-database" | "add-partition":
                done = self._around.perform(act)
            case _:
                assert self._spark is not None, act.what
                done = self._spark.perform(act, driver)
        (self.outcome.acts if done else self.outcome.without_effect)[act.name] += 1
        return goes_on

    def _signal_slot(self, driver: Driver, sign: signal.Signals) -> int | None:
        slots = [int(pid) for pid in driver.progress.get("slots", ()) if driver.is_slot(pid)]
        return next(iter(send(one_of(slots, self._chance), sign)), None)

    def _kill_slot_at_point(self, driver: Driver) -> bool:
        """Wait until a fault has stopped the driver, kill a slot, and continue the driver."""
        if not driver.until(Driver.is_stopped):
            return False
        victim = self._signal_slot(driver, signal.SIGKILL)
        driver.kill(signal.SIGCONT)
        return victim is not None

    def _stand(self, driver: Driver) -> bool:
        """Wait until a fault has stopped a slot, which is continued only in a later life."""
        victim = self._frozen_slot(driver)
        if victim is not None:
            self._standing.add(victim)
        return victim is not None

    def _continue_standing(self, driver: Driver) -> None:
        """Continue stopped slots of a dead driver: at once, or after the next driver's first checkpoint."""
        if self._standing and self._chance.random() < 0.5:
            driver.until_first_checkpoint()
        send([pid for pid in self._standing if driver.is_slot(pid)], signal.SIGCONT)
        self._standing.clear()

    @staticmethod
    def _frozen_slot(driver: Driver) -> int | None:
        """Wait until a fault has stopped a slot; return None if the driver ended before."""
        found: list[int] = []

        def look(d: Driver) -> bool:
            found[:] = [pid for pid in d.slot_processes() if process_state(pid) == "T"]
            return bool(found)

        if not driver.until(look):
            return None
        driver.slots.update(found)
        return found[0]

    def _continue_later(self, driver: Driver, victim: int) -> None:
        """Leave a slot stopped until the driver has abandoned it; then continue it, although it has been replaced."""
        before = driver.progress.get("restarts", 0)
        driver.until(lambda d: d.progress.get("restarts", 0) > before)
        driver.ended(self._chance.choice((0.0, 0.3)))
        if driver.is_slot(victim):
            send([victim], signal.SIGCONT)

    def _second_driver(self, driver: Driver) -> bool:
        """Start a second driver; return whether it was refused. The first stands meanwhile: it must not finish."""
        driver.kill(signal.SIGSTOP)
        try:
            if driver.ended() or driver.progress.get("read", 0) >= self.schedule.records:
                return False  # its job is at its end, and its checkpoints may be gone
            second = self._start(1)
            if second.wait(lambda d: d.failed is not None or d.done is not None, second.patience_s / 3) is None:
                raise CampaignFailed(
                    f"a second driver was not refused within {second.patience_s / 3} s\n{self._told()}"
                )
            second.ended(10.0)
        finally:
            driver.kill(signal.SIGCONT)
        if second.failed is not None and "has finished" in second.failed:
            return False  # the first driver was removing its checkpoints
        if second.failed is None or "is in use by the driver" not in second.failed:
            raise CampaignFailed(f"a second driver was not refused but said: {second.failed}\n{self._told()}")
        return True

    def _usurp(self, driver: Driver) -> Driver:
        """Let another host take over from the stopped driver, then continue it; return the driver that goes on."""
        time.sleep(LEASE_MS / 1000 * 1.3)  # until the lease of the driver has expired
        self._host = f"not-{self._host}"  # later drivers run on this host too, and see which of its processes have died
        usurper = self._start(self._chance.choice((1, 2)))
        target = self._chance.choice((1, 3))
        usurper.until(lambda d: d.progress.get("checkpoints", 0) >= target or d.failed is not None)
        driver.kill(signal.SIGCONT)
        if usurper.failed is not None and usurper.done is None:
            return driver  # the storage refused the usurper, or the first driver had finished
        driver.until(lambda d: d.failed is not None or d.done is not None)
        driver.ended(20.0)
        if driver.done is None:
            return usurper
        # The first driver may have had only notifications of the last checkpoint left to send. Or its delayed claim
        # replaced the usurper. In both cases the output is committed once.
        usurper.until(lambda d: d.failed is not None or d.done is not None)
        usurper.ended(20.0)
        return usurper if usurper.done is not None else driver

    def _storage_fault(self, driver: Driver, what: str) -> bool:
        """Let the storage fail until all is read, or until a checkpoint fails; return whether it had an effect."""
        failed = driver.progress.get("failed", 0)
        set_faults(str(self._control), **STORAGE_FAULTS[what])
        if what == "lasting-errors":
            return True
        if what == "errors":
            driver.until(lambda d: d.progress.get("read", 0) >= self.schedule.records or d.failed is not None)
            hurt = True
        else:
            hurt = bool(driver.wait(lambda d: d.progress.get("failed", 0) > failed, 10.0))
        set_faults(str(self._control))
        return hurt

    # ------------------------------------------------------------------------------------------------------ the end

    def _judge(self) -> None:
        self._around.settle()
        verdict = verify(self.schedule.kind, self.schedule.records, self.folder / "out")
        self.outcome.verdict = verdict
        self.outcome.fallbacks = sum(self._fell_back(d) for d in self._drivers)
        self.outcome.ended = "exact"
        if verdict.doubled and verdict.most <= 1 + self.outcome.fallbacks:
            # The job restored a checkpoint older than its committed output, which is written again, as the log says.
            self.outcome.ended = "repeated"
            verdict = replace(verdict, doubled=0)
            if self.schedule.sink == "topic":  # a partition then has the earlier lines behind the later ones
                verdict = replace(verdict, out_of_order=0)
        if not verdict.exact:
            raise CampaignFailed(f"{verdict}\n{self._told()}")

    def _fell_back(self, driver: Driver) -> bool:
        """Return whether a driver ran from an older checkpoint because the newest was damaged."""
        log = driver.log.read_text(errors="replace")
        return driver not in self._refused and (driver in self._went_back or "restoring the older" in log)

    def _check_leftovers(self) -> None:
        """Check that no process of the job is left: no slot, and on Spark no Java process and no Python worker.

        A slot that a fault has stopped may still stand there, if the job ended without it. It is continued, and must
        then end by itself.
        """
        left = with_variable(MARKS, str(self._marks))
        send([pid for pid in left if process_state(pid) == "T"], signal.SIGCONT)
        limit = time.monotonic() + 60
        while left := with_variable(MARKS, str(self._marks)):
            if time.monotonic() > limit:
                raise CampaignFailed(f"processes {left} outlived their drivers\n{self._told()}")
            time.sleep(0.05)  # not our children: there is nothing to wait on

    def _end_all(self) -> None:
        for driver in self._drivers:
            if not driver.ended():
                driver.kill()
        send(with_variable(MARKS, str(self._marks)), signal.SIGKILL)

    def _told(self) -> str:
        logs = "\n".join(f"--- {d.log.name} (parallelism {d.run.parallelism})\n{d.tail()}" for d in self._drivers[-3:])
        return f"{self.schedule}\nagain: {self.schedule.command}\n{logs}"


def run_schedule(
    schedule: Schedule, folder: Path, zygote: Zygote, s3: str | None = None, services: Services | None = None
) -> Outcome:
    """Play a schedule.

    Raises:
        CampaignFailed: A guarantee was broken.
    """
    return Campaign(replace(schedule), folder, zygote, s3, services).play()
