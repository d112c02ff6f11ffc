"""Elastic training with PyTorch's own launcher: ``torchrun torch_elastic.py --checkpoint /data/model.pt``.

torchrun finds everything it needs in the environment PaddleFlow gives each task. When the job grows or shrinks, it
stops its processes on all tasks and starts them again with new ranks; the script only has to save what it has learned
and to load it again.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds a step takes longer, to have time to watch")
    options = parser.parse_args()

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(7)
    model = torch.nn.Linear(4, 1).to(device)
    trained = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    first = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, map_location=device)
        model.load_state_dict(saved["model"])
        first = saved["step"]

    inputs = (torch.rand(240, 4) * 2 - 1).to(device)
    outputs = inputs @ torch.tensor([[2.0], [-3.0], [0.5], [1.0]], device=device)
    for step in range(first, options.steps):
        loss = torch.nn.functional.mse_loss(trained(inputs[rank::size]), outputs[rank::size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            total = loss.detach().clone()
            dist.all_reduce(total)
            if rank == 0:
                print(f"step {step} size {size} loss {total.item() / size:.6f}", flush=True)
                fresh = options.checkpoint.with_suffix(".new")
                torch.save({"model": model.state_dict(), "step": step}, fresh)
                fresh.replace(options.checkpoint)  # whole at any moment
        time.sleep(options.pause)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
