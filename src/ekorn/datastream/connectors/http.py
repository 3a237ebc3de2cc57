"""Lookups of an HTTP service for each record, for `AsyncDataStream`."""

from ekorn.connectors.http_lookup import HttpLookup, HttpRequest, HttpResponse

__all__ = ["HttpLookup", "HttpRequest", "HttpResponse"]
