"""The seams: Protocols and nothing else."""
