"""One handler for each command: load, call the pure rule, save. Called by the intake and by nobody else."""
