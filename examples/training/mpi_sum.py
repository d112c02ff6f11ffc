"""All ranks add up their numbers, and say in which task they run."""

import os

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print(f"rank {world.rank} of {world.size} sum {total} in {os.environ['PF_TASK_ID']}", flush=True)
