"""File sources and file sinks: formats of streams, part files, buckets, rolling and compaction."""
