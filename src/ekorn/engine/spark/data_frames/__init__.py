"""DataFrames in and out, on the driver's side of Spark; and the DataSource by which Spark reads a job's output."""
