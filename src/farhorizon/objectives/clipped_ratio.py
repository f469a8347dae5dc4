"""PPO's clipped surrogate with separate bounds, a mismatch weight and a KL penalty in the loss."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from farhorizon.config import objective as configs
from farhorizon.objectives.base import ActionTokens, Terms
from farhorizon.objectives.reducers import token_weights


def clipped_surrogate(ratio: Tensor, advantages: Tensor, *, low: float, high: float) -> Tensor:
    """max(-A r, -A clip(r, low, high)) of each token, `[action tokens]` (Schulman et al. 2017, eq. 7; bounds of
    the ratio, not epsilons). No dual clip."""
    return torch.maximum(-advantages * ratio, -advantages * ratio.clamp(low, high))


def truncated_weight(logp_prox: Tensor, logp_behaviour: Tensor, cap: float) -> Tensor:
    """min(exp(logp_prox - logp_behaviour), cap), detached, `[action tokens]`: token-level truncated importance
    sampling (Yao et al. 2025)."""
    return (logp_prox - logp_behaviour).exp().clamp(max=cap).detach()


def kl_k2(logp: Tensor, logp_ref: Tensor) -> Tensor:
    """d²/2, d = logp - logp_ref, `[action tokens]`; a loss with the gradient of the reverse KL(policy‖ref)."""
    return (logp - logp_ref).square() / 2


def kl_k3(logp: Tensor, logp_ref: Tensor) -> Tensor:
    """exp(-d) + d - 1, `[action tokens]` (GRPO); a loss with the gradient of the forward KL(ref‖policy)."""
    difference = logp - logp_ref
    return (-difference).exp() + difference - 1


ESTIMATORS = {"k2": kl_k2, "k3": kl_k3}


class ClippedRatio:
    """weight · clipped surrogate + coefficient · KL, token by token.

    The ratio is against `logp_prox` alone; the gap between sampler and learner enters through the mismatch
    weight, which multiplies the policy term and not the KL, and leaves the denominator alone.
    """

    def __init__(self, config: configs.ClippedRatio) -> None:
        self._config = config
        penalised = config.kl.coefficient > 0
        self.needs = frozenset({"logp_ref"}) if penalised else frozenset()
        self.silent_without_advantage = not penalised

    def weights(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `reducers.token_weights`."""
        return token_weights(self._config.denominator, lengths, self._config.constant)

    def __call__(self, tokens: ActionTokens) -> Terms:
        """Terms and metrics of one micro-batch."""
        config = self._config
        ratio = (tokens.logp - tokens.logp_prox).exp()
        loss = clipped_surrogate(ratio, tokens.advantages, low=config.low, high=config.high)
        gap = (tokens.logp_prox - tokens.logp_behaviour).detach()
        positive, negative = tokens.advantages > 0, tokens.advantages < 0
        means = {
            "objective/ratio_mean": _mean(ratio),
            "objective/clip_fraction_positive": _fraction(ratio > config.high, positive),
            "objective/clip_fraction_negative": _fraction(ratio < config.low, negative),
            "objective/mismatch_abs_mean": _mean(gap.abs()),
        }
        if config.mismatch.kind == "token_truncation":
            loss = loss * truncated_weight(tokens.logp_prox, tokens.logp_behaviour, config.mismatch.cap)
            means["objective/mismatch_capped_fraction"] = _mean((gap.exp() > config.mismatch.cap).double())
        if config.kl.coefficient > 0:
            if tokens.logp_ref is None:
                raise ValueError("a KL penalty needs logp_ref")
            kl = ESTIMATORS[config.kl.estimator](tokens.logp, tokens.logp_ref)
            loss = loss + config.kl.coefficient * kl
            means["objective/kl"] = _mean(kl)
        return Terms(loss, means, {"objective/mismatch_abs_max": gap.abs().max()})


def _mean(values: Tensor) -> tuple[Tensor, Tensor]:
    return values.detach().double().sum(), values.new_tensor(values.numel(), dtype=torch.float64)


def _fraction(hit: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
    return (hit & of).sum().double(), of.sum().double()
