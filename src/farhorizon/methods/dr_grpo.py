"""Dr. GRPO: GRPO without its two biases (Liu et al. 2025, arXiv 2503.20783).

The advantage is not divided by the group's standard deviation, and the loss is divided by a constant
instead of by lengths.

Ours: the constant is 1,024 tokens a trajectory unless the recipe says otherwise (the authors' code divides by
its generation limit).
"""

from farhorizon.config.credit import GroupCentred
from farhorizon.config.method import Method
from farhorizon.config.objective import ClippedRatio

recipe = Method(
    name="dr_grpo",
    credit=GroupCentred(),
    objective=ClippedRatio(low=0.8, high=1.2, denominator="constant", constant=1024),
)
