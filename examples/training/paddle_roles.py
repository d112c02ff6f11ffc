"""Parameter servers and trainers find their places; the trainers add up numbers over gloo, which meets at a server.

A server serves until its job is over: the platform stops it when the last trainer has succeeded.
"""

import signal

import numpy as np
import paddle
from paddle.distributed import fleet

paddle.enable_static()  # parameter servers know no other mode
fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))
if fleet.is_server():
    print(f"server {fleet.server_index()} of {fleet.server_num()}", flush=True)
    signal.pause()
else:
    print(f"trainer {fleet.worker_index()} of {fleet.worker_num()}", flush=True)
    total = fleet.util.all_reduce(np.array([fleet.worker_index() + 1]), mode="sum", comm_world="worker")
    print(f"sum {int(total[0])}", flush=True)
