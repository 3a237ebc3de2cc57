"""Errors of connections to RabbitMQ."""

from __future__ import annotations

from ekorn.errors.base import EkornError


class RabbitMQError(EkornError):
    """RabbitMQ refused something, or did not answer in time: where, and what the client says. It holds no secrets."""

    def __str__(self) -> str:
        where, found = self.args
        return f"{where}: {found}"
