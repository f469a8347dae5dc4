"""Two updates by one learner, or by two gloo ranks when run as a script: `python -m learners.two_ranks FOLDER`,
from `tests/`.

Ranks are forked after the imports and before any backward pass, which spares a second import of torch.
"""

import sys
from typing import Any

import torch
from learners.episodes import batch, gradients, group, micro, trajectory

from farhorizon.config.credit import GroupCentred
from farhorizon.config.learner import AdamW
from farhorizon.config.objective import KL, ClippedRatio
from farhorizon.core.errors import Interrupted
from farhorizon.learners.torch_learner import TorchLearner


def learner(model=None, objective=None, **fields) -> TorchLearner:
    """A learner of the micro model; `fields` are of its configuration or further resources."""
    settings = {name: fields.pop(name) for name in list(fields) if name in AdamW.model_fields}
    objective = objective or ClippedRatio()
    resources = {"credit": GroupCentred().build(), "objective": objective.build(), "temperature": 0.8}
    config = AdamW(**{"learning_rate": 1e-2, "max_grad_norm": 1e9} | settings)
    return config.build(model=model if model is not None else micro(), **resources | fields)


def two_updates() -> dict[str, Any]:
    """Gradients of four optimizer steps, and the second update's metrics and arrays."""
    model, caught = micro(dtype=torch.float64), []
    made = learner(
        model,
        ClippedRatio(kl=KL(coefficient=0.1)),
        reference=micro(1, torch.float64),
        steps_per_update=2,
        tokens_per_microbatch=70,
    )
    made._optimizer.register_step_pre_hook(lambda *_: caught.append(gradients(model)))
    made.update(batch(), 0)
    metrics, arrays = made.update(batch(seed=1), 1)
    return {"gradients": caught, "metrics": metrics, "arrays": arrays}


def stop() -> None:
    """A `check_stop` that stops."""
    raise Interrupted("stop")


def stopped() -> bool:
    """Rank 1 alone is asked to stop; both must leave, with their weights as they were."""
    made = learner(check_stop=stop if torch.distributed.get_rank() else lambda: None)
    before = {name: tensor.clone() for name, tensor in made.weights().items()}
    try:
        made.update(batch(), 0)
    except Interrupted:
        return all(torch.equal(before[name], tensor) for name, tensor in made.weights().items())
    return False


def one_item() -> float:
    """Fewer contexts than ranks: one of them has nothing to compute."""
    return learner().update([group([trajectory("ttaa", reward=1.0), trajectory("tto")])], 0)[0]["learner/grad_norm"]


def _rank(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.save({**two_updates(), "stopped": stopped(), "one_item": one_item()}, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.multiprocessing.start_processes(_rank, (sys.argv[1],), nprocs=2, start_method="fork")
