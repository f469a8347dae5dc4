"""`farhorizon eval`"""

import asyncio
import json
import re
import shlex
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from farhorizon.cli.commands import command
from farhorizon.cli.progress import Progress
from farhorizon.cli.who import find_weights, recipe_on, run_directory
from farhorizon.config.recipe import Recipe, dump, read
from farhorizon.core.errors import Interrupted, UserError
from farhorizon.envs.base import World
from farhorizon.envs.players import players
from farhorizon.evaluation import compare
from farhorizon.evaluation.directory import EvaluationDirectory, plan
from farhorizon.evaluation.players import PlayerSubject
from farhorizon.evaluation.subject import Subject
from farhorizon.runtime.interrupt import StopSignal
from farhorizon.runtime.report import Reporter


def eval_(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A run, a model (name, directory, hub id), oracle, random, or a heuristic of the environment."
        ),
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="Recipe: environment, agent, sampling and limits.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Override a value; may be repeated."),
    ] = None,
    env: Annotated[str | None, typer.Option(help="Environment, where there is no recipe.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Of a run: last, best, start, or updates finished. Default: last.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of the environment.")] = "eval",
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks, spread over categories. Default: all.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Episodes per task. Default: the recipe's.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the most likely token.")] = False,
    temperature: Annotated[float | None, typer.Option(min=0, help="Default: the recipe's.")] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="Maximum turns. Default: the recipe's longest.")] = None,
    seed: Annotated[int, typer.Option(help="Of all noise; equal seeds pair two evaluations.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Directory; continues there. Default: evals/NAME-DATE.")] = None,
    compare_: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="A B", help="Compare two evaluations, task by task."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Evaluate a model or another player on held-out tasks, or compare two evaluations."""
    if (model is None) == (compare_ is None):
        raise UserError("eval takes a model or player, or --compare A B")
    if compare_ is not None:
        comparison = compare.compared(*compare_)
        shown = json.dumps(asdict(comparison), indent=1) + "\n" if json_ else None
        print(shown or compare.as_markdown(comparison, *map(str, compare_)), end="")
        return
    assert model is not None
    if greedy and temperature is not None:
        raise UserError("--greedy is --temperature 0; give one of them")
    if any(override.partition("=")[0].strip() == "runtime.seed" for override in set_ or []):
        raise UserError("the seed of an evaluation is --seed, not --set runtime.seed")
    chosen = _recipe(model, recipe, env, [*(set_ or []), f"runtime.seed={seed}"])
    wanted = 0.0 if greedy else temperature
    world = chosen.env.build()
    planned = plan(
        world,
        chosen.env.model_dump(mode="json"),
        split,
        tasks,
        samples or chosen.eval.samples,
        turns or chosen.eval.horizon or chosen.horizon.build().longest,
        seed,
    )
    directory = EvaluationDirectory(out or Path("evals") / f"{_plain(model)}-{time.strftime('%Y%m%d-%H%M%S')}")
    with Progress() as report, StopSignal() as stop:
        subject = _subject(model, chosen, world, checkpoint, wanted, planned.turns, report)
        with closing(subject):
            work = directory.carry_out(
                planned,
                subject,
                dump(chosen),
                lambda episodes: report.begin("evaluating", episodes),
                lambda _: report.advance(),
            )
            try:
                asyncio.run(stop.guard(work))
            except Interrupted:
                again = f"repeat the command with --out {shlex.quote(str(directory.path))} to continue"
                raise Interrupted(f"stopped; what was played is in {directory.path}; {again}") from None
    print((directory.path / "report.md").read_text(), end="")
    print(
        f"\nThe evaluation is in {directory.path}; read its episodes with: {command('show', directory.path, '--eval')}"
    )


def _recipe(name: str, file: Path | None, env: str | None, overrides: list[str]) -> Recipe:
    run = run_directory(name)
    if sum(given is not None for given in (run, file, env)) > 1:
        which = "a run brings its own recipe" if run is not None else "--env is for evaluating without a recipe"
        raise UserError(f"{which}; change its values with --set")
    if run is not None:
        return read(run / "recipe.toml", overrides)
    if file is not None:
        return read(file, overrides)
    if env is None:
        raise UserError(f"say where {name} plays: --recipe FILE, or --env NAME")
    return recipe_on(env, overrides)


def _subject(
    name: str,
    recipe: Recipe,
    world: World,
    checkpoint: str | None,
    temperature: float | None,
    turns: int,
    report: Reporter,
) -> Subject:
    if checkpoint is not None and run_directory(name) is None:
        raise UserError(f'--checkpoint {checkpoint}: "{name}" is not a run')
    make = players(world).get(name)
    if make is not None:
        if temperature is not None:
            raise UserError(f'"{name}" is not a model; --greedy and --temperature say nothing to it')
        limits, seed = recipe.rollout, recipe.runtime.seed
        return PlayerSubject(name, make, world=world, limits=limits, turns=turns, seed=seed)
    weights = find_weights(name, world, recipe, checkpoint or "last", report)
    from farhorizon.evaluation.model import ModelSubject

    if temperature is None:
        temperature = recipe.sampling.temperature if recipe.eval.temperature is None else recipe.eval.temperature
    return ModelSubject(
        recipe,
        weights.source,
        name=name,
        finished=weights.finished,
        world=world,
        temperature=temperature,
        turns=turns,
    )


def _plain(name: str) -> str:
    """A name for a directory."""
    return re.sub(r"[^\w.-]+", "-", Path(name).resolve().name if Path(name).exists() else Path(name).name)
