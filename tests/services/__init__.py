"""Services that tests start on this machine: one server per test run, on loopback."""
