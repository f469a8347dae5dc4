"""Law 1: what is trained is exactly what was sampled, in the context it was sampled in."""

import asyncio

import numpy as np
import pytest
from toys import CountingWorld, ForgetfulTokenizer, ToyTokenizer

from farhorizon.agents.append_only import AppendOnlyAgent
from farhorizon.config.agent import AppendOnly
from farhorizon.core.errors import UserError
from farhorizon.core.record import Origin, StopReason
from farhorizon.engines.base import Generation
from farhorizon.envs.base import Episode

EPISODE = Episode(seed=0, group_seed=0, update=0, horizon=9)


def begin(renderer, tokenizer=None):
    config = AppendOnly(renderer=renderer)
    return AppendOnlyAgent(config, tokenizer=tokenizer or ToyTokenizer(), world=CountingWorld()).begin(EPISODE)


def play(agent, turns):
    """Answer each observation with the given ids; returns the prompts as the engine saw them."""
    prompts = []

    async def run():
        for observation, ids in turns:

            async def generate(prompt, context, call, stop, ids=ids):
                prompts.append((prompt, context))
                logps = -np.ones(len(ids), np.float32)
                return Generation(np.array(ids, np.int32), logps, np.zeros(len(ids), np.int32), StopReason.STOP)

            await agent.act(observation, generate)

    asyncio.run(run())
    return prompts


def ids(*texts):
    tokenizer = ToyTokenizer()
    return [tokenizer.vocabulary.index(text) for text in texts]


RENDERERS = [{"kind": "transcript"}, {"kind": "chat", "style": "action"}, {"kind": "chat", "examples": 1}]


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: renderer["kind"])
def test_trl_5224_ids_trained_are_prompt_ids_seen_and_ids_sampled_bit_for_bit(renderer):
    """`[he, llo]` decodes to `hello`, which encodes to one id: re-encoding would change what was sampled."""
    agent = begin(renderer)
    end = ids("\n") if renderer["kind"] == "transcript" else ids("<eos>")
    answers = [ids("he", "llo") + end, ids(" ", "1", "2") + end, ids("he", "l", "l", "o") + end]
    prompts = play(agent, [("Count to 2.", answers[0]), ("Say 1.", answers[1]), ("Said 1.", answers[2])])
    (context,) = agent.contexts()
    seen = [list(prompt) + answer for (prompt, _), answer in zip(prompts, answers, strict=True)]
    assert context.token_ids.tolist() == seen[-1]
    for earlier in seen:
        assert context.token_ids[: len(earlier)].tolist() == earlier
    assert context.token_ids[context.sampled].tolist() == [token for answer in answers for token in answer]
    assert agent.forks == 0


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: renderer["kind"])
def test_skyrl_710_mask_is_one_exactly_on_sampled_ids_the_end_included(renderer):
    agent = begin(renderer)
    answer = ids("1") + (ids("\n") if renderer["kind"] == "transcript" else ids("<eos>"))
    play(agent, [("Count to 2.", answer), ("Said 1.", answer)])
    (context,) = agent.contexts()
    sampled = [segment for segment in context.segments if segment.origin is Origin.SAMPLED]
    assert [segment.token_ids.tolist() for segment in sampled] == [answer, answer]
    assert context.sampled.sum() == 2 * len(answer)


def test_verl_6501_incremental_ids_equal_the_full_rendering():
    """The newline behind the end marker is part of the stream, though no model samples it."""
    tokenizer = ToyTokenizer(merges=())
    agent = begin({"kind": "chat", "style": "action"}, tokenizer)
    one, two = tokenizer("1")["input_ids"] + [0], tokenizer("2")["input_ids"] + [0]
    play(agent, [("Count to 2.", one), ("Said 1.", two)])
    system = f"{CountingWorld().instructions()}\n\nAnswer each message with exactly one action and nothing else."
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "Count to 2."}, {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Said 1."}, {"role": "assistant", "content": "2"},
    ]  # fmt: skip
    rendered = tokenizer.apply_chat_template(messages).removesuffix("\n")
    assert tokenizer.decode(agent.contexts()[0].token_ids) == rendered
    assert agent.contexts()[0].token_ids.tolist() == tokenizer(rendered)["input_ids"]


def test_answer_cut_before_its_end_marker_is_closed_by_the_template():
    tokenizer = ToyTokenizer()
    agent = begin({"kind": "chat", "style": "action"}, tokenizer)
    play(agent, [("Count to 2.", ids("1")), ("Said 1.", ids("2", "<eos>"))])
    assert "<assistant>1<eos>\n<user>Said 1.<eos>\n<assistant>2<eos>" in tokenizer.decode(agent.contexts()[0].token_ids)


def test_rllm_352_template_that_rewrites_history_forks_a_context_each_turn_and_counts_it():
    tokenizer = ForgetfulTokenizer()
    agent = begin({"kind": "chat"}, tokenizer)
    thought = tokenizer("<think>hm</think>Action: 1")["input_ids"] + [0]
    prompts = play(agent, [("Count to 3.", thought), ("Said 1.", thought), ("Said 2.", thought)])
    contexts = agent.contexts()
    assert agent.forks == 2
    assert [index for _, index in prompts] == [0, 1, 2]
    for context, (prompt, _) in zip(contexts, prompts, strict=True):
        assert context.token_ids.tolist() == [*prompt, *thought]
        assert context.sampled.sum() == len(thought)
    assert "<think>" not in tokenizer.decode(prompts[2][0])


def test_observations_and_template_are_told_apart():
    agent = begin({"kind": "transcript"})
    play(agent, [("Count to 2.", ids("1", "\n")), ("Said 1.", ids("2", "\n"))])
    tokenizer = ToyTokenizer()
    shown = [
        tokenizer.decode(segment.token_ids)
        for segment in agent.contexts()[0].segments
        if segment.origin is Origin.OBSERVATION
    ]
    assert shown == ["Count to 2.", "Said 1."]


def test_replayed_actions_carry_no_loss_and_read_like_sampled_ones():
    tokenizer = ToyTokenizer(merges=())
    written = tokenizer(" 1\n")["input_ids"]
    replayed, played = begin({"kind": "transcript"}, tokenizer), begin({"kind": "transcript"}, tokenizer)
    replayed.replay("Count to 2.", "1", Origin.PREFIX)
    play(replayed, [("Said 1.", tokenizer(" 2\n")["input_ids"])])
    play(played, [("Count to 2.", written), ("Said 1.", tokenizer(" 2\n")["input_ids"])])
    assert replayed.contexts()[0].token_ids.tolist() == played.contexts()[0].token_ids.tolist()
    assert replayed.contexts()[0].sampled.sum() == len(written)


@pytest.mark.parametrize(
    ("renderer", "text", "expected"),
    [
        ({"kind": "transcript"}, " get 1 log\n", "get 1 log"),
        ({"kind": "transcript"}, " \n", None),
        ({"kind": "chat"}, "I need a log.\nAction: get 1 log", "get 1 log"),
        ({"kind": "chat"}, "I need a log.", None),
        ({"kind": "chat"}, "Action: a\nAction: b", None),
        ({"kind": "chat"}, "Action:", None),
        ({"kind": "chat", "style": "action"}, "get_1: 'log'", "get_1: 'log'"),
        ({"kind": "chat", "style": "action"}, "get 1 log\nget 2 log", None),
        ({"kind": "chat", "style": "action"}, "  ", None),
    ],
)
def test_none_or_several_actions_is_a_stated_error(renderer, text, expected):
    tokenizer = ToyTokenizer()
    agent = begin(renderer, tokenizer)
    turns = []

    async def generate(prompt, context, call, stop):
        written = np.array(tokenizer(text)["input_ids"], np.int32)
        return Generation(written, -np.ones(len(written)), np.zeros(len(written)), StopReason.STOP)

    async def run():
        turns.append(await agent.act("go", generate))

    asyncio.run(run())
    assert turns[0].parsed == expected
    assert (turns[0].parse_error is None) == (expected is not None)


def test_chat_without_a_template_says_what_to_use():
    tokenizer = ToyTokenizer()
    tokenizer.chat_template = None
    with pytest.raises(UserError, match='use "transcript"'):
        begin({"kind": "chat"}, tokenizer)
