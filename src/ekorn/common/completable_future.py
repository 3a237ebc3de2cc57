"""`CompletableFuture`: a result that is not available yet, under PyFlink's name."""

from ekorn.program.running.completable_future import CompletableFuture

__all__ = ["CompletableFuture"]
