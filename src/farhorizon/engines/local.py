"""The engine in this process: a Hugging Face model, batches of requests, and a cache that outlives turns.

`LocalEngine` lives on the event loop and decides who is answered together; `_Decoder` lives on one worker
thread, owns model and caches, and computes. Between them go tickets: the loop hands them over, the worker
resolves their futures.

A deterministic engine answers in rounds: once every participant waits, all that wait are sorted by key, cut
into batches and decoded batch by batch. Otherwise whoever waits joins the running batch at the next token.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from farhorizon.config.engine import Local
from farhorizon.core.record import StopReason
from farhorizon.core.seeds import uniforms
from farhorizon.engines.base import Generation, Request
from farhorizon.engines.sampling import draw
from farhorizon.models.attention import IMPLEMENTATION
from farhorizon.models.cache import Decode, Piece, Prefill, Rows, Sessions, packed
from farhorizon.models.dtypes import compute_dtype
from farhorizon.models.tokens import common_prefix

GATHER_SECONDS = 0.001
"""How long an idle engine waits for requests made at the same time."""
PREFILL_TOKENS = 2048
"""Most prompt tokens in one forward pass."""
SHARED_TOKENS = 16
"""Shortest beginning that different prompts of one batch have computed only once."""
HEADROOM = 64
"""Room made for a generation at first; more is made when it is needed."""


@dataclass(eq=False)
class _Ticket:
    """A request on its way."""

    request: Request
    room: int
    """Most tokens to sample."""
    full: StopReason
    """Why it ends when they are used up."""
    future: "asyncio.Future[Generation]"
    asked: float
    """When, by the wall clock's counter."""


class LocalEngine:
    """Implements `engines.base.Engine`."""

    def __init__(self, config: Local, *, model: torch.nn.Module, deterministic: bool) -> None:
        """`model` becomes the engine's own: cast to `config.dtype`, never trained."""
        self._max_batch = config.max_batch
        self._deterministic = deterministic
        self._decoder = _Decoder(
            model,
            compute_dtype(config.dtype, next(model.parameters()).device),
            config.max_batch,
            config.cache_tokens,
        )
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")
        self._job: Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._participants = 0
        self._closed = False
        self._told: Counter[str] = Counter()

    async def generate(self, request: Request) -> Generation:
        """Answer one request; concurrent requests share a batch."""
        if self._closed:
            raise RuntimeError("the engine is closed")
        if not len(request.token_ids):
            raise ValueError(f"a generation needs at least one prompt token ({request.key})")
        asked = perf_counter()
        room, full = request.limits.binding(len(request.token_ids))
        if not room:
            return _generation([], [], 0, full, asked)
        self._loop = asyncio.get_running_loop()
        ticket = _Ticket(request, room, full, self._loop.create_future(), asked)
        with self._lock:
            self._waiting.append(ticket)
        self._wake()
        try:
            return await ticket.future
        finally:
            with self._lock:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)

    @contextmanager
    def participant(self) -> Iterator[None]:
        """Held by each running episode, which has at most one request at a time."""
        self._participants += 1
        try:
            yield
        finally:
            self._participants -= 1
            self._wake()

    async def release(self, session: str) -> None:
        """Forget a session's cache, before the next batch."""
        if not self._closed:
            self._decoder.released.append(session)
            self._worker.submit(self._decoder.forget)

    def load_weights(self, state: Mapping[str, Tensor], version: int) -> None:
        """Copy and cast weights by the names of the model's `state_dict`; a tied weight may go by any of its
        names.

        Raises:
            ValueError: a name or shape the model does not have, or a weight it has and the state has not.
                Nothing was changed then.
        """
        self._worker.submit(self._decoder.load, state, version).result()

    def metrics(self) -> dict[str, float]:
        """Counters since the last call: prompt tokens computed, prompt tokens found in a cache, tokens sampled,
        and batches (groups of requests that began together)."""
        now = self._decoder.counts.copy()
        since = {f"engine/{name}": float(count - self._told[name]) for name, count in now.items()}
        self._told = now
        return since

    def close(self) -> None:
        """Stop at the next token; whoever waits gets a RuntimeError. Harmless the second time."""
        self._closed = True
        self._decoder.closing.set()
        for ticket in self._take(len(self._waiting)):
            _answer(ticket, RuntimeError("the engine was closed"))
        self._worker.shutdown(wait=True)

    def _wake(self) -> None:
        """Look, shortly, whether a batch can begin."""
        if not self._waiting or self._loop is None or self._loop.is_closed():
            return
        if self._deterministic:
            self._loop.call_soon(self._begin)
        else:
            self._loop.call_later(GATHER_SECONDS, self._begin)

    def _begin(self) -> None:
        if self._closed or not self._waiting or (self._job is not None and not self._job.done()):
            return
        if self._deterministic and len(self._waiting) < self._participants:
            return
        more = self._round() if self._deterministic else self._joining
        self._job = self._worker.submit(self._decoder.run, more)
        self._job.add_done_callback(self._ended)

    def _joining(self, running: int) -> list[_Ticket]:
        """Whoever waits and finds room. The worker's job may never end, so it forgets here."""
        self._decoder.forget()
        return self._take(self._max_batch - running)

    def _round(self) -> Callable[[int], list[_Ticket]]:
        """All who wait now, in batches one after the other."""
        members = sorted(self._take(len(self._waiting)), key=lambda ticket: ticket.request.key)
        batches = iter([members[i : i + self._max_batch] for i in range(0, len(members), self._max_batch)])
        return lambda running: [] if running else next(batches, [])

    def _take(self, most: int) -> list[_Ticket]:
        with self._lock:
            taken, self._waiting = self._waiting[:most], self._waiting[most:]
        return taken

    def _ended(self, job: "Future[None]") -> None:
        """Called by the worker: what began to wait meanwhile may begin now."""
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop may have closed
            self._loop.call_soon_threadsafe(self._begin)


def _generation(ids: list[int], logps: list[float], version: int, reason: StopReason, asked: float) -> Generation:
    arrays = np.array(ids, np.int32), np.array(logps, np.float32), np.full(len(ids), version, np.int32)
    return Generation(*arrays, stop_reason=reason, seconds=perf_counter() - asked)


def _answer(ticket: _Ticket, answer: Generation | Exception) -> None:
    """Resolve a ticket's future from any thread, unless it was cancelled."""

    def resolve() -> None:
        if ticket.future.done():
            return
        if isinstance(answer, Exception):
            ticket.future.set_exception(answer)
        else:
            ticket.future.set_result(answer)

    with suppress(RuntimeError):  # the asker's loop may have closed
        ticket.future.get_loop().call_soon_threadsafe(resolve)


@dataclass(eq=False)
class _Running:
    """A ticket that has a row."""

    ticket: _Ticket
    digest: int
    """Of the request's key."""
    ids: list[int] = field(default_factory=list)
    """Sampled so far; the keys and values of the last are not computed yet."""
    logps: list[float] = field(default_factory=list)


class _Decoder:
    """Model, caches and the rows being decoded. All but its public attributes is the worker's alone."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype, max_batch: int, cache_tokens: int) -> None:
        used = model.config._attn_implementation  # type: ignore[union-attr]
        if used != IMPLEMENTATION:
            raise ValueError(f'the engine\'s model needs attn_implementation="{IMPLEMENTATION}", not "{used}"')
        for parameter in model.parameters():  # buffers keep their type: rotary frequencies need float32
            parameter.data = parameter.data.to(dtype)
        self._model = model.requires_grad_(False).eval()
        self._rows = Rows.of(model)
        self._running: list[_Running] = []
        """Row by row; row r of `_rows` belongs to `_running[r]`."""
        self._lengths = np.zeros(max_batch, np.int64)
        """Tokens in each row."""
        self._version = 0
        self._sessions = Sessions(cache_tokens)
        self.released: deque[str] = deque()
        self.closing = threading.Event()
        self.counts = Counter(prefill_tokens=0, reused_tokens=0, sampled_tokens=0, batches=0)

    @torch.inference_mode()
    def run(self, more: Callable[[int], list[_Ticket]]) -> None:
        """Decode until nothing runs and `more(rows running)` hands over nothing. What breaks a batch is told to
        all of that batch, and the next begins with an empty cache."""
        while not self.closing.is_set():
            arriving = more(len(self._running))
            if not (self._running or arriving):
                return
            try:
                logits = [self._step()] if self._running else []
                logits += [self._admit(arriving)] if arriving else []
                self._advance(torch.cat(logits) if len(logits) > 1 else logits[0])
            except Exception as error:
                self._abandon(arriving, error)
        closed = RuntimeError("the engine was closed")
        self._abandon([], closed)
        while arriving := more(0):
            self._abandon(arriving, closed)

    def forget(self) -> None:
        """Drop the sessions released since last time."""
        while self.released:
            self._sessions.drop(self.released.popleft())

    def load(self, state: Mapping[str, Tensor], version: int) -> None:
        """See `LocalEngine.load_weights`."""
        own = self._model.state_dict()
        if unknown := sorted(set(state) - set(own)):
            raise ValueError(f"the model has no weight named {', '.join(unknown)}")
        given = {own[name].data_ptr(): name for name in state}  # tied weights once
        if missing := [name for name, weight in own.items() if weight.data_ptr() not in given]:
            raise ValueError(f"the state lacks the weight {', '.join(missing)}")
        for name in given.values():
            if own[name].shape != state[name].shape:
                had, got = list(own[name].shape), list(state[name].shape)
                raise ValueError(f"{name} has shape {got}, in the model {had}")
        with torch.no_grad():
            for name in given.values():
                own[name].copy_(state[name])
        self._sessions.clear()
        self._version = version

    def _step(self) -> Tensor:
        """One token further in every row: logits `[rows, vocabulary]`."""
        lengths = self._lengths[: len(self._running)]
        self._rows.reserve(len(lengths), int(lengths.max()) + 1, used=len(lengths))
        layout = Decode(self._rows, lengths)
        ids = torch.tensor([[running.ids[-1]] for running in self._running], device=layout.positions.device)
        logits = self._model(
            input_ids=ids, position_ids=layout.positions[:, None], layout=layout, use_cache=False
        ).logits[:, 0]
        lengths += 1
        return logits

    def _admit(self, tickets: list[_Ticket]) -> Tensor:
        """Give tickets rows and compute what no cache holds of their prompts: logits `[tickets, vocabulary]`.

        Equal prompts are computed once, and so is what all prompts begin with of which nothing is kept.
        """
        first, computed = len(self._running), self.counts["prefill_tokens"]
        self._running += [_Running(ticket, ticket.request.key.digest()) for ticket in tickets]
        rows = range(first, len(self._running))
        lengths = [len(self._prompt(row)) for row in rows]
        room = max(ticket.room for ticket in tickets)
        self._rows.reserve(len(self._running), max(lengths) + min(room, HEADROOM), used=first)

        equal: dict[bytes, list[int]] = {}
        for row in rows:
            equal.setdefault(self._prompt(row).tobytes(), []).append(row)
        held = {row: self._recall(row) for row, *_ in equal.values()}
        held |= self._share_beginning([row for row, tokens in held.items() if not tokens])
        logits = self._prefill([Piece(row, tokens, len(self._prompt(row))) for row, tokens in held.items()])
        source = np.zeros(len(tickets), np.int64)
        for index, (row, *others) in enumerate(equal.values()):
            self._copy(row, others, len(self._prompt(row)))
            source[np.array([row, *others]) - first] = index
        self._lengths[first : len(self._running)] = lengths
        self.counts["reused_tokens"] += sum(lengths) - (self.counts["prefill_tokens"] - computed)
        self.counts["batches"] += 1
        return logits if len(equal) == len(tickets) else logits[torch.from_numpy(source).to(logits.device)]

    def _prompt(self, row: int) -> NDArray[np.int32]:
        return self._running[row].ticket.request.token_ids

    def _recall(self, row: int) -> int:
        """Copy what is kept of a row's prompt into the row and say how many tokens that was. The last token is
        always left to compute: its logits are wanted."""
        prompt = self._prompt(row)
        kept, shared = self._sessions.longest(prompt, self._running[row].ticket.request.session)
        shared = min(shared, len(prompt) - 1)
        if kept is not None and shared:
            self._rows.row(row, shared).copy_(kept.kv[:, :, :, :shared])
        return shared

    def _share_beginning(self, rows: list[int]) -> dict[int, int]:
        """Compute the common beginning of several rows' prompts once: row -> tokens it then has."""
        if len(rows) < 2:
            return {}
        prompts = [self._prompt(row) for row in rows]
        shared = min(min(common_prefix(prompts[0], prompt), len(prompt) - 1) for prompt in prompts)
        if shared < SHARED_TOKENS:
            return {}
        self._prefill([Piece(rows[0], 0, shared)])
        self._copy(rows[0], rows[1:], shared)
        return dict.fromkeys(rows, shared)

    def _prefill(self, pieces: list[Piece]) -> Tensor:
        """Compute pieces of prompts: logits behind those that end their prompt, `[such pieces, vocabulary]`."""
        logits = []
        for batch in packed(pieces, PREFILL_TOKENS):
            layout = Prefill(self._rows, batch)
            ids = np.concatenate([self._prompt(piece.row)[piece.start : piece.stop] for piece in batch])
            last = np.cumsum([piece.stop - piece.start for piece in batch]) - 1
            ends = last[[piece.stop == len(self._prompt(piece.row)) for piece in batch]]
            device = layout.positions.device
            out = self._model(
                input_ids=torch.from_numpy(ids.astype(np.int64))[None].to(device),
                position_ids=layout.positions[None],
                layout=layout,
                use_cache=False,
                logits_to_keep=torch.from_numpy(ends).to(device),
            )
            logits.append(out.logits[0])
            self.counts["prefill_tokens"] += len(ids)
        return torch.cat(logits)

    def _copy(self, row: int, targets: list[int], tokens: int) -> None:
        for target in targets:
            self._rows.row(target, tokens).copy_(self._rows.row(row, tokens))

    def _advance(self, logits: Tensor) -> None:
        """Draw a token in every row and take out the rows that are done."""
        running = self._running
        noise = uniforms([row.digest for row in running], [len(row.ids) for row in running])
        temperatures = np.array([row.ticket.request.sampling.temperature for row in running])
        ids, logps = draw(logits, temperatures, noise)
        self.counts["sampled_tokens"] += len(running)
        for row in reversed(range(len(running))):
            now = running[row]
            now.ids.append(int(ids[row]))
            now.logps.append(float(logps[row]))
            if now.ids[-1] in now.ticket.request.stop:
                self._finish(row, StopReason.STOP)
            elif len(now.ids) == now.ticket.room or now.ticket.future.cancelled():
                self._finish(row, now.ticket.full)

    def _finish(self, row: int, reason: StopReason) -> None:
        """Answer, keep the session's cache, and let the last row take the place of the one that ended."""
        ended, length = self._running[row], int(self._lengths[row])
        ticket, request = ended.ticket, ended.ticket.request
        if request.session is not None:
            stream = np.concatenate([request.token_ids, np.array(ended.ids[:-1], np.int32)])
            self._sessions.keep(request.session, stream, self._rows.row(row, length))
        _answer(ticket, _generation(ended.ids, ended.logps, self._version, reason, ticket.asked))
        moved = self._running.pop()
        if moved is not ended:
            self._running[row] = moved
            self._lengths[row] = self._lengths[len(self._running)]
            self._copy(len(self._running), [row], int(self._lengths[row]))

    def _abandon(self, arriving: list[_Ticket], error: Exception) -> None:
        """Tell everyone in the batch what went wrong and start afresh."""
        for ticket in [*(running.ticket for running in self._running), *arriving]:
            _answer(ticket, error)
        self._running.clear()
        self._rows.clear()
        self._sessions.clear()
