"""Who is answered together, how a generation ends, and what happens when something breaks."""

import asyncio
import threading
import time

import numpy as np
import pytest
import torch
from engines.micro_engine import ask, micro_model, request, same

from farhorizon.core.record import StopReason
from farhorizon.engines.base import Limits

PROMPT = np.arange(1, 21)


def run(scenario):
    """Run a coroutine, but not for ever."""
    return asyncio.run(asyncio.wait_for(scenario, 20))


class Spy:
    """Counts and delays the forward passes of an engine's model."""

    def __init__(self, engine, monkeypatch):
        self.rows, self.breaks, self.hold = [], False, threading.Event()
        self.hold.set()
        plain = engine._decoder._model.forward

        def forward(**inputs):
            self.hold.wait(10)
            self.rows.append(inputs["input_ids"].shape[0])
            if self.breaks:
                raise RuntimeError("a bit flipped")
            return plain(**inputs)

        monkeypatch.setattr(engine._decoder._model, "forward", forward)


# How a generation ends


@pytest.mark.parametrize(
    ("limits", "tokens", "reason"),
    [
        (Limits(turn=4, trajectory=9, context=100), 4, StopReason.TURN_TOKENS),
        (Limits(turn=9, trajectory=3, context=100), 3, StopReason.TRAJECTORY_TOKENS),
        (Limits(turn=9, trajectory=9, context=22), 2, StopReason.CONTEXT_OVERFLOW),
        (Limits(turn=9, trajectory=9, context=20), 0, StopReason.CONTEXT_OVERFLOW),
        (Limits(turn=9, trajectory=9, context=10), 0, StopReason.CONTEXT_OVERFLOW),
        (Limits(turn=9, trajectory=0, context=100), 0, StopReason.TRAJECTORY_TOKENS),
    ],
)
def test_the_limit_that_binds_names_the_reason(micro, limits, tokens, reason):
    [answer] = ask(micro.engine(), request(PROMPT, limits=limits))
    assert answer.stop_reason is reason
    assert len(answer.token_ids) == len(answer.logps) == len(answer.version) == tokens


def test_no_room_means_no_computation(micro):
    engine = micro.engine()
    ask(engine, request(PROMPT, limits=Limits(0, 9, 99)))
    assert not any(engine.metrics().values())


def test_a_stop_token_ends_the_generation_and_is_kept(micro):
    engine = micro.engine()
    [free] = ask(engine, request(PROMPT, tokens=20))
    stop = int(free.token_ids[7])
    first = free.token_ids.tolist().index(stop)
    [stopped] = ask(engine, request(PROMPT, tokens=20, stop={stop}))
    assert stopped.stop_reason is StopReason.STOP
    np.testing.assert_array_equal(stopped.token_ids, free.token_ids[: first + 1])


def test_a_stop_token_on_the_last_allowed_position_is_a_stop(micro):
    engine = micro.engine()
    [free] = ask(engine, request(PROMPT, tokens=1))
    [stopped] = ask(engine, request(PROMPT, tokens=1, stop={int(free.token_ids[0])}))
    assert stopped.stop_reason is StopReason.STOP


def test_temperature_zero_follows_the_most_likely_tokens(micro):
    asked = request(PROMPT, temperature=0.0, tokens=10)
    [answer] = ask(micro.engine(), asked)
    stream = np.concatenate([PROMPT, answer.token_ids])
    np.testing.assert_array_equal(answer.token_ids, micro.logps(stream)[len(PROMPT) - 1 : -1].argmax(-1))
    micro.check(asked, answer)


def test_logps_are_at_the_sampling_temperature(micro):
    asked = request(PROMPT, temperature=0.6)
    micro.check(asked, *ask(micro.engine(), asked))


def test_an_empty_prompt_is_refused(micro):
    with pytest.raises(ValueError, match="at least one prompt token"):
        ask(micro.engine(), request([]))


# Who is answered together


def test_requests_made_at_once_share_a_batch(micro, monkeypatch):
    engine = micro.engine(max_batch=3)
    spy = Spy(engine, monkeypatch)
    ask(engine, *(request(PROMPT, member=m, tokens=3) for m in range(3)))
    assert spy.rows == [1, 3, 3]  # one prompt for all, then two further tokens each


def test_a_request_joins_a_batch_that_is_running(micro, monkeypatch):
    engine = micro.engine()
    spy = Spy(engine, monkeypatch)

    async def scenario():
        spy.hold.clear()
        first = asyncio.create_task(engine.generate(request(PROMPT, tokens=4)))
        await asyncio.sleep(0.05)  # the first is held in its prefill
        second = asyncio.create_task(engine.generate(request(PROMPT[:9], member=1, tokens=2)))
        await asyncio.sleep(0.05)
        spy.hold.set()
        return await asyncio.gather(first, second)

    answers = run(scenario())
    assert 2 in spy.rows
    for asked, answer in zip([request(PROMPT), request(PROMPT[:9], member=1)], answers, strict=True):
        micro.check(asked, answer)


def test_lockstep_waits_for_every_participant(micro, monkeypatch):
    engine = micro.engine(deterministic=True)
    spy = Spy(engine, monkeypatch)

    async def episode(member, gate):
        with engine.participant():
            await gate
            return await engine.generate(request(PROMPT, member=member, tokens=2))

    async def scenario():
        gates = [asyncio.get_running_loop().create_future() for _ in range(3)]
        tasks = [asyncio.create_task(episode(m, gate)) for m, gate in enumerate(gates)]
        for gate in gates:
            assert not spy.rows
            await asyncio.sleep(0.02)
            gate.set_result(None)
        await asyncio.gather(*tasks)

    run(scenario())
    assert spy.rows == [1, 3]


def test_lockstep_goes_on_when_a_participant_leaves(micro):
    engine = micro.engine(deterministic=True)

    async def scenario():
        with engine.participant():
            leaving = engine.participant()
            leaving.__enter__()
            waiting = asyncio.create_task(engine.generate(request(PROMPT)))
            await asyncio.sleep(0.02)
            assert not waiting.done()
            leaving.__exit__(None, None, None)
            await waiting

    run(scenario())


def test_lockstep_batches_are_cut_from_the_order_of_keys(micro, monkeypatch):
    engine = micro.engine(deterministic=True, max_batch=2)
    batches = []
    admit = engine._decoder._admit

    def spy(tickets):
        batches.append([ticket.request.key.member for ticket in tickets])
        return admit(tickets)

    monkeypatch.setattr(engine._decoder, "_admit", spy)

    async def episode(member):
        with engine.participant():
            for turn in range(2):
                await asyncio.sleep(0.001 * ((member * 3 + turn) % 5))
                await engine.generate(request(PROMPT, member=member, turn=turn, tokens=2, session=str(member)))

    async def scenario():
        await asyncio.gather(*map(episode, (4, 2, 0, 3, 1)))

    run(scenario())
    assert batches == [[0, 1], [2, 3], [4]] * 2


def test_lockstep_is_exact_whatever_the_engine_did_before(micro):
    fresh, used = micro.engine(deterministic=True), micro.engine(deterministic=True)
    ask(used, *(request(np.arange(1, 61) % (m + 5), member=m, tokens=30, session=str(m)) for m in range(9)))
    used.load_weights(micro.model.state_dict(), 1)

    async def episode(engine, member, pause):
        answers, stream = [], PROMPT
        with engine.participant():
            for turn in range(3):
                await asyncio.sleep(pause)
                asked = request(stream, member=member, turn=turn, stop={9, 17}, session=str(member))
                answers.append(await engine.generate(asked))
                stream = np.concatenate([stream, answers[-1].token_ids, [4, member]])
            await engine.release(str(member))
        return answers

    async def update(engine, pauses):
        return await asyncio.gather(*(episode(engine, m, pause) for m, pause in enumerate(pauses)))

    first = run(update(fresh, [0.0, 0.004, 0.002, 0.001]))
    again = run(update(used, [0.003, 0.0, 0.0, 0.005]))
    for one, other in zip(first, again, strict=True):
        for before, after in zip(one, other, strict=True):
            np.testing.assert_array_equal(before.token_ids, after.token_ids)
            np.testing.assert_array_equal(before.logps, after.logps)


# When something breaks


def test_a_cancelled_request_leaves_the_queue(micro):
    engine = micro.engine(deterministic=True)

    async def scenario():
        with engine.participant(), engine.participant():
            cancelled = asyncio.create_task(engine.generate(request(PROMPT)))
            await asyncio.sleep(0.01)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            assert not engine._waiting
            return await asyncio.gather(*(engine.generate(request(PROMPT, member=m)) for m in (1, 2)))

    assert len(run(scenario())) == 2


def test_cancelling_while_decoding_harms_nobody(micro, monkeypatch):
    engine = micro.engine()
    spy = Spy(engine, monkeypatch)

    async def scenario():
        spy.hold.clear()
        doomed = asyncio.create_task(engine.generate(request(PROMPT, member=1, tokens=500)))
        other = asyncio.create_task(engine.generate(request(PROMPT, tokens=5)))
        await asyncio.sleep(0.05)
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
        spy.hold.set()
        return await other

    micro.check(request(PROMPT), run(scenario()))
    assert len(spy.rows) < 20  # the cancelled one stopped
    ask(engine, request(PROMPT))


def test_what_breaks_in_the_model_reaches_every_caller_and_the_next_batch_works(micro, monkeypatch):
    engine = micro.engine()
    spy = Spy(engine, monkeypatch)
    ask(engine, request(PROMPT, session="kept"))
    spy.breaks = True

    async def scenario():
        both = (engine.generate(request(PROMPT, member=m)) for m in (0, 1))
        return await asyncio.gather(*both, return_exceptions=True)

    for error in run(scenario()):
        with pytest.raises(RuntimeError, match="a bit flipped"):
            raise error
    spy.breaks = False
    asked = request(PROMPT)
    micro.check(asked, *ask(engine, asked))


def test_broken_weights_are_an_error_and_leave_no_trace(micro):
    engine = micro.engine()
    good = {name: weight.clone() for name, weight in micro.model.state_dict().items()}
    engine.load_weights({name: torch.full_like(weight, torch.nan) for name, weight in good.items()}, 1)
    with pytest.raises(FloatingPointError, match="not finite"):
        ask(engine, request(PROMPT, session="s"))
    engine.load_weights(good, 2)
    asked = request(PROMPT, session="s")
    micro.check(asked, *ask(engine, asked))


def test_closing_tells_those_who_wait_and_stops_the_thread(micro, monkeypatch):
    engine = micro.engine(max_batch=1)
    spy = Spy(engine, monkeypatch)

    async def scenario():
        spy.hold.clear()
        tasks = [asyncio.create_task(engine.generate(request(PROMPT, member=m, tokens=400))) for m in (0, 1)]
        await asyncio.sleep(0.05)
        threading.Timer(0.05, spy.hold.set).start()
        engine.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    before = time.perf_counter()
    assert [str(error) for error in run(scenario())] == ["the engine was closed"] * 2
    assert time.perf_counter() - before < 5
    assert not any(thread.is_alive() for thread in engine._worker._threads)
    with pytest.raises(RuntimeError, match="closed"):
        ask(engine, request(PROMPT))
    engine.close()


# Weights


def test_new_weights_drop_the_cache_and_mark_what_they_sample(micro):
    engine = micro.engine()
    [before] = ask(engine, request(PROMPT, session="s"))
    assert (before.version == 0).all()
    other = micro_model(seed=1)
    engine.load_weights(other.state_dict(), version=3)
    micro.model = other
    engine.metrics()
    asked = request(PROMPT, session="s")
    [after] = ask(engine, asked)
    micro.check(asked, after)
    assert (after.version == 3).all()
    assert engine.metrics()["engine/reused_tokens"] == 0


def test_weights_are_copied_and_cast(micro):
    engine = micro.engine(dtype="bfloat16")
    state = {name: weight.double() for name, weight in micro.model.state_dict().items()}
    engine.load_weights(state, 1)
    held = engine._decoder._model.state_dict()
    assert {weight.dtype for weight in held.values()} == {torch.bfloat16}
    assert all(torch.equal(held[name], state[name].bfloat16()) for name in state)
    assert engine._decoder._model.model.rotary_emb.inv_freq.dtype is torch.float32
    asked = request(PROMPT)
    micro.check(asked, *ask(engine, asked), tolerance=0.2)


@pytest.mark.parametrize("change", ["unknown", "missing", "shape"])
def test_weights_that_do_not_fit_are_refused_whole(micro, change):
    engine = micro.engine()
    state = {name: torch.zeros_like(weight) for name, weight in micro.model.state_dict().items()}
    if change == "unknown":
        state["model.extra"] = torch.zeros(1)
    elif change == "missing":
        del state["lm_head.weight"]
    else:
        state["lm_head.weight"] = torch.zeros(3, 3)
    with pytest.raises(ValueError, match="extra" if change == "unknown" else "lm_head"):
        engine.load_weights(state, 1)
    asked = request(PROMPT)
    [answer] = ask(engine, asked)
    micro.check(asked, answer)
    assert (answer.version == 0).all()


@pytest.mark.parametrize("absent", ["lm_head.weight", "model.embed_tokens.weight"])
def test_a_tied_weight_goes_by_either_name(micro, absent):
    engine = micro.engine(model=micro_model(tied=True))
    micro.model = micro_model(seed=2, tied=True)
    state = dict(micro.model.state_dict())
    del state[absent]
    engine.load_weights(state, 1)
    asked = request(PROMPT)
    micro.check(asked, *ask(engine, asked))


def test_a_model_with_another_attention_is_refused(micro):
    model = micro_model()
    model.config._attn_implementation = "sdpa"
    with pytest.raises(ValueError, match="attn_implementation"):
        micro.engine(model=model)


def test_the_event_loop_is_free_while_the_model_computes(micro, monkeypatch):
    engine = micro.engine()
    spy = Spy(engine, monkeypatch)

    async def scenario():
        spy.hold.clear()
        answer = asyncio.create_task(engine.generate(request(PROMPT)))
        for _ in range(5):
            await asyncio.sleep(0.01)
        spy.hold.set()
        return await answer

    [alone] = ask(micro.engine(), request(PROMPT))
    same(run(scenario()), alone)
