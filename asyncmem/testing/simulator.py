"""A provider on loopback: real HTTP, scripted behaviour, own thread and event loop."""

import asyncio
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import anyio.to_thread

from asyncmem.llm.chat import ChatReply

from .dialects import Dialect, Wanted, dialect_of, embeddings, model_of, reranked
from .failures import FAILURES
from .refusals import FORMAT_REFUSALS, TOOL_REFUSALS, Answer, fill
from .streams import BREAKS, Stream, broken, is_streamed, stream

Said = str | Mapping[str, Any] | ChatReply


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the simulated provider treats requests.

    Attributes:
        says: the assistant's reply: text, an object that is sent as JSON, or a whole ``ChatReply``; of a tuple each
            request gets the next, and the last again.
        accepts: the ``response_format`` types that are taken; others are refused.
        strict: whether ``"strict": true`` is taken.
        style: who words the refusals, a name in ``FORMAT_REFUSALS``; by default the dialect's own provider.
        tools: whether tools are taken.
        tool_choices: the kinds of ``tool_choice`` that are taken; ``None`` takes all.
        fails: what happens to the first requests, one name in ``FAILURES`` each, or ``"drop"``, ``"half"``,
            ``"slow"``; or how a reply in parts breaks, a name in ``BREAKS``. Later requests are answered.
        retry_after: the ``Retry-After`` header of a 429 or 503; empty leaves it out.
        delay: seconds before each answer.
        dimensions: length of embeddings.
    """

    says: "Said | tuple[Said, ...]" = "{}"
    accepts: Iterable[str] = ("json_schema", "json_object")
    strict: bool = True
    style: str = ""
    tools: bool = True
    tool_choices: Iterable[str] | None = None
    fails: tuple[str, ...] = ()
    retry_after: str = ""
    delay: float = 0.0
    dimensions: int = 8

    def reply(self, number: int = 0) -> ChatReply:
        """The assistant's reply to that request, counted from 0."""
        says = self.says[min(number, len(self.says) - 1)] if isinstance(self.says, tuple) else self.says
        if isinstance(says, ChatReply):
            return says
        return ChatReply(content=says if isinstance(says, str) else json.dumps(dict(says)))


@dataclass(frozen=True, slots=True)
class Received:
    """One request that the provider got.

    Attributes:
        path: without the query.
        headers: names in lower case.
        body: its JSON.
        wanted: what it asks for, whatever the dialect.
    """

    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)
    wanted: Wanted


_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
_MAX_HEADER = 2**24


class ProviderSimulator:
    """A provider that speaks OpenAI's, Anthropic's, Gemini's, Ollama's and Bedrock's wire formats.

    A reply that is asked for in parts is sent word by word (not in Bedrock's format).

    Use it as a context manager, with ``async with`` where an event loop runs, and set ``behaviour``.
    Give ``url`` as ``api_base`` for OpenAI-shaped providers, ``root`` for the others.

    Attributes:
        behaviour: how requests are treated from now on. Setting it begins its ``fails`` and ``says`` anew.
        received: every request so far, in order.
        left: replies in parts whose client went away before their end.
    """

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.received: list[Received] = []
        self.left: int = 0
        self._behaviour = behaviour or Behaviour()
        self._failed = self._said = 0
        self._port = 0
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def behaviour(self) -> Behaviour:
        """How requests are treated."""
        return self._behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour) -> None:
        self._behaviour, self._failed, self._said = behaviour, 0, 0

    @property
    def root(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The ``api_base`` of OpenAI-shaped providers."""
        return f"{self.root}/v1"

    def forget(self) -> None:
        """Forget the requests so far."""
        self.received.clear()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="provider", daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def __aenter__(self) -> Self:
        return await anyio.to_thread.run_sync(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await anyio.to_thread.run_sync(self.__exit__, kind, error, trace)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await self._converse(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass  # the client went away, or the simulator is being closed
            finally:
                connections.discard(task)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=2048, limit=_MAX_HEADER)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            path = head[0].split(" ")[1].partition("?")[0]
            pairs = (line.partition(":") for line in head[1:] if line)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            body = json.loads(await _read_body(reader, headers) or b"{}")
            answer = await self._answer(path, headers, body)
            if answer is None:
                return
            if isinstance(answer, Stream):
                if await self._send_parts(answer, reader, writer):
                    continue
                return
            writer.write(_encode(answer))
            await writer.drain()
            if answer is _HALF:
                return

    async def _send_parts(self, answer: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {answer.kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        writer.write(head)
        try:
            for part in answer.parts:
                writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                await writer.drain()
            if answer.stalls and not await reader.read():
                raise ConnectionResetError
        except ConnectionError:
            self.left += 1
            return False
        writer.write(b"" if answer.cut else b"0\r\n\r\n")
        await writer.drain()
        return not answer.cut

    async def _answer(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer | Stream | None:
        behaviour, dialect = self._behaviour, dialect_of(path)
        wanted = dialect.wanted(body) if dialect else Wanted()
        self.received.append(Received(path, headers, body, wanted))
        if behaviour.delay:
            await asyncio.sleep(behaviour.delay)
        kind = ""
        if self._failed < len(behaviour.fails):
            self._failed += 1
            kind = behaviour.fails[self._failed - 1]
            if kind not in BREAKS:
                return await _fail(behaviour, kind, headers, body)
        if path.endswith("/embeddings"):
            return Answer(200, embeddings(body, behaviour.dimensions))
        if path.endswith("/rerank"):
            return Answer(200, reranked(body))
        if path.endswith("/models"):
            return Answer(200, {"object": "list", "data": [{"id": "simulated", "object": "model"}]})
        if dialect is None:
            return Answer(404, {"error": {"message": f"Unknown request URL: {path}", "code": "unknown_url"}})
        if refusal := _refuse(behaviour, dialect, wanted):
            return refusal
        model, reply = model_of(path, body), behaviour.reply(self._said)
        self._said += 1
        parts = stream(dialect, reply, wanted, model, body) if is_streamed(path, body) else None
        if parts is None:
            return Answer(200, dialect.render(reply, wanted, model)) if not kind else _HALF
        return broken(parts, kind, json.dumps(body, ensure_ascii=False)) if kind else parts


_HALF = Answer(200, "")


async def _fail(behaviour: Behaviour, kind: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Answer | None:
    if kind == "drop":
        return None
    if kind == "half":
        return _HALF
    if kind == "slow":
        await asyncio.Event().wait()
    key = headers.get("authorization", headers.get("x-api-key", headers.get("x-goog-api-key", "")))
    values = {
        "retry_after": behaviour.retry_after,
        "key": key.removeprefix("Bearer "),
        "prompt": json.dumps(body, ensure_ascii=False),
    }
    return fill(FAILURES[kind], values)


def _refuse(behaviour: Behaviour, dialect: Dialect, wanted: Wanted) -> Answer | None:
    """The refusal, if the behaviour doesn't take what is asked for."""
    style = behaviour.style or dialect.style
    refused = wanted.format is not None and wanted.format not in behaviour.accepts
    if refused or (wanted.strict and not behaviour.strict):
        return fill(FORMAT_REFUSALS[style], {"type": str(wanted.format)})
    choice, choices = wanted.tool_choice, behaviour.tool_choices
    if wanted.tools and (not behaviour.tools or not (choice is None or choices is None or choice in choices)):
        return TOOL_REFUSALS.get(style, TOOL_REFUSALS["openai"])
    return None


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


def _encode(answer: Answer) -> bytes:
    if answer is _HALF:
        return b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"id": "chatcm'
    text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    kind = "application/json" if not isinstance(answer.body, str) else "text/html" if "<" in text else "text/plain"
    payload = text.encode("utf-8", "surrogatepass")
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Error')}",
        f"content-type: {kind}",
        f"content-length: {len(payload)}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + payload
