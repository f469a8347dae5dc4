"""Every metric a run can report, listed once: name and what it says. Fractions lie in 0 to 1, times are seconds."""

# ---- learner: emitted by credit/, objectives/ and learners/ ----
_LEARNER = {
    "credit/groups": "groups of the update",
    "credit/groups_without_signal": "groups whose scored members are one or fewer, or all have the same return",
    "credit/groups_without_signal_fraction": "their share of the groups",
    "learner/learning_rate": "learning rate in force",
    "learner/loss": "loss, averaged over the update's optimizer steps",
    "learner/grad_norm": "global gradient norm before clipping, averaged over the update's optimizer steps",
    "learner/steps": "optimizer steps applied",
    "learner/steps_skipped": "optimizer steps left out because no token had an advantage, nor any other gradient",
    "learner/microbatches": "forward and backward passes",
    "learner/contexts": "contexts with at least one action token",
    "learner/contexts_skipped": "contexts left out of forward and backward because they add exactly nothing",
    "learner/action_tokens": "sampled tokens of scored trajectories: what the denominators count",
    "learner/action_tokens_per_trajectory": "action tokens of a trajectory, mean over those with any",
    "learner/context_tokens": "tokens of the contexts trained on, before sharing",
    "learner/computed_tokens": "tokens computed in training passes, shared prefixes once",
    "objective/ratio_mean": "mean of exp(logp - logp_prox)",
    "objective/clip_fraction_positive": "share of the tokens of positive advantage clipped at the upper bound",
    "objective/clip_fraction_negative": "share of the tokens of negative advantage clipped at the lower bound",
    "objective/mismatch_abs_mean": "mean of |logp_prox - logp_behaviour|",
    "objective/mismatch_abs_max": "largest |logp_prox - logp_behaviour|",
    "objective/mismatch_capped_fraction": "share of the tokens whose mismatch weight is cut at the cap",
    "objective/kl": "mean of the KL estimator against the reference",
    "perf/learner_tokens_per_second": "computed tokens per second of training, scoring included",
}

METRICS: dict[str, str] = {**_LEARNER}
"""Name -> description."""
