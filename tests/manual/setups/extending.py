"""The names that the modules of the excerpts import, and the parts that the page describes and does not show."""
# ruff: noqa: F401

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from operator import methodcaller
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.common import Types
from ekorn.common.typeinfo import TypeInformation
from ekorn.config.options.kinds import millis
from ekorn.config.settings.fields import filled_by
from ekorn.connectors.number_seq import contiguous_ranges
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.state.state_handles import State
from ekorn.functions.windows.time_assigners import TimeWindowAssigner
from ekorn.functions.windows.window_values import TimeWindow
from ekorn.rest.known_jobs import KnownJob
from ekorn.state.entry_shapes import ONE_VALUE
from ekorn.state.kinds import Handles, StateKind
from ekorn.state.table_handles import TableHandle
from ekorn.testing.kits import SourceCase, SourceKit

Context = Any
jobs = SimpleNamespace(job_name=None)
options = SimpleNamespace(IDLE_PAUSE=millis("ekorn.epoch.idle-pause", 50, "The maximum time between two epochs."))


class CounterState(State):
    """The interface of step 1."""


class TtlCounterState(CounterState):
    """The handle on a state that expires."""


def get(path, handler, sentence):
    """Add a route."""


def of_job(answer):
    """Return the handler of an answer about a job."""
