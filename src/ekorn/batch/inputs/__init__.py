"""The inputs of DataSet programs: files, bounded sources, formats of the user. Splits are read in Spark's tasks."""
