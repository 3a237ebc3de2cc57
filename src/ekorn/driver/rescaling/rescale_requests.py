"""Requests for another parallelism: from the thread that asks, through the loop that rescales, to the answer."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from ekorn.errors import RescaleError

__all__ = ["RescaleRequest"]


@dataclass(eq=False)
class RescaleRequest:
    """One requested rescale. It is answered once; later answers change nothing.

    Attributes:
        parallelism: The default parallelism that is wanted.
        most_slots: The slots that the job may take from then on; None for as many as before.
        directory: Where the job goes on from a savepoint; None for a checkpoint, if it takes any.
        cause: The reason, for people to read.
        future: Has the path of the checkpoint that the job went on from, or the reason why it goes on as it was.
    """

    parallelism: int
    most_slots: int | None = None
    directory: str | None = None
    cause: str = "a request"
    future: Future[str] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # the job decides, so the future cannot be cancelled

    def complete(self, path: str) -> None:
        """Answer that the job runs with the parallelism."""
        if not self.future.done():
            self.future.set_result(path)

    def refuse(self, why: str) -> None:
        """Answer that the job does not."""
        if not self.future.done():
            self.future.set_exception(RescaleError(f"the job was not rescaled to {self.parallelism}: {why}"))
