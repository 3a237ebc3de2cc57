"""Decides when a job follows the places of its cluster. Pure: what is seen in, a parallelism out."""

from __future__ import annotations

from ekorn.config.settings.elasticity_settings import ReactiveSettings

__all__ = ["ReactiveMode"]


class ReactiveMode:
    """Waits until the number of places has settled, and until the last rescale is long enough ago.

    Args:
        settings: The two times.
        now_ms: When the job started.

    Example:
        >>> mode = ReactiveMode(ReactiveSettings(cooldown_ms=0, stabilization_ms=1000), now_ms=0)
        >>> [mode.observe(now_ms, fitting=4, parallelism=2) for now_ms in (0, 999, 1000)]
        [None, None, 4]
    """

    def __init__(self, settings: ReactiveSettings, now_ms: int) -> None:
        self._settings = settings
        self._rescaled_ms: int | None = None
        self._fitting: int | None = None
        self._since_ms = now_ms

    def observe(self, now_ms: int, *, fitting: int, parallelism: int) -> int | None:
        """Return the parallelism that the job is to have now; None for the one that it has.

        Args:
            now_ms: The time.
            fitting: The highest parallelism that the places allow; 0 if they allow none.
            parallelism: The parallelism of the job.
        """
        if fitting != self._fitting:
            self._fitting, self._since_ms = fitting, now_ms
        if fitting < 1 or fitting == parallelism or now_ms - self._since_ms < self._settings.stabilization_ms:
            return None
        if self._rescaled_ms is not None and now_ms - self._rescaled_ms < self._settings.cooldown_ms:
            return None
        return fitting

    def rescaled(self, now_ms: int) -> None:
        """Note that a rescale has ended, whether it succeeded or not."""
        self._rescaled_ms = now_ms
