"""Which folder below a file sink's base path a record goes to."""

from tamias.connectors.bucket_assigners import BucketAssigner, BucketContext

__all__ = ["BucketAssigner", "BucketContext"]
