"""What a cache holds never changes an answer: cached = recomputed, alone = in company, in any order."""

import asyncio

import numpy as np
import pytest
import torch
from engines.micro_engine import ask, request, same
from hypothesis import given, settings
from hypothesis import strategies as st

from farhorizon.engines import local
from farhorizon.models.cache import Sessions

RNG = np.random.default_rng(5)
PROMPT = RNG.integers(1, 64, 24)


def play(micro, engine, session, turns, prompt=PROMPT, member=0):
    """A session of several turns; each answer is checked against a plain forward pass."""
    stream, answers = np.asarray(prompt, np.int32), []
    for turn in range(turns):
        asked = request(stream, member=member, turn=turn, session=session)
        [answer] = ask(engine, asked)
        micro.check(asked, answer)
        answers.append(answer)
        observation = np.random.default_rng([member, turn]).integers(1, 64, 3 + turn % 3)
        stream = np.concatenate([stream, answer.token_ids, observation]).astype(np.int32)
    return answers, stream


def test_logps_equal_a_plain_forward_over_twelve_turns(micro):
    engine = micro.engine()
    play(micro, engine, "episode", turns=12)
    counts = engine.metrics()
    assert counts["engine/sampled_tokens"] == 12 * 6
    # Each prompt token once, and the last token sampled in a turn with the next turn's observation.
    observations = sum(3 + turn % 3 for turn in range(11))
    assert counts["engine/prefill_tokens"] == len(PROMPT) + observations + 11
    assert counts["engine/batches"] == 12
    assert engine.metrics()["engine/sampled_tokens"] == 0


def test_cached_equals_recomputed(micro):
    cached, _ = play(micro, micro.engine(), "episode", turns=5)
    recomputed, _ = play(micro, micro.engine(), None, turns=5)
    for first, second in zip(cached, recomputed, strict=True):
        same(first, second)


def test_members_of_a_group_compute_their_prompt_once(micro):
    engine = micro.engine()
    requests = [request(PROMPT, member=m, session=str(m)) for m in range(4)]
    for asked, answer in zip(requests, ask(engine, *requests), strict=True):
        micro.check(asked, answer)
    counts = engine.metrics()
    assert counts["engine/prefill_tokens"] == len(PROMPT)
    assert counts["engine/reused_tokens"] == 3 * len(PROMPT)


def test_different_prompts_compute_their_common_beginning_once(micro):
    engine = micro.engine()
    prompts = [np.concatenate([PROMPT, [member, 9]]) for member in (1, 2, 3)]
    requests = [request(prompt, member=m) for m, prompt in enumerate(prompts)]
    for asked, answer in zip(requests, ask(engine, *requests), strict=True):
        micro.check(asked, answer)
    assert engine.metrics()["engine/prefill_tokens"] == len(PROMPT) + 3 * 2


def test_a_new_session_begins_with_what_another_has_computed(micro):
    engine = micro.engine()
    ask(engine, request(PROMPT, session="first"))
    engine.metrics()
    asked = request(np.concatenate([PROMPT, [5]]), session="second")
    micro.check(asked, *ask(engine, asked))
    assert engine.metrics()["engine/prefill_tokens"] == 1


def test_asking_again_computes_the_last_token_alone(micro):
    engine = micro.engine()
    first, again = (ask(engine, request(PROMPT, session="only"))[0] for _ in range(2))
    same(first, again)
    assert engine.metrics()["engine/prefill_tokens"] == len(PROMPT) + 1


def test_a_released_session_is_forgotten(micro):
    engine = micro.engine()
    ask(engine, request(PROMPT, session="only"))
    asyncio.run(engine.release("only"))
    asyncio.run(engine.release("unknown"))
    engine.metrics()
    ask(engine, request(PROMPT, session="only"))
    assert engine.metrics()["engine/reused_tokens"] == 0
    asyncio.run(engine.release("only"))


def test_a_prompt_longer_than_one_forward_pass_is_computed_in_pieces(micro, monkeypatch):
    monkeypatch.setattr(local, "PREFILL_TOKENS", 7)
    engine = micro.engine()
    requests = [request(RNG.integers(1, 64, n), member=n) for n in (3, 4, 19, 8)]
    for asked, answer in zip(requests, ask(engine, *requests), strict=True):
        micro.check(asked, answer)


def test_a_generation_outgrows_the_room_made_for_it(micro, monkeypatch):
    monkeypatch.setattr(local, "HEADROOM", 1)
    asked = [request(PROMPT, tokens=90), request(PROMPT[:3], tokens=70, member=1)]
    for one, answer in zip(asked, ask(micro.engine(), *asked), strict=True):
        micro.check(one, answer)
        assert len(answer.token_ids) == one.limits.turn


@st.composite
def histories(draw):
    """Turns of a few sessions that share beginnings, rewrite their contexts and come together at random."""
    token, how = st.integers(1, 63), st.sampled_from(["extend", "extend", "rewrite"])
    preamble = draw(st.lists(token, min_size=0, max_size=24))
    rounds = []
    for _ in range(draw(st.integers(1, 4))):
        members = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True))
        rounds.append([(member, draw(st.lists(token, min_size=1, max_size=5)), draw(how)) for member in members])
    return preamble, rounds


@settings(max_examples=15)
@given(history=histories(), cache_tokens=st.sampled_from([0, 20, 60, 10_000]), max_batch=st.integers(1, 4))
def test_any_history_is_answered_as_if_nothing_were_cached(shared_micro, history, cache_tokens, max_batch):
    engine = shared_micro.engine(cache_tokens=cache_tokens, max_batch=max_batch, deterministic=True)
    preamble, rounds = history
    streams = {}
    for turn, members in enumerate(rounds):
        asked = []
        for member, observation, how in members:
            before = streams.get(member, preamble) if how == "extend" else preamble[: len(preamble) // 2]
            streams[member] = [*before, *observation]
            asked.append(
                request(streams[member], member=member, turn=turn, tokens=2 + member, stop={3}, session=str(member))
            )
        answers = ask(engine, *asked)
        for one, answer in zip(asked, answers, strict=True):
            shared_micro.check(one, answer)
            streams[one.key.member] += answer.token_ids.tolist()
    assert engine._decoder._sessions.tokens <= cache_tokens
    engine.close()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("max_batch", [1, 3, 8])
def test_answers_do_not_depend_on_company_or_order(micro, deterministic, max_batch):
    requests = [request([*PROMPT[: 1 + 3 * m], m], member=m, tokens=4 + m, stop={9, 17}) for m in range(6)]
    alone = micro.engine()
    expected = [ask(alone, asked)[0] for asked in requests]
    engine = micro.engine(deterministic=deterministic, max_batch=max_batch)
    answers = ask(engine, *reversed(requests))[::-1]
    for asked, answer, other in zip(requests, answers, expected, strict=True):
        same(answer, other)
        assert answer.stop_reason == other.stop_reason
        micro.check(asked, answer)


def keys_and_values(tokens):
    return torch.arange(tokens, dtype=torch.float32).expand(1, 2, 1, tokens).unsqueeze(-1)


def test_the_least_recently_used_session_goes_first_and_accounting_is_exact():
    kept = Sessions(limit=30)
    for session in "abc":
        kept.keep(session, np.arange(8, dtype=np.int32), keys_and_values(8))
    assert kept.tokens == 30  # eight and a quarter more, each
    kept.longest(np.arange(3, dtype=np.int32), "a")
    kept.keep("d", np.arange(5, dtype=np.int32), keys_and_values(5))
    assert [session in kept for session in "abcd"] == [True, False, True, True]
    kept.keep("e", np.arange(31, dtype=np.int32), keys_and_values(31))
    assert "e" not in kept
    for session in "abcde":
        kept.drop(session)
    assert kept.tokens == 0


def test_a_session_that_grows_keeps_what_it_had():
    kept = Sessions(limit=100)
    for tokens in (8, 10, 25, 9):
        stream = np.arange(tokens, dtype=np.int32)
        kept.keep("a", stream, keys_and_values(tokens))
        found, shared = kept.longest(stream, "a")
        assert shared == tokens
        torch.testing.assert_close(found.kv[:, :, :, :tokens], keys_and_values(tokens))
        assert kept.tokens == found.kv.shape[3]
