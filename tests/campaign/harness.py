"""Plays a schedule: drivers come and go, faults happen, and at the end the output is exact.

Faults that have not happened when a driver ends are set for the next one too. When all checkpoints are damaged and the
job is refused, what was damaged is put back, as from a backup, and the job goes on: so nothing may be lost then either.
"""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tests.campaign import damage
from tests.campaign.driver import LEASE_MS, Run
from tests.campaign.faulty_storage import CONTROL, set_faults
from tests.campaign.jobs import verify
from tests.campaign.lives import CampaignFailed, Driver
from tests.campaign.schedules import Act, Scene, Schedule
from tests.campaign.tally import Outcome
from tests.campaign.zygote import Zygote
from tests.live_jobs import process_state

LIVES = 20
SETTINGS = {f.name for f in fields(Run)} & {f.name for f in fields(Schedule)}  # which a schedule decides
PER_SECOND = 600  # so that even the shortest job has some checkpoints to be disturbed
HEARTBEAT_TIMEOUT_MS = 1_500

STORAGE_FAULTS: dict[str, dict[str, Any]] = {
    "errors": {"rate": 0.1},
    "lasting-errors": {"rate": 0.1},
    "full": {"rate": 1.0, "error": "ENOSPC"},
    "read-only": {"rate": 1.0, "error": "EROFS"},
    "slow": {"delay_ms": 400},
}
CORRUPT = ("none of the checkpoints", "CorruptFileError: cannot read")  # all are damaged, or the one that was named
OVERTAKEN = ("cannot restore the file sink",)  # the one before has been overtaken by files made visible since
INJECTED = ("(injected", "was set")


class Campaign:
    """Plays one schedule in a folder."""

    def __init__(self, schedule: Schedule, folder: Path, zygote: Zygote, s3: str | None = None) -> None:
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
        self._standing: set[int] = set()  # slots that stand still though their driver is dead
        self._healthy: dict[Path, bytes] = {}  # what damaged files held
        self._best: Path | None = None  # the newest checkpoint, before it was damaged
        self._unreadable: set[Path] = set()  # checkpoints that were asked for by path and could not be read
        self._abandoned: set[Path] = set()  # those from which nobody starts, as others went on from older ones
        self._went_back: set[Driver] = set()  # those that were given an older checkpoint than the newest
        self._refused: set[Driver] = set()
        self._before: dict[Driver, set[Path]] = {}  # jobs whose directories were there when it started

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
        """Every scene, then lives without scenes until the job has ended; the verdict."""
        started = time.monotonic()
        try:
            scenes, over = list(self.schedule.scenes), False
            while not over:
                refused = len(self._refused)
                over = self._play(scenes[0] if scenes else Scene(self._chance.choice((1, 2))))
                if len(self._refused) == refused:  # else it did not even begin
                    del scenes[:1]
            self._judge()
            self._check_leftovers()
        finally:
            self._end_all()
            self.outcome.seconds = time.monotonic() - started
            self.outcome.faults = self._happened()
        return self.outcome

    # ---------------------------------------------------------------------------------------------------- one scene

    def _play(self, scene: Scene) -> bool:
        """One life of a driver; True when the job is over."""
        self.outcome.lives += 1
        if self.outcome.lives > LIVES:
            raise CampaignFailed(f"the job did not end in {LIVES} lives of its driver\n{self._told()}")
        driver = self._start(scene.parallelism, self._arm(scene.faults))
        self._continue_standing(driver)
        acts = list(scene.acts)
        while acts and self._until_due(acts[0], driver):
            driver = self._perform(acts.pop(0), driver)
        if scene.damage is None:
            driver.until(lambda d: False)
        driver.kill()
        over = self._is_over(driver)
        if driver not in self._refused:  # else the scene is played again
            self.outcome.without_effect.update(act.name for act in acts)
            if scene.damage is not None and not over:
                self._inflict(scene.damage)
        return over

    def _arm(self, faults: tuple[str, ...]) -> tuple[str, ...]:
        """The faults of the next life: its own, and what has not happened in those before. Who stops is waited for."""
        self.outcome.armed.update(faults)
        left = [fault for fault in self._left if fault not in self._happened() and not fault.endswith(":stop")]
        self._left = tuple(dict.fromkeys((*left, *faults)))
        return self._left

    def _happened(self) -> set[str]:
        return {mark.name for mark in self._marks.iterdir()}

    @staticmethod
    def _until_due(act: Act, driver: Driver) -> bool:
        """Wait for the act's time; False when the driver ended before."""
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
            self._healthy = {**touched, **self._healthy}  # of a file damaged twice, what it held at first

    def _start(self, parallelism: int, faults: tuple[str, ...] = ()) -> Driver:
        s = self.schedule
        restore = None
        if s.storage == "path":
            newest = self._newest()
            restore = str(newest) if newest is not None else None
        run = Run(
            **{name: getattr(s, name) for name in SETTINGS},
            per_second=PER_SECOND,
            output=str(self.folder / "out"),
            checkpoints=self._address,
            job_id=self._job_id if s.storage != "path" else None,
            restore=restore,
            parallelism=parallelism,
            heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS,
            host=self._host,
        )
        environment = {
            "TAMIAS_FAULT": ",".join(faults),
            "TAMIAS_FAULT_DIR": str(self._marks),
            CONTROL: str(self._control),
            "PYTHONFAULTHANDLER": "1",
        }
        before = self._jobs()
        driver = Driver(self._zygote, run, self.folder, environment)
        self._drivers.append(driver)
        self._before[driver] = before
        if s.storage == "path" and self._best is not None and restore != str(self._best):
            self._went_back.add(driver)
        return driver

    def _is_over(self, driver: Driver) -> bool:
        """Whether the job has come to its end with this life; a failure that nobody caused is one of ours."""
        driver.ended(5.0)
        progress = driver.done or driver.progress
        self.outcome.restarts += progress.get("restarts", 0)
        self.outcome.checkpoints += progress.get("checkpoints", 0)
        self.outcome.checkpoints_failed += progress.get("failed", 0)
        if progress.get("checkpoints", 0) > 0:  # what was damaged before is history
            self._abandoned |= self._unreadable
            self._healthy, self._best = {}, None
        if driver.done is not None:
            return True
        if driver.failed is None:
            return self.schedule.storage == "path" and bool(driver.slots) and self._has_finished(driver)
        if "has finished, and all its output is committed" in driver.failed:
            return True
        if self._healthy and any(words in driver.failed for words in CORRUPT + OVERTAKEN):
            self._take_refusal(driver, driver.failed)
            return False
        if any(words in driver.failed for words in INJECTED) or "no longer owns checkpoint directory" in driver.failed:
            return False
        raise CampaignFailed(f"the job failed: {driver.failed}\n{self._told()}")

    def _has_finished(self, driver: Driver) -> bool:
        """Whether a driver that was told a path died while it removed what a finished job needs no more.

        Its job has an id that no other driver has, so nobody but the user can see that: the directory says so, or has
        lost what says whose it is, or is gone.
        """
        for mine in self._jobs() - self._before[driver]:
            marks = (mine / "owner").glob("alive-*")
            return not (mine / "owner").is_dir() or any(b'"finished": true' in mark.read_bytes() for mark in marks)
        return True

    def _jobs(self) -> set[Path]:
        """The directories of all jobs so far."""
        return set(self._base.iterdir()) if self._base.is_dir() else set()

    def _take_refusal(self, driver: Driver, said: str) -> None:
        """The message must lead to what is damaged. Take an older checkpoint if there is one, else repair."""
        self._refused.add(driver)
        self.outcome.refusals.append(said)
        # Healthy metadata of another job says what files there must be: one of those is missed then.
        places = {path.parent if path.name == "_metadata" else path for path in self._healthy}
        if not any(str(place) in said for place in places) and not any(words in said for words in OVERTAKEN):
            raise CampaignFailed(f"refused without a word about {list(self._healthy)}: {said}\n{self._told()}")
        if driver.run.restore is not None and any(words in said for words in CORRUPT):
            self._unreadable.add(Path(driver.run.restore))
            if self._newest() is not None:
                return
        self._repair()

    def _newest(self) -> Path | None:
        """The checkpoint that a user would start from."""
        return damage.newest(self._base, self._unreadable | self._abandoned)

    def _repair(self) -> None:
        for path, content in self._healthy.items():
            if path.parent.is_dir():
                path.write_bytes(content)
        self._healthy, self._best = {}, None
        self._unreadable.clear()

    # ---------------------------------------------------------------------------------------------------------- acts

    def _perform(self, act: Act, driver: Driver) -> Driver:
        """Do it; the driver that goes on."""
        done, goes_on = True, driver
        match act.what:
            case "kill-slot" if act.detail == "at-point":
                done = self._kill_slot_at_point(driver)
            case "kill-slot":
                done = self._signal_slot(driver, signal.SIGKILL) is not None
            case "kill-driver":
                done = act.detail != "at-point" or self._stand(driver)
                done = done and not driver.ended()
                driver.kill()
            case "stop-slot" | "thaw":
                stop = act.what == "stop-slot"
                victim = self._signal_slot(driver, signal.SIGSTOP) if stop else self._frozen_slot(driver)
                done = victim is not None
                if victim is not None:
                    self._continue_later(driver, victim)
            case "second-driver":
                done = self._second_driver()
            case "usurper":
                if act.detail == "at-point":
                    done = driver.until(lambda d: process_state(d.pid) == "T")
                else:
                    driver.kill(signal.SIGSTOP)
                if done and not driver.ended():
                    goes_on = self._usurp(driver)
            case "storage":
                done = self._storage_fault(driver, act.detail)
            case _:
                raise AssertionError(act.what)
        (self.outcome.acts if done else self.outcome.without_effect)[act.name] += 1
        return goes_on

    def _signal_slot(self, driver: Driver, sign: signal.Signals) -> int | None:
        slots = sorted(pid for pid in driver.progress.get("slots", ()) if driver.is_slot(pid))
        if not slots:
            return None
        victim = int(self._chance.choice(slots))
        with suppress(ProcessLookupError):
            os.kill(victim, sign)
            return victim
        return None

    def _kill_slot_at_point(self, driver: Driver) -> bool:
        """Wait until a fault has stopped the driver, kill a slot, and let the driver go on."""
        if not driver.until(lambda d: process_state(d.pid) == "T"):
            return False
        victim = self._signal_slot(driver, signal.SIGKILL)
        driver.kill(signal.SIGCONT)
        return victim is not None

    def _stand(self, driver: Driver) -> bool:
        """Wait until a fault has stopped a slot, which goes on in a later life only."""
        victim = self._frozen_slot(driver)
        if victim is not None:
            self._standing.add(victim)
        return victim is not None

    def _continue_standing(self, driver: Driver) -> None:
        """Let slots of a dead driver go on: at once, or when the next one has gone further."""
        if self._standing and self._chance.random() < 0.5:
            driver.until(lambda d: d.progress.get("checkpoints", 0) > 0)
        for pid in self._standing:
            if driver.is_slot(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self._standing.clear()

    @staticmethod
    def _frozen_slot(driver: Driver) -> int | None:
        """Wait until a fault has stopped a slot; None when the driver ended before that."""
        found: list[int] = []

        def look(d: Driver) -> bool:
            found[:] = [pid for pid in d.slot_processes() if process_state(pid) == "T"]
            return bool(found)

        if not driver.until(look):
            return None
        driver.slots.update(found)
        return found[0]

    def _continue_later(self, driver: Driver, victim: int) -> None:
        """Leave a slot stopped until the driver has given it up, and then some; then let it go on as a zombie."""
        before = driver.progress.get("restarts", 0)
        driver.until(lambda d: d.progress.get("restarts", 0) > before)
        driver.ended(self._chance.choice((0.0, 0.3)))
        if driver.is_slot(victim):
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)

    def _second_driver(self) -> bool:
        """Start another: whether it was refused. Otherwise the first had ended, or ended meanwhile."""
        second = self._start(1)
        if second.wait(lambda d: d.failed is not None or d.done is not None, 30.0) is None:
            raise CampaignFailed(f"a second driver was not refused within 30 s\n{self._told()}")
        second.ended(10.0)
        if second.done is not None or second.failed is None or "has finished" in second.failed:
            return False
        if "is in use by the driver" not in second.failed:
            raise CampaignFailed(f"a second driver was not refused but said: {second.failed}\n{self._told()}")
        return True

    def _usurp(self, driver: Driver) -> Driver:
        """The driver is stopped: let another host take over, then let the first go on. Gives the one that goes on."""
        time.sleep(LEASE_MS / 1000 * 1.3)  # until its lease has run out
        self._host = f"not-{self._host}"  # whoever comes later comes from there too, and sees who has died there
        usurper = self._start(self._chance.choice((1, 2)))
        target = self._chance.choice((1, 3))
        usurper.until(lambda d: d.progress.get("checkpoints", 0) >= target or d.failed is not None)
        driver.kill(signal.SIGCONT)
        if usurper.failed is not None and usurper.done is None:
            return driver  # the storage refused it, or the first one had finished
        driver.until(lambda d: d.failed is not None or d.done is not None)
        driver.ended(20.0)
        if driver.done is None:
            return usurper
        # The first may have had nothing left to do but to tell its sinks of the last checkpoint; or it was the usurper
        # who found itself replaced, by a claim that had been on its way all the time. Whatever is true, it is once.
        usurper.until(lambda d: d.failed is not None or d.done is not None)
        usurper.ended(20.0)
        return usurper if usurper.done is not None else driver

    def _storage_fault(self, driver: Driver, what: str) -> bool:
        """Storage that fails: now and then until all is read or for good, else until it hurts; whether it did."""
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
        verdict = verify(self.schedule.kind, self.schedule.records, self.folder / "out")
        self.outcome.verdict = verdict
        self.outcome.fallbacks = sum(self._fell_back(d) for d in self._drivers)
        self.outcome.ended = "exact"
        if verdict.doubled and verdict.most <= 1 + self.outcome.fallbacks:
            # Behind a checkpoint whose output was committed: that output is written once more, as the log says.
            self.outcome.ended = "repeated"
            verdict = replace(verdict, doubled=0)
        if not verdict.exact:
            raise CampaignFailed(f"{verdict}\n{self._told()}")

    def _fell_back(self, driver: Driver) -> bool:
        """Whether it ran from an older checkpoint than the newest, which was damaged."""
        log = driver.log.read_text(errors="replace")
        return driver not in self._refused and (driver in self._went_back or "restoring the older" in log)

    def _check_leftovers(self) -> None:
        """No process of the job lives on."""
        limit = time.monotonic() + 20
        while left := self._drivers[0].slot_processes():
            if time.monotonic() > limit:
                raise CampaignFailed(f"slots {left} outlived their drivers\n{self._told()}")
            time.sleep(0.05)  # they are not ours to wait for

    def _end_all(self) -> None:
        for driver in self._drivers:
            if not driver.ended():
                driver.kill()
        for pid in self._drivers[0].slot_processes() if self._drivers else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _told(self) -> str:
        logs = "\n".join(f"--- {d.log.name} (parallelism {d.run.parallelism})\n{d.tail()}" for d in self._drivers[-3:])
        return f"{self.schedule}\nagain: python -m tests.campaign {self.schedule.seed}\n{logs}"


def run_schedule(schedule: Schedule, folder: Path, zygote: Zygote, s3: str | None = None) -> Outcome:
    """Play a schedule; raises `CampaignFailed` when a promise is broken."""
    return Campaign(replace(schedule), folder, zygote, s3).play()
