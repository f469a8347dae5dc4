"""Data parallelism over `torch.distributed`: what the learner asks for. Without it there is one rank."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def _initialised() -> bool:
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    """This process's index."""
    return dist.get_rank() if _initialised() else 0


def count() -> int:
    """Processes that train together."""
    return dist.get_world_size() if _initialised() else 1


def sum_(tensor: Tensor) -> Tensor:
    """The tensor, summed over ranks in place."""
    if count() > 1:
        dist.all_reduce(tensor)
    return tensor


def maximum_(tensor: Tensor) -> Tensor:
    """The tensor's largest value over ranks, in place."""
    if count() > 1:
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor


def any_rank(value: bool) -> bool:
    """True on every rank as soon as it is on one."""
    return bool(maximum_(torch.tensor(float(value))) > 0)


def gather(value: Any) -> list[Any]:
    """Every rank's value, in rank order."""
    if count() == 1:
        return [value]
    values: list[Any] = [None] * count()
    dist.all_gather_object(values, value)
    return values
