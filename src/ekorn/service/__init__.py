"""The standing service: takes programs, runs each in a driver process of its own, and outlives its clients."""
