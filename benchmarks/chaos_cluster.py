"""Three mongod as a replica set on loopback, each behind a proxy that can cut its network."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from tests.servers import find_mongod, free_port, server_folder_root

ELECTION = 1_000
"""Milliseconds without a heartbeat after which the others elect another primary."""
_READY = 60.0


class Proxy:
    """Passes a port's traffic on to another port, until it is cut."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._passes = True

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._passes:
            writer.close()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._open |= {writer, back}
        await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))
        self._open -= {writer, back}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        self._passes = False
        for writer in list(self._open):
            writer.transport.abort()

    def mend(self) -> None:
        """Pass on again."""
        self._passes = True

    async def aclose(self) -> None:
        """Stop listening."""
        self.cut()
        if self._server is not None:
            self._server.close()


@dataclass
class Node:
    """One mongod and its proxy."""

    folder: Path
    port: int
    proxy: Proxy
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    def start(self) -> None:
        """Start the server; also again, after a kill."""
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        command = [
            *(find_mongod(), "--dbpath", str(self.folder / "data"), "--logpath", str(self.folder / "log")),
            *("--port", str(self.port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--replSet", "chaos"),
            *("--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "128", "--logappend"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        ]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self.process = subprocess.Popen(command, **quiet)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


class Cluster:
    """A replica set of three."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    @property
    def uri(self) -> str:
        """Its address: by way of the proxies."""
        hosts = ",".join(f"127.0.0.1:{node.proxy.port}" for node in self.nodes)
        return f"mongodb://{hosts}/chaos?replicaSet=chaos&serverSelectionTimeoutMS=20000"

    async def initiate(self) -> None:
        """Make it a replica set, and wait for a primary."""
        members = [{"_id": n, "host": f"127.0.0.1:{node.proxy.port}"} for n, node in enumerate(self.nodes)]
        settings = {"electionTimeoutMillis": ELECTION, "heartbeatIntervalMillis": 200}
        config = {"_id": "chaos", "members": members, "settings": settings}
        await self._command(self.nodes[0], {"replSetInitiate": config})
        await self.primary()

    async def primary(self) -> Node:
        """The node that takes writes; waits until there is one."""
        async with asyncio.timeout(_READY):
            while True:
                for node in self.nodes:
                    if node.process is not None and node.process.poll() is None:
                        with contextlib.suppress(Exception):
                            if (await self._command(node, {"hello": 1}))["isWritablePrimary"]:
                                return node
                await asyncio.sleep(0.05)

    async def step_down(self) -> None:
        """Ask the primary to let another one be it."""
        node = await self.primary()
        with contextlib.suppress(Exception):  # it closes the connection rather than answering
            await self._command(node, {"replSetStepDown": 5, "force": True})

    async def _command(self, node: Node, command: dict[str, Any]) -> dict[str, Any]:
        async with AsyncMongoClient[dict[str, Any]](
            "127.0.0.1", node.port, directConnection=True, serverSelectionTimeoutMS=2_000
        ) as client:
            return await client.admin.command(command)


@asynccontextmanager
async def running_cluster() -> AsyncIterator[Cluster]:
    """A replica set of three; killed and its files removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="asyncmem-chaos-", dir=server_folder_root()))
    nodes: list[Node] = []
    try:
        for number in range(3):
            port = free_port()
            node = Node(folder / str(number), port, Proxy(port))
            await node.proxy.start()
            node.start()
            nodes.append(node)
        await asyncio.gather(*(_listening(node) for node in nodes))
        cluster = Cluster(nodes)
        await cluster.initiate()
        yield cluster
    finally:
        for node in nodes:
            node.kill()
            await node.proxy.aclose()
        shutil.rmtree(folder, ignore_errors=True)


async def _listening(node: Node) -> None:
    async with asyncio.timeout(_READY):
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", node.port), timeout=0.2).close()
                return
            await asyncio.sleep(0.05)


@contextmanager
def small_disk(size: str) -> Iterator[Path | None]:
    """A folder on a small disk of its own, in memory; ``None`` where mounting is not allowed."""
    folder = Path(tempfile.mkdtemp(prefix="asyncmem-disk-"))
    mounted = os.geteuid() == 0 and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], stderr=subprocess.DEVNULL
    )
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.call(["umount", "-l", str(folder)])
        shutil.rmtree(folder, ignore_errors=True)
