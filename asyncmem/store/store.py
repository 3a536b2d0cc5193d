"""One manager's store: opened once, in one event loop, on one database."""

import asyncio
from dataclasses import dataclass, field

import pymongo

from ..settings import Settings
from .apply import Applier
from .approvals import Approvals
from .archive import Archive
from .captures import Captures
from .connect import Capabilities, Connection, connect
from .core import Core, Gate
from .documents import bind
from .jobs import Jobs
from .profiles import Profiles
from .proposals import Proposals
from .reader import Reader
from .remover import Remover
from .results import CaptureResults, ProfileResults
from .scanner import Scanner
from .sessions import Sessions
from .swaps import Swaps
from .translate import translated
from .vectors import VectorShelf
from .writer import Writer


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """Everything that reads and changes one database's memories."""

    read: Reader
    write: Writer
    remove: Remover
    archive: Archive
    captures: Captures
    applier: Applier
    swaps: Swaps
    scan: Scanner
    vectors: VectorShelf
    jobs: Jobs
    results: CaptureResults
    profiles: Profiles
    sessions: Sessions
    proposals: Proposals
    approvals: Approvals
    capabilities: Capabilities
    _connection: Connection = field(repr=False)
    _core: Core = field(repr=False)

    def profile_jobs(self, name: str) -> Jobs:
        """The queue of conversations that are to be read for profiles of a name."""
        return Jobs(self._core, ProfileResults(self.profiles, self.proposals, name), name)

    async def aclose(self) -> None:
        """Wait for calls under way, then let go of the database. A client that was handed in stays open.

        Neither lasts longer than ``Settings(close_timeout=...)``: a frozen server can't keep anybody.
        """
        patience = self._core.settings.close_timeout
        await self._core.gate.close(patience)
        try:
            async with asyncio.timeout(max(1.0, patience.total_seconds())):
                await self._connection.close()
        except TimeoutError:
            # what it waited for is the server's goodbye to its sessions; the second time there are none
            await self._connection.close()


async def open_store(db: object, settings: Settings) -> MemoryStore:
    """Connect, bind the documents to the database, make the indexes.

    Raises:
        ConfigurationError: ``db`` can't be used.
        StoreError: no server answers, or it refuses.
    """
    connection = await connect(db, settings)
    try:
        with translated(), pymongo.timeout(max(60.0, settings.open_timeout.total_seconds())):
            collections = await bind(
                connection.database, settings.collection_prefix, create_indexes=settings.create_indexes
            )
    except BaseException:
        await connection.close()
        raise
    store = _assembled(Core(collections, settings, Gate(settings.concurrency)), connection)
    try:
        await store.applier.recover()
    except BaseException:
        await store.aclose()
        raise
    return store


def _assembled(core: Core, connection: Connection) -> MemoryStore:
    archive, captures = Archive(core), Captures(core)
    reader, proposals = Reader(core, archive), Proposals(core, captures)
    results = CaptureResults(reader, proposals)
    jobs = Jobs(core, results)
    writer = Writer(core, reader, archive)
    remover = Remover(core, reader, archive, captures, jobs)
    transactions = connection.capabilities.transactions
    swaps = Swaps(core, archive, captures, transactions=transactions)
    applier = Applier(core, archive, captures, remover, swaps, proposals, transactions=transactions)
    return MemoryStore(
        read=reader,
        write=writer,
        remove=remover,
        archive=archive,
        captures=captures,
        applier=applier,
        swaps=swaps,
        scan=Scanner(core),
        vectors=VectorShelf(core),
        jobs=jobs,
        results=results,
        profiles=Profiles(core, captures),
        sessions=Sessions(core, captures),
        proposals=proposals,
        approvals=Approvals(proposals, captures, applier),
        capabilities=connection.capabilities,
        _connection=connection,
        _core=core,
    )
