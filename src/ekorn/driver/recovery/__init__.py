"""What follows a failure, and what a job starts from: restart decisions, restore points."""
