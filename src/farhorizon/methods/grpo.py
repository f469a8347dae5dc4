"""GRPO: group relative policy optimization (Shao et al. 2024, arXiv 2402.03300).

Ours: the loss is a mean over all action tokens of the step (the paper takes the mean of per-sequence
means: `objective.denominator = "sequence"`), and the KL penalty is off unless a coefficient is given (the paper
has 0.04).
"""

from farhorizon.config.credit import GroupStandardised
from farhorizon.config.method import Method
from farhorizon.config.objective import ClippedRatio

recipe = Method(name="grpo", credit=GroupStandardised(), objective=ClippedRatio(low=0.8, high=1.2))
