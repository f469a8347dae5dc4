"""Demonstrations as contexts: a known path replayed through an environment and written as the agent would."""

from collections.abc import Sequence

from farhorizon.agents.base import AgentFactory
from farhorizon.core.record import Context, Origin, Task
from farhorizon.envs.base import Episode, World
from farhorizon.rollout.instance import Instance


async def demonstrate(
    world: World, agent: AgentFactory, task: Task, actions: Sequence[str], timeout: float = 60.0
) -> tuple[Context, ...]:
    """Contexts whose actions are marked `demonstrated`, so that supervised losses train on them and RL does not.

    Raises:
        ValueError: the path does not solve the task.
        EnvironmentFault: the environment broke.
    """
    episode = Episode(seed=0, group_seed=0, update=0, horizon=len(actions), training=False)
    instance = Instance(world.make, timeout)
    player = agent.begin(episode)
    solved: bool | None = None
    try:
        observation, _ = await instance.reset(task, episode)
        for action in actions:
            player.replay(observation, action, Origin.DEMONSTRATED)
            result, _ = await instance.step(action)
            observation, solved = result.observation, result.success
    finally:
        await instance.close()
    if not solved:
        raise ValueError(f"the path given for task {task.id} does not solve it; it ends with: {observation}")
    return player.contexts()
