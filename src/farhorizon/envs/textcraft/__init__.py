"""TextCraft: craft a goal item from Minecraft's recipes or from made-up ones, in text."""

from farhorizon.envs.textcraft.generated import TextCraftGenerated
from farhorizon.envs.textcraft.world import TextCraft

__all__ = ["TextCraft", "TextCraftGenerated"]
