"""ScalingInter-RL: GRPO under a horizon that grows in stages (Xi et al. 2025, arXiv 2509.08755, section 3.3).

The paper prints no schedule; these are the turns of its released TextCraft script. Its scheduler jumps a
stage when a run is resumed; here the horizon is a pure function of the update.
"""

from farhorizon.config.credit import GroupStandardised
from farhorizon.config.horizon import Stages
from farhorizon.config.method import Method
from farhorizon.config.objective import KL, ClippedRatio

recipe = Method(
    name="scaling_inter_rl",
    horizon=Stages(values=(10, 20, 30), every=100),
    credit=GroupStandardised(),
    objective=ClippedRatio(low=0.8, high=1.2, kl=KL(coefficient=1e-3)),
)
