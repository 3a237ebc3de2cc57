"""Conformance kits: the promises of a source, a sink, a file store or a reporter, for your own. See docs/testing.md.

Every kit is a class of tests. pytest runs a subclass that has a fixture; `SourceKit.check(make_case)` needs no pytest.
"""

from ekorn.storage.file_store import FileStore, open_files
from ekorn.testing.kits.file_stores import FileStoreKit, TakesNamesOnce
from ekorn.testing.kits.kit import Kit
from ekorn.testing.kits.reporters import RecoversFromFailures, ReporterCase, ReporterKit
from ekorn.testing.kits.sinks import ColumnSinkKit, RefusesBadRecords, SinkCase, SinkJob, SinkKit
from ekorn.testing.kits.sources import FindsNewInput, RefusesBadInput, SourceCase, SourceJob, SourceKit

__all__ = [
    "ColumnSinkKit",
    "FileStore",
    "FileStoreKit",
    "FindsNewInput",
    "Kit",
    "RecoversFromFailures",
    "RefusesBadInput",
    "RefusesBadRecords",
    "ReporterCase",
    "ReporterKit",
    "SinkCase",
    "SinkJob",
    "SinkKit",
    "SourceCase",
    "SourceJob",
    "SourceKit",
    "TakesNamesOnce",
    "open_files",
]
