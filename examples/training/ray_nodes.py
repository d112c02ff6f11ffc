"""Work for every node of the cluster, once all have joined."""

import os
import sys
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

wanted = int(sys.argv[1])
ray.init()
while len([node for node in ray.nodes() if node["Alive"]]) < wanted:
    time.sleep(0.2)


@ray.remote(num_cpus=1)
def where():
    return os.environ["PF_TASK_ID"]


places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in ray.nodes()]
print("ran in", *sorted(ray.get([where.options(scheduling_strategy=place).remote() for place in places])), flush=True)
