"""Objectives: per-token terms, their reducer, and what corrects or regularises them."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component, Table


class KL(Table):
    """Penalty on the divergence from the frozen reference, in the loss."""

    coefficient: float = Field(default=0.0, ge=0)
    """Weight; 0 loads no reference."""
    estimator: Literal["k2", "k3"] = "k3"
    """Schulman's estimators. k3 (as in GRPO) has the gradient of the forward KL, k2 of the reverse; k1 has
    none in a loss and is not offered."""


class Mismatch(Table):
    """Correction for the gap between the sampler's and the learner's log-probabilities.

    Each token's term is weighted by min(exp(logp_prox - logp_behaviour), cap), detached (token-level truncated
    importance sampling). The denominator does not change.
    """

    kind: Literal["token_truncation", "none"] = "token_truncation"
    cap: float = Field(default=2.0, gt=0)
    """Largest weight."""


class ClippedRatio(Component):
    """PPO's clipped surrogate against `logp_prox`, with separate bounds."""

    kind: Literal["clipped_ratio"] = "clipped_ratio"
    builds: ClassVar[str] = "farhorizon.objectives.clipped_ratio:ClippedRatio"

    low: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Lower bound of the ratio (1 - epsilon_low)."""
    high: Annotated[float, Field(ge=1)] = 1.2
    """Upper bound of the ratio (1 + epsilon_high)."""
    denominator: Literal["token", "sequence", "constant"] = "token"
    """What the sum over tokens is divided by: all action tokens of the step; each trajectory's own, then the number of
    trajectories; or trajectories times `constant`."""
    constant: int = Field(default=1024, ge=1)
    """Tokens per trajectory that `denominator = "constant"` divides by (Dr. GRPO: the generation limit)."""
    kl: KL = KL()
    mismatch: Mismatch = Mismatch()

    @property
    def needs(self) -> frozenset[str]:
        """A frozen reference, when there is a penalty on leaving it."""
        return frozenset({"logp_ref"} if self.kl.coefficient > 0 else ())
