"""Processes and threads that decode: the same pixels and errors, and nothing is left of a process."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from encoded_files import encoded, pixels
from PIL import ImageFile
from torch import Tensor

from contrasweep.data import StreamedImages, decoding_pool, image_batches, streaming
from contrasweep.data.decoding_pool import DecodingProcesses, decoding_threads
from contrasweep.data.encoded import DecodedImages, FileImages
from contrasweep.data.root import DatasetDamaged
from tests.threads import torch_threads

SHAPE = (3, 12, 12)
SECONDS = 60
"""How long a process may take to end, on a machine that is very busy."""

DYING = """
import os, sys
from multiprocessing.connection import Connection
channel = Connection(int(sys.argv[1]))
os.write(channel.fileno(), b"1")
os.read(channel.fileno(), 1)
os.kill(os.getpid(), int(os.environ["DIES_OF"]))
"""
"""A process that is ready at once, and is killed while it reads its first task."""

FAILING = """
import os, sys
os.close(int(sys.argv[1]))
import asyncio, http.client
sys.exit(3)
"""
"""A process that cannot start: it has still to end when its channel has."""


class InMemory:
    """Encoded images that are no files, and that no other process could be given."""

    def __init__(self, images: list[bytes]) -> None:
        self.images = images
        self.not_for_pickle = lambda: None

    def __len__(self) -> int:
        return len(self.images)

    def prepare_random_access(self) -> None:
        pass

    def read(self, rows: list[int]) -> list[bytes]:
        return [self.images[row] for row in rows]

    def name(self, row: int) -> str:
        return f"image {row}"


@pytest.fixture(scope="module")
def processes() -> Iterator[DecodingProcesses]:
    """One process, started by the first test that decodes in it."""
    started = DecodingProcesses()
    yield started
    started.close()


@pytest.fixture
def lone() -> Iterator[DecodingProcesses]:
    """Processes of which none has been started."""
    started = DecodingProcesses()
    yield started
    started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Forty pictures of different sizes, as JPEG and PNG."""
    folder = tmp_path_factory.mktemp("pictures")
    names = [folder / f"{number}" for number in range(40)]
    for number, name in enumerate(names):
        levels = pixels(number, 20 + number % 3, 24)
        name.write_bytes(encoded(levels, "JPEG" if number % 2 else "PNG"))
    return names


@pytest.fixture
def _made_up_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put two modules where this process looks for some, and so one that it starts."""
    (tmp_path / "dying_process.py").write_text(DYING, encoding="utf-8")
    (tmp_path / "failing_process.py").write_text(FAILING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def _decoded(source: DecodedImages, how: DecodingProcesses | None = None) -> Tensor:
    out = torch.zeros(len(source), *source.shape, dtype=torch.uint8)
    if how is None:
        source.decode(range(len(source)), out)
    else:
        source.decode_in(how, range(len(source)), out)
    return out


def _error(source: DecodedImages, how: DecodingProcesses | None) -> str:
    with pytest.raises(DatasetDamaged) as raised:
        _decoded(source, how)
    return str(raised.value)


def _shared_memory() -> list[str]:
    """Return the shared memory that this process has open."""
    entries = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return [link for link in map(_target, entries) if "contrasweep-pixels" in link]


def _target(entry: Path) -> str:
    # The file of the listing itself is gone.
    return os.readlink(entry) if entry.is_symlink() else ""


def test_a_process_gives_the_pixels_of_a_thread(processes: DecodingProcesses, files: list[Path]) -> None:
    few, many = FileImages(files[:3]), FileImages(files)
    in_memory = InMemory([file.read_bytes() for file in files])
    # More images after few, and larger ones: the shared memory grows.
    for images in (few, many, in_memory):
        for shape in (SHAPE, (1, 7, 7), (3, 64, 64)):
            source = DecodedImages(images, shape, resize=True)
            assert torch.equal(_decoded(source, processes), _decoded(source))
    assert len(processes._idle) == 1, "one task at a time needs one process"


def test_the_batches_of_processes_are_those_of_threads(
    processes: DecodingProcesses, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DecodedImages(FileImages(files), SHAPE, resize=True)
    batches = list(torch.randperm(40, generator=torch.Generator().manual_seed(0)).split(18))
    usual = list(image_batches(StreamedImages(source), batches))
    monkeypatch.setattr(streaming, "decodes_in_processes", lambda device, size: size == 40 * 3 * 12 * 12)
    monkeypatch.setattr(streaming, "shared_processes", lambda: processes)
    monkeypatch.setattr(DecodedImages, "decode", Mock(side_effect=AssertionError("decoded in a thread")))
    with torch_threads(1):  # With two, which an earlier test may have left, two processes start.
        for _ in range(2):
            found = list(image_batches(StreamedImages(source), batches))
            assert all(torch.equal(one, other) for one, other in zip(found, usual, strict=True))
    assert len(processes._running) == 1


def test_errors_of_a_process_are_those_of_a_thread(
    processes: DecodingProcesses, files: list[Path], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.jpg"
    damaged.write_bytes(files[1].read_bytes()[:-200])
    broken = DecodedImages(FileImages([*files[:3], damaged]), SHAPE, resize=True)
    assert _error(broken, processes) == _error(broken, None)
    assert f"corrupt image: {damaged} cannot be decoded (" in _error(broken, processes)
    in_memory = DecodedImages(InMemory([files[0].read_bytes(), b""]), SHAPE, resize=True)
    assert "corrupt image: image 1 cannot be decoded (it has 0 bytes)" in _error(in_memory, processes)
    unequal = DecodedImages(FileImages(files[:2]), (3, 20, 24), resize=False)
    assert _error(unequal, processes) == _error(unequal, None)
    assert f"{files[1]} is 21 x 24 pixels, the first image 20 x 24" in _error(unequal, processes)
    missing = DecodedImages(FileImages([tmp_path / "missing"]), SHAPE, resize=True)
    assert _error(missing, processes) == _error(missing, None)
    # The process goes on after each of them.
    assert len(processes._idle) == len(processes._running) == 1


def test_what_a_process_refuses_is_decoded_as_pillow_is_set_here(
    processes: DecodingProcesses, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truncated = tmp_path / "truncated.png"
    truncated.write_bytes(files[0].read_bytes()[:-200])
    source = DecodedImages(FileImages([*files[:3], truncated]), SHAPE, resize=True)
    assert "truncated.png cannot be decoded" in _error(source, processes)
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    assert torch.equal(_decoded(source, processes), _decoded(source))


def test_relative_paths_are_those_of_the_folder_of_this_process(
    lone: DecodingProcesses, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DecodedImages(FileImages([Path("picture")]), SHAPE, resize=True)
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "picture").write_bytes(files[number].read_bytes())
        # The process is started in the first folder.
        monkeypatch.chdir(folder)
        assert torch.equal(_decoded(source, lone), _decoded(source))


def test_a_process_ends_with_its_channel_and_leaves_nothing(
    processes: DecodingProcesses, files: list[Path]
) -> None:
    _decoded(DecodedImages(FileImages(files), SHAPE, resize=True), processes)
    process = processes._idle[0]
    assert _shared_memory()
    # The kernel does this for a process that is killed.
    process.channel.close()
    assert process.process.wait(SECONDS) == 0, "it ended by itself"
    processes.close()
    assert not _shared_memory()


@pytest.mark.usefixtures("_made_up_modules")
@pytest.mark.parametrize(("number", "told_as"), [(9, "SIGKILL"), (37, "37")])
def test_a_killed_process_is_told_and_replaced(
    number: int,
    told_as: str,
    lone: DecodingProcesses,
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("DIES_OF", str(number))
    monkeypatch.setattr(decoding_pool, "_MODULE", "dying_process")
    source = DecodedImages(FileImages(files), SHAPE, resize=True)
    for _ in range(decoding_pool.MOST_LOST + 2):
        assert torch.equal(_decoded(source, lone), _decoded(source))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == decoding_pool.MOST_LOST
    first = f"ended by signal {told_as}; its images are decoded here, and a new process is started"
    assert first in told[0]
    assert "and none, after 3 such ends, is started" in told[-1]
    assert not lone._running
    assert not _shared_memory()


@pytest.mark.usefixtures("_made_up_modules")
@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("sys.executable", "/missing/python", "No such file"),
        ("contrasweep.data.decoding_pool._MODULE", "failing_process", "ended by itself, with status 3"),
    ],
)
def test_without_processes_threads_decode_with_one_warning(
    attribute: str,
    value: str,
    reason: str,
    lone: DecodingProcesses,
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = DecodedImages(FileImages(files), SHAPE, resize=True)
    monkeypatch.setattr(attribute, value)
    for _ in range(2):
        assert torch.equal(_decoded(source, lone), _decoded(source))
    (record,) = caplog.records
    assert reason in record.getMessage()


def test_a_thread_that_decodes_computes_on_one_core() -> None:
    with torch_threads(3):
        with decoding_threads(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 3
