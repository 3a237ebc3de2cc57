"""What people who run a job see of it: lines on the terminal, progress, and tables in notebooks."""
