"""The same batch through TRL's own loss code, its `eps` passed in: equal losses and gradients (`parity`)."""

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from learners.episodes import context, gradients, group, micro, trajectory

from farhorizon.config.credit import GroupCentred, GroupStandardised
from farhorizon.config.objective import KL, ClippedRatio, Mismatch
from farhorizon.learners.batch import policy_batch
from farhorizon.learners.forward import action_logps
from farhorizon.models.packed import PackedTree
from farhorizon.objectives.base import ActionTokens

pytestmark = pytest.mark.integration
LIMIT = 32
PATTERNS = ("aaooaaa", "aaaa", "aoaoaooo", "aaaaaaaaa", "a", "aaao", "aoooooaa", "aaoaaoaa")


def groups():
    """Two groups of four over one prompt each; completions hold observations, masked by TRL as tool output."""
    members = [
        trajectory(
            context("ttttt" + "o" * (i // 4) + pattern, i, prompt=i // 4),
            reward=[1.0, 0, 0, 1, 1, 0, 0, 0][i],
            seed=i,
        )
        for i, pattern in enumerate(PATTERNS)
    ]
    return [group(members[:4], 0), group(members[4:], 1)]


def noise(count: int, scale: float, seed: int) -> torch.Tensor:
    return scale * torch.randn(count, generator=torch.Generator().manual_seed(seed))


def trl_loss(made, advantages, *, loss_type, gap, behaviour_gap, ref_gap, beta):
    """`GRPOTrainer._compute_loss` on a stand-in for the trainer; gaps are per action token, in order."""
    model = micro(attention="eager").eval()
    rows = [t.contexts[0] for g in made for t in g.trajectories]
    prompts = [int(row.sampled.argmax()) for row in rows]
    width = max(len(row) - prompt for row, prompt in zip(rows, prompts, strict=True))
    prompt_ids, completion_ids = (
        torch.zeros(len(rows), max(prompts), dtype=torch.long),
        torch.zeros(len(rows), width, dtype=torch.long),
    )
    prompt_mask, completion_mask, tool_mask = (
        torch.zeros_like(prompt_ids),
        torch.zeros_like(completion_ids),
        torch.zeros_like(completion_ids),
    )
    for i, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
        ids, length = torch.from_numpy(row.token_ids.astype(np.int64)), len(row) - prompt
        prompt_ids[i, -prompt:], prompt_mask[i, -prompt:] = ids[:prompt], 1
        completion_ids[i, :length], completion_mask[i, :length] = ids[prompt:], 1
        tool_mask[i, :length] = torch.from_numpy(row.sampled[prompt:].astype(np.int64))

    def logps(model, input_ids, attention_mask, keep, **_):
        positions = (attention_mask.cumsum(1) - 1).clamp(min=0)
        logits = model(input_ids=input_ids, attention_mask=attention_mask, position_ids=positions).logits[
            :, -keep - 1 : -1
        ]
        values = (logits / 0.8).log_softmax(-1)
        return values.gather(-1, input_ids[:, -keep:, None])[..., 0], torch.zeros_like(values[..., 0]), None

    def spread(values):
        return torch.zeros(completion_ids.shape).masked_scatter(tool_mask.bool(), values)

    def same(tensor, **_):
        return tensor

    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=logps,
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=beta,
        loss_type=loss_type,
        args=SimpleNamespace(use_bias_correction_kl=False, delta=None),
        epsilon_low=0.2,
        epsilon_high=0.28,
        use_vllm=behaviour_gap is not None,
        vllm_importance_sampling_correction=True,
        model=model,
        current_gradient_accumulation_steps=1,
        max_completion_length=LIMIT,
        _entropy_bonus_enabled=False,
        _metrics=defaultdict(lambda: defaultdict(list)),
        accelerator=SimpleNamespace(num_processes=1, reduce=same, gather=same),
    )
    attention = torch.cat([prompt_mask, completion_mask], 1)
    current = logps(model, torch.cat([prompt_ids, completion_ids], 1), attention, width)[0].detach()
    inputs = {
        "prompt_ids": prompt_ids,
        "prompt_mask": prompt_mask,
        "completion_ids": completion_ids,
        "completion_mask": completion_mask,
        "tool_mask": tool_mask,
        "advantages": advantages,
        "old_per_token_logps": current + spread(gap),
        "num_items_in_batch": tool_mask.sum(),
        "ref_per_token_logps": current + spread(ref_gap),
    }
    if behaviour_gap is not None:
        inputs["importance_sampling_ratio"] = spread(behaviour_gap).exp().clamp(max=2.0)
    trl = pytest.importorskip("trl.trainer.grpo_trainer")
    loss = trl.GRPOTrainer._compute_loss(trainer, model, inputs)
    loss.backward()
    return loss.item(), gradients(model)


def our_loss(made, credit, config, *, gap, behaviour_gap, ref_gap):
    """The packed path with the same log-probabilities at the start of the update, of the sampler and of the
    reference."""
    model, objective = micro().eval(), config.build()
    batch = policy_batch(made, credit.build()(made).advantages, objective.weights, steps=1, skip_silent=False)
    logp = action_logps(model, PackedTree([item.packable for item in batch.items]), 0.8)
    prox = logp.detach() + gap
    tokens = ActionTokens(
        logp,
        prox,
        prox if behaviour_gap is None else prox - behaviour_gap,
        batch.advantages.float(),
        batch.trajectory,
        logp.detach() + ref_gap,
    )
    loss = (objective(tokens).loss * batch.weights.float()).sum()
    loss.backward()
    return loss.item(), gradients(model)


@pytest.mark.parametrize("extras", ["plain", "kl", "mismatch"])
@pytest.mark.parametrize(
    ("loss_type", "denominator", "constant", "scaled"),
    [
        ("dapo", "token", 1, True),
        ("bnpo", "token", 1, True),
        ("grpo", "sequence", 1, True),
        ("dr_grpo", "constant", LIMIT, False),
    ],
)
def test_loss_and_gradient_equal_trl(loss_type, denominator, constant, scaled, extras):
    made = groups()
    count = sum(t.sampled_tokens for g in made for t in g.trajectories)
    rewards = torch.tensor([[t.total_reward for t in g.trajectories] for g in made])
    advantages = rewards - rewards.nanmean(1, keepdim=True)
    if scaled:
        advantages = advantages / (pytest.importorskip("trl.trainer.utils").nanstd(rewards, dim=1, keepdim=True) + 1e-4)
    gaps = {
        "gap": noise(count, 0.3, 0),
        "ref_gap": noise(count, 0.5, 1),
        "behaviour_gap": noise(count, 0.6, 2) if extras == "mismatch" else None,
    }
    beta = 0.04 if extras == "kl" else 0.0
    config = ClippedRatio(
        low=0.8,
        high=1.28,
        denominator=denominator,
        constant=constant,
        kl=KL(coefficient=beta, estimator="k3"),
        mismatch=Mismatch(kind="token_truncation" if extras == "mismatch" else "none", cap=2.0),
    )
    credit = GroupStandardised(eps=1e-4) if scaled else GroupCentred()
    loss, gradient = our_loss(made, credit, config, **gaps)
    theirs, their_gradient = trl_loss(made, advantages.flatten(), loss_type=loss_type, beta=beta, **gaps)
    assert loss == pytest.approx(theirs, abs=2e-6)
    assert (gradient - their_gradient).abs().max() < 2e-5 * their_gradient.abs().max()
