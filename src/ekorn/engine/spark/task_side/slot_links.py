"""Runs in Spark's Python worker: connections to slots, kept while Spark reuses the worker."""

from __future__ import annotations

from ekorn.links.link import Address, Link, connect

_MAX_LINKS = 64
_links: dict[tuple[Address, bytes], Link] = {}


def link_to(address: Address, secret: bytes) -> Link:
    """Return the worker's connection to a slot; open it on first use.

    Raises:
        OSError: The slot cannot be reached.
        EOFError: The slot closed the connection.
    """
    key = (address, secret)
    link = _links.get(key)
    if link is None:
        if len(_links) > _MAX_LINKS:  # most belong to jobs that have ended
            for old in _links.values():
                old.close()
            _links.clear()
        link = _links[key] = connect(address, secret)
    return link


def drop_link(address: Address, secret: bytes) -> None:
    """Close the connection to a slot: an answer was not read to its end, or the slot is gone."""
    link = _links.pop((address, secret), None)
    if link is not None:
        link.close()
