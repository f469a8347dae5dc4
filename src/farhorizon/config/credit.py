"""Credit: from groups to advantages."""

from typing import ClassVar, Literal

from pydantic import Field

from farhorizon.config.base import Component


class GroupStandardised(Component):
    """Return less the group's mean, over the group's unbiased standard deviation (GRPO, Shao et al. 2024)."""

    kind: Literal["group_standardised"] = "group_standardised"
    builds: ClassVar[str] = "farhorizon.credit.group:GroupStandardised"

    eps: float = Field(default=1e-6, gt=0)
    """Added to the standard deviation."""


class GroupCentred(Component):
    """Return less the group's mean (Dr. GRPO, Liu et al. 2025)."""

    kind: Literal["group_centred"] = "group_centred"
    builds: ClassVar[str] = "farhorizon.credit.group:GroupCentred"
