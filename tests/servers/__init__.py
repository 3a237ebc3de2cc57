"""Real servers that tests start on this machine: one of each kind per test run, on loopback."""
