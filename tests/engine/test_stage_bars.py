"""Spark's stage bars are hidden while any job runs, and drawn again after the last one. The JVM is a fake."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.engine.spark.driver_side.job_group import StageBars


class Bar:
    """A `ConsoleProgressBar`."""

    def __init__(self, spark: Spark) -> None:
        self.drawn = True

    def finishAll(self) -> None:
        assert self.drawn

    def stop(self) -> None:
        self.drawn = False


class Some:
    """A `scala.Option` with or without a bar."""

    def __init__(self, bar: Bar | None = None) -> None:
        self._bar = bar

    def isDefined(self) -> bool:
        return self._bar is not None

    def get(self) -> Any:
        return self._bar


class Spark:
    """Spark's context in Python and in the JVM at once."""

    def __init__(self, name: str, *, bars: bool, field: str = "_progressBar") -> None:
        self.applicationId = name
        self._fields = {field: Some(Bar(self) if bars else None)}
        classes = {"org.apache.spark.ui.ConsoleProgressBar": Bar, "scala": SimpleNamespace(Option=self)}
        self._jvm = SimpleNamespace(**classes)
        self._jsc = self

    def sc(self) -> Spark:
        return self

    def progressBar(self) -> Some:
        return next(iter(self._fields.values()))

    def empty(self) -> Some:
        return Some()

    def apply(self, bar: Bar) -> Some:
        return Some(bar)

    def getClass(self) -> Spark:
        return self

    def getDeclaredField(self, name: str) -> SimpleNamespace:
        assert name in self._fields, f"NoSuchFieldException: {name}"
        return SimpleNamespace(setAccessible=lambda _: None, set=lambda _, value: self._fields.update({name: value}))

    @property
    def draws(self) -> bool:
        return self.progressBar().isDefined() and self.progressBar().get().drawn


def test_bars_are_hidden_until_the_last_of_two_jobs_has_ended() -> None:
    spark = Spark("two jobs", bars=True)
    first, second = StageBars(spark), StageBars(spark)
    first.hide()
    second.hide()
    assert not spark.draws
    first.show()
    assert not spark.draws
    second.show()
    assert spark.draws
    second.show()  # a job that is shut down twice
    first.hide()
    assert not spark.draws


def test_a_session_without_bars_gets_none() -> None:
    spark = Spark("no bars", bars=False)
    bars = StageBars(spark)
    bars.hide()
    bars.show()
    assert not spark.draws


def test_a_spark_whose_bars_cannot_be_hidden_runs_jobs_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    spark = Spark("renamed", bars=True, field="_renamed")
    bars = StageBars(spark)
    with caplog.at_level(logging.INFO):
        bars.hide()
        bars.show()
    assert spark.draws
    assert "set spark.ui.showConsoleProgress=false" in caplog.text
