"""Drawing tokens: an inverse cumulative distribution per row, from uniforms made elsewhere."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def draw(
    logits: Tensor, temperatures: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Draw one token a row.

    Args:
        logits: `[rows, vocabulary]`.
        temperatures: what each row's logits are divided by, `[rows]`; at 0 the most likely token is taken and
            log-probabilities are those at temperature 1.
        uniforms: in [0, 1), `[rows]`.

    Returns:
        Ids `[rows]` and their log-probabilities `[rows]`. An id of probability zero is never drawn: the first
        id is taken at which the cumulative sum (float64) exceeds the uniform's share of the total.
    """
    greedy = temperatures == 0
    divisor = np.where(greedy, 1.0, temperatures).astype(np.float32)
    logps = torch.log_softmax(logits.float() / torch.from_numpy(divisor).to(logits.device)[:, None], dim=-1)
    if greedy.all():
        ids = logps.argmax(dim=-1)
    else:
        cumulative = logps.exp().double().cumsum_(dim=-1)
        total = cumulative[:, -1:]
        share = torch.from_numpy(uniforms).to(logits.device)[:, None] * total
        share = torch.minimum(share, torch.nextafter(total, torch.zeros_like(total)))
        ids = torch.searchsorted(cumulative, share, right=True)[:, 0].clamp_(max=logits.shape[1] - 1)
        if greedy.any():
            ids = torch.where(torch.from_numpy(greedy).to(logits.device), logps.argmax(dim=-1), ids)
    chosen = logps.gather(1, ids[:, None])[:, 0]
    if not torch.isfinite(chosen).all():
        rows = (~torch.isfinite(chosen)).nonzero()[:, 0].tolist()
        raise FloatingPointError(f"the model's logits are not finite in rows {rows} of {len(chosen)}")
    return ids.cpu().numpy(), chosen.cpu().numpy()
