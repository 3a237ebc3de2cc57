"""Where a DataSet program writes: files, formats of the user, the standard output of the tasks."""
