"""A folder for the import path of Spark's Python daemons: its one package has nothing but the daemon."""
