"""TextCraft: craft a goal item from Minecraft's recipes, in text."""

from farhorizon.envs.textcraft.world import TextCraft

__all__ = ["TextCraft"]
