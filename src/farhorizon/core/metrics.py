"""Every metric a run can report, listed once: name and what it says. Fractions lie in 0 to 1, times are seconds."""

from collections.abc import Iterable

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

# ---- rollouts, engine, tasks, the loop: emitted by rollout/, engines/, core/ and runtime/ ----
_LOOP = {
    "horizon": "maximum turns in force (law 5)",
    "success/rate": "share of the scored episodes from the true start that the environment declares solved",
    "success/part_way": "the same for episodes started part-way",
    "reward/mean": "total reward of a scored trajectory, mean",
    "turns/mean": "turns a scored trajectory's policy took itself, mean",
    "actions/valid": "share of the policy's turns whose action was found and accepted",
    "tokens/sampled": "tokens sampled in scored trajectories",
    "tokens/context_max": "longest context",
    "truncated/mean": "share of the scored trajectories that a limit of ours ended",
    "turn_cut/mean": "share of the turns cut by the turn's token limit",
    "samples/forked": "contexts opened because a prompt did not extend the stream",
    "faults/set_aside": "trajectories that infrastructure broke, never scored (law 4)",
    "faults/retries": "episodes begun anew after an infrastructure fault",
    "groups/short": "groups with fewer usable members than asked for",
    "tasks/seen": "training tasks met so far",
    "tasks/solved_once": "training tasks solved from their true start at least once",
    "total/env_steps": "actions taken in training environments since the start, replays included, broken attempts not",
    "total/episodes": "training episodes since the start",
    "total/sampled_tokens": "tokens sampled in training since the start",
    "total/context_tokens": "tokens of all training contexts since the start, prompts included",
    "engine/prefill_tokens": "prompt tokens the engine computed",
    "engine/reused_tokens": "prompt tokens it had cached",
    "engine/sampled_tokens": "tokens it sampled",
    "engine/batches": "batches it ran",
    "time/rollout": "seconds of rolling out",
    "time/learn": "seconds of learning, weights handed to the engine included",
    "time/eval": "seconds of evaluation",
    "time/wall": "seconds since the line before; a session's first line counts from its start, imports and loading "
    "included. An update abandoned half-way is in no line",
    "time/cpu": "CPU seconds in the same time, over all threads and the child processes that have ended",
    "perf/peak_memory_gib": "most resident memory the process has had so far, GiB",
    "perf/sampled_tokens_per_second": "sampled tokens per second of rolling out",
}

METRICS: dict[str, str] = {**_LEARNER, **_LOOP}
"""Name -> description. `stop/REASON` (share of the trajectories that ended for that reason) and `eval/…` (the same
names, and `eval/success/CATEGORY`, over an evaluation's episodes; `eval/total/…` count that evaluation alone) are
families."""


def check_names(names: Iterable[str]) -> None:
    """Raise ValueError for a metric this page does not list."""
    for name in names:
        plain = name.removeprefix("eval/")
        if plain not in METRICS and not plain.startswith(("stop/", "success/")):
            raise ValueError(f'metric "{name}" is not listed in core/metrics.py')
