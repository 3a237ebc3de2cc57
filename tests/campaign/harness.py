"""Plays a schedule: drivers come and go, faults happen, and at the end the output is exact or was refused in words."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.campaign import damage
from tests.campaign.driver import LEASE_MS, Run
from tests.campaign.faulty_storage import CONTROL, set_faults
from tests.campaign.jobs import Verdict, verify
from tests.campaign.schedules import Act, Scene, Schedule
from tests.campaign.zygote import Zygote

PATIENCE_S = 90.0  # for one life of a driver; many times what it takes
LIVES = 14
HEARTBEAT_TIMEOUT_MS = 1_500

STORAGE_FAULTS: dict[str, dict[str, Any]] = {
    "errors": {"rate": 0.1},
    "full": {"rate": 1.0, "error": "ENOSPC"},
    "read-only": {"rate": 1.0, "error": "EROFS"},
    "slow": {"delay_ms": 400},
}
REFUSALS = (
    "none of the checkpoints",  # all are damaged
    "cannot restore the file sink",  # the one before has been overtaken by files made visible since
    "cannot commit",
)
INJECTED = ("(injected", "was set")


class CampaignFailed(AssertionError):
    """A promise was broken; the message has all that is needed to look into it."""


@dataclass
class Outcome:
    """What came of a schedule."""

    seed: int
    ended: str = ""  # exact, repeated, refused
    verdict: Verdict = field(default_factory=Verdict)
    lives: int = 0
    restarts: int = 0
    checkpoints: int = 0
    checkpoints_failed: int = 0
    faults: list[str] = field(default_factory=list)  # that happened
    seconds: float = 0.0
    said: str = ""


class Driver:
    """One life of a driver, seen from outside."""

    def __init__(self, zygote: Zygote, run: Run, folder: Path, environment: dict[str, str]) -> None:
        number = next(_numbers)
        self._zygote = zygote
        self._output, self.log = folder / f"driver-{number}.out", folder / f"driver-{number}.log"
        self._output.touch()
        self.log.touch()
        self._read_to = 0
        self.run = run
        self.progress: dict[str, Any] = {}
        self.slots: set[int] = set()
        self.failed: str | None = None
        self.done: dict[str, Any] | None = None
        self.pid = zygote.fork(run.text(), environment, self._output, self.log)

    def look(self) -> None:
        """Take note of what the driver has said."""
        with self._output.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read_to += len(line)
                with suppress(ValueError):  # the job's own output
                    self._hear(json.loads(line))

    def _hear(self, news: Any) -> None:
        if not isinstance(news, dict):
            return
        self.progress = news.get("progress", self.progress)
        self.slots.update(self.progress.get("slots", ()))
        self.failed = news.get("failed", self.failed)
        self.done = news.get("done", self.done)

    def ended(self, within_s: float = 0.0) -> bool:
        """Whether the process is gone."""
        code = self._zygote.how_it_ended(self.pid, within_s)
        self.look()
        return code is not None

    def until(self, condition: Callable[[Driver], bool], within_s: float = PATIENCE_S) -> bool:
        """Wait until the condition holds; False when the driver ended before."""
        limit = time.monotonic() + within_s
        while time.monotonic() < limit:
            if self.ended(0.01):
                return False
            if condition(self):
                return True
        self._ask_where()
        raise CampaignFailed(f"driver {self.pid} made no progress: {self.progress}\n{self.tail(120)}")

    def _ask_where(self) -> None:
        """Have the driver and the slots it started write down what each of their threads is doing."""
        self.kill(signal.SIGUSR1)
        self.ended(1.0)
        for pid in self.slot_processes():
            if _parent(pid) == self.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGABRT)  # tells, and dies of it
        self.ended(1.0)

    def kill(self, sign: int = signal.SIGKILL) -> None:
        if self._zygote.how_it_ended(self.pid) is not None:
            return  # the number may be another process's by now
        with suppress(ProcessLookupError):
            os.kill(self.pid, sign)
        if sign == signal.SIGKILL:
            self.ended(20.0)

    def is_slot(self, pid: int) -> bool:
        """Whether this is a slot of this campaign: process ids are used again, and other jobs have slots too."""
        try:
            command, environment = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            return False
        return b"slot_main" in command and str(self.log.parent).encode() in environment

    def slot_processes(self) -> list[int]:
        """All slots of this campaign that are there now."""
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and self.is_slot(int(p.name))]

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


_numbers = itertools.count(1)


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
        self._refused: set[Path] = set()  # checkpoints that were asked for by path and could not be read
        self._damaged = self._completed = self._fell_back = False

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
        """Every scene, then undisturbed lives until the job has ended; the verdict."""
        started = time.monotonic()
        try:
            over = False
            for scene in self.schedule.scenes:
                over = self._play(scene)
                if over:
                    break
            while not over:
                over = self._play(Scene(self._chance.choice((1, 2))))
            self._judge()
            self._check_leftovers()
        finally:
            self._end_all()
            self.outcome.seconds = time.monotonic() - started
            self.outcome.faults = sorted(p.name for p in self._marks.iterdir())
        return self.outcome

    # ---------------------------------------------------------------------------------------------------- one scene

    def _play(self, scene: Scene) -> bool:
        """One life of a driver; True when the job is over."""
        self.outcome.lives += 1
        if self.outcome.lives > LIVES:
            raise CampaignFailed(f"the job did not end in {LIVES} lives of its driver\n{self._told()}")
        driver = self._start(scene.parallelism, scene.faults)
        for act in scene.acts:
            if act.after and not driver.until(
                lambda d, after=act.after: d.progress.get("read", 0) >= after and d.slots
            ):
                break
            driver = self._perform(act, driver)
        if scene.damage is None:
            driver.until(lambda d: False)
        driver.kill()
        over = self._is_over(driver)
        if scene.damage is not None and not over:
            touched = damage.inflict(scene.damage, self._base, self._chance)
            self._damaged |= bool(touched)
            # Who gives a path cannot give one that is gone, and takes the one before.
            self._fell_back |= self.schedule.storage == "path" and any(not path.exists() for path in touched)
        return over

    def _start(self, parallelism: int, faults: tuple[str, ...] = ()) -> Driver:
        s = self.schedule
        restore = None
        if s.storage == "path":
            newest = damage.newest(self._base, self._refused)
            restore = str(newest) if newest is not None else None
        run = Run(
            kind=s.kind,
            records=s.records,
            per_second=1_500,
            output=str(self.folder / "out"),
            checkpoints=self._address,
            job_id=self._job_id if s.storage != "path" else None,
            restore=restore,
            parallelism=parallelism,
            backend=s.backend,
            incremental=s.incremental,
            asynchronous=s.asynchronous,
            compression=s.compression,
            interval_ms=s.interval_ms,
            timeout_ms=s.timeout_ms,
            concurrent=s.concurrent,
            local_copies=s.local_copies,
            retained=s.retained,
            inline_bytes=s.inline_bytes,
            roll=s.roll,
            engine=s.engine,
            heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS,
            host=self._host,
        )
        environment = {
            "TAMIAS_FAULT": ",".join(faults),
            "TAMIAS_FAULT_DIR": str(self._marks),
            CONTROL: str(self._control),
            "PYTHONFAULTHANDLER": "1",
        }
        driver = Driver(self._zygote, run, self.folder, environment)
        self._drivers.append(driver)
        return driver

    def _is_over(self, driver: Driver) -> bool:
        """Whether the job has come to its end with this life; a failure that nobody caused is one of ours."""
        driver.ended(5.0)
        progress = driver.done or driver.progress
        self.outcome.restarts += progress.get("restarts", 0)
        self.outcome.checkpoints += progress.get("checkpoints", 0)
        self.outcome.checkpoints_failed += progress.get("failed", 0)
        self._completed |= progress.get("checkpoints", 0) > 0
        if driver.done is not None:
            self.outcome.ended = "exact"
            return True
        if driver.failed is None:
            if self.schedule.storage == "path" and self._completed and not self._any_checkpoint():
                self.outcome.ended = "exact"  # it died while it removed the checkpoints of a finished job
                return True
            return False
        if "has finished, and all its output is committed" in driver.failed:
            self.outcome.ended = "exact"
            return True
        if self._damaged and driver.run.restore is not None and "CorruptFileError: cannot read" in driver.failed:
            return self._try_older(driver)
        if self._damaged and any(words in driver.failed for words in REFUSALS):
            self.outcome.ended, self.outcome.said = "refused", driver.failed
            return True
        if any(words in driver.failed for words in INJECTED) or "no longer owns checkpoint directory" in driver.failed:
            return False
        raise CampaignFailed(f"the job failed: {driver.failed}\n{self._told()}")

    def _try_older(self, driver: Driver) -> bool:
        """Who named a checkpoint that is damaged is told so, and names the one before; True when there is none."""
        assert driver.run.restore is not None and driver.failed is not None
        self._refused.add(Path(driver.run.restore))
        self._fell_back = True
        if damage.newest(self._base, self._refused) is None:
            self.outcome.ended, self.outcome.said = "refused", driver.failed
            return True
        return False

    def _any_checkpoint(self) -> bool:
        return damage.newest(self._base) is not None

    # ---------------------------------------------------------------------------------------------------------- acts

    def _perform(self, act: Act, driver: Driver) -> Driver:
        """Do it; the driver that goes on."""
        match act.what:
            case "kill-slot":
                self._signal_slot(driver, signal.SIGKILL)
            case "kill-driver":
                driver.kill()
            case "stop-slot":
                victim = self._signal_slot(driver, signal.SIGSTOP)
                if victim is not None:
                    self._continue_later(driver, victim)
            case "thaw":
                victim = self._frozen_slot(driver)
                if victim is not None:
                    self._continue_later(driver, victim)
            case "second-driver":
                self._second_driver()
            case "usurper" if act.detail == "at-point":
                if driver.until(lambda d: _state(d.pid) == "T"):
                    return self._usurp(driver)
            case "usurper":
                driver.kill(signal.SIGSTOP)
                return self._usurp(driver)
            case "storage":
                self._storage_fault(driver, act.detail)
            case _:
                raise AssertionError(act.what)
        return driver

    def _signal_slot(self, driver: Driver, sign: signal.Signals) -> int | None:
        slots = sorted(driver.progress.get("slots", ()))
        if not slots:
            return None
        victim = int(self._chance.choice(slots))
        if not driver.is_slot(victim):
            return None
        with suppress(ProcessLookupError):
            os.kill(victim, sign)
            return victim
        return None

    @staticmethod
    def _frozen_slot(driver: Driver) -> int | None:
        """Wait until a fault has stopped a slot; None when the driver ended before that."""
        found: list[int] = []

        def look(d: Driver) -> bool:
            found[:] = [pid for pid in d.slot_processes() if _state(pid) == "T"]
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

    def _second_driver(self) -> None:
        started = time.monotonic()
        second = self._start(1)
        second.until(lambda d: d.failed is not None or d.done is not None)
        second.ended(10.0)
        took = time.monotonic() - started
        if second.done is not None or second.failed is None or "has finished" in second.failed:
            return  # the first had ended, or ended meanwhile
        if "is in use by the driver" not in second.failed:
            raise CampaignFailed(f"a second driver was not refused but said: {second.failed}\n{self._told()}")
        if took > 30:
            raise CampaignFailed(f"a second driver was refused after {took:.0f} s only")

    def _usurp(self, driver: Driver) -> Driver:
        """The driver is stopped: let another host take over, then let the first go on. Gives the one that goes on."""
        if driver.ended():
            return driver
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

    def _storage_fault(self, driver: Driver, what: str) -> None:
        failed = driver.progress.get("failed", 0)
        set_faults(str(self._control), **STORAGE_FAULTS[what])
        if what == "errors":
            driver.until(lambda d: d.progress.get("read", 0) >= self.schedule.records or d.failed is not None)
        else:  # until it hurts
            with suppress(CampaignFailed):
                driver.until(lambda d: d.progress.get("failed", 0) > failed, 4.0)
        set_faults(str(self._control))

    # ------------------------------------------------------------------------------------------------------ the end

    def _judge(self) -> None:
        verdict = verify(self.schedule.kind, self.schedule.records, self.folder / "out")
        self.outcome.verdict = verdict
        logs = [d.log.read_text(errors="replace") for d in self._drivers]
        fell_back = self._fell_back or any("restoring the older" in log for log in logs)
        if self.outcome.ended == "refused":
            good = not verdict.wrong and (fell_back or not verdict.doubled)
        elif self._damaged and fell_back:
            # Behind a checkpoint whose output was committed: that output is written once more, as the log says.
            good = not verdict.lost and not verdict.wrong
            if verdict.doubled:
                self.outcome.ended = "repeated"
        else:
            good = verdict.exact
        if not good:
            raise CampaignFailed(f"{verdict}\n{self._told()}")

    def _check_leftovers(self) -> None:
        """No process of the job lives on."""
        limit = time.monotonic() + 20
        while left := [pid for d in self._drivers for pid in d.slots if d.is_slot(pid)]:
            if time.monotonic() > limit:
                raise CampaignFailed(f"slots {left} outlived their drivers\n{self._told()}")
            time.sleep(0.05)  # they are not ours to wait for

    def _end_all(self) -> None:
        for driver in self._drivers:
            if not driver.ended():
                driver.kill()
            for pid in driver.slots:
                if driver.is_slot(pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def _told(self) -> str:
        logs = "\n".join(f"--- {d.log.name} (parallelism {d.run.parallelism})\n{d.tail()}" for d in self._drivers[-3:])
        return f"{self.schedule}\nagain: python -m tests.campaign {self.schedule.seed}\n{logs}"


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _state(pid: int) -> str:
    """As the system has it: R, S, D, T for stopped, Z for dead."""
    return _stat(pid)[0]


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


def run_schedule(schedule: Schedule, folder: Path, zygote: Zygote, s3: str | None = None) -> Outcome:
    """Play a schedule; raises `CampaignFailed` when a promise is broken."""
    return Campaign(replace(schedule), folder, zygote, s3).play()
