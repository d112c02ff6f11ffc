"""Elastic training with Paddle: ``python paddle_elastic.py --checkpoint /data/model.pdparams``.

When the job grows or shrinks, PaddleFlow stops this program on every task and starts it again with the PADDLE_*
variables of the new membership; the script only has to save what it has learned and to load it again.
"""

import argparse
import os
import time
from pathlib import Path

import paddle
import paddle.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds a step takes longer, to have time to watch")
    options = parser.parse_args()

    size = int(os.environ["PADDLE_TRAINERS_NUM"])
    if size > 1:
        dist.init_parallel_env()
    rank = dist.get_rank()
    paddle.seed(7)
    model = paddle.nn.Linear(4, 1)
    trained = paddle.DataParallel(model) if size > 1 else model
    optimizer = paddle.optimizer.SGD(0.02, parameters=model.parameters())
    first = 0
    if options.checkpoint.exists():
        saved = paddle.load(str(options.checkpoint))
        model.set_state_dict(saved["model"])
        first = saved["step"]

    inputs = paddle.uniform([240, 4], min=-1, max=1)
    outputs = inputs @ paddle.to_tensor([[2.0], [-3.0], [0.5], [1.0]])
    for step in range(first, options.steps):
        loss = paddle.nn.functional.mse_loss(trained(inputs[rank::size]), outputs[rank::size])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if step % 10 == 0 and rank == 0:
            print(f"step {step} size {size} loss {float(loss):.6f}", flush=True)
            fresh = options.checkpoint.with_suffix(".new")
            paddle.save({"model": model.state_dict(), "step": step}, str(fresh))
            fresh.replace(options.checkpoint)  # whole at any moment
        time.sleep(options.pause)


if __name__ == "__main__":
    main()
