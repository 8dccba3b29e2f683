"""Images of a guest's memory, made and read by the real e2fsprogs."""

import os
import py_compile
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tactical.host import memory_disk
from tactical.host.process import CommandError

pytestmark = pytest.mark.skipif(
    shutil.which("mke2fs") is None or shutil.which("debugfs") is None,
    reason="mke2fs and debugfs (package e2fsprogs) are not installed",
)

NAMES = ["plain", "two words", 'quo"te', "it's", "$HOME", "comma,", "ünïcode", "-dash"]


@pytest.fixture
def content(tmp_path):
    inside = tmp_path / "content" / "directory"
    (inside / "logs" / "deep").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (inside / "logs" / name).write_bytes(bytes([number]) * 5000)
    (inside / "logs" / "deep" / "empty").touch()
    return inside.parent


@pytest.mark.parametrize("name", NAMES)
def test_what_an_image_holds_comes_back_to_any_directory(tmp_path, content, name):
    image = tmp_path / f"{name}.img"
    memory_disk.make(image, memory_disk.ALIGNMENT_BYTES, content)
    home = tmp_path / name / "run"
    home.mkdir(parents=True)
    memory_disk.extract(image, "/directory", home)
    found = {path.name: path.read_bytes() for path in (home / "logs").iterdir() if path.is_file()}
    assert found == {name: bytes([number]) * 5000 for number, name in enumerate(NAMES)}
    assert (home / "logs" / "deep" / "empty").exists()
    assert [path.name for path in home.parent.iterdir()] == ["run"]


def test_files_that_are_there_already_are_not_overwritten(tmp_path, content):
    image = tmp_path / "image"
    memory_disk.make(image, memory_disk.ALIGNMENT_BYTES, content)
    home = tmp_path / "run"
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "plain").write_text("mine")
    memory_disk.extract(image, "/directory", home)
    assert (home / "logs" / "plain").read_text() == "mine"
    assert (home / "logs" / "two words").exists()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, with room for a part of what an image holds."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_what_finds_no_room_comes_back_whole_once_there_is(tmp_path, content, small_disk):
    large = os.urandom(3 * 2**20)
    (content / "directory" / "large").write_bytes(large)
    image = tmp_path / "image"
    memory_disk.make(image, memory_disk.ALIGNMENT_BYTES, content)
    home = small_disk / "run"
    home.mkdir()
    with pytest.raises(OSError, match="No space left"):
        memory_disk.extract(image, "/directory", home)
    assert not list(home.iterdir()), "a part would be taken for the whole"
    subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
    memory_disk.extract(image, "/directory", home)
    assert (home / "large").read_bytes() == large


def test_a_file_with_room_ahead_can_be_appended_to_on_a_full_disk(small_disk):
    told = small_disk / "told"
    told.write_bytes(b"first\n")
    memory_disk.reserve_ahead(told, 2**20)
    assert told.read_bytes() == b"first\n"
    with (
        (small_disk / "filler").open("wb", buffering=0) as filler,
        pytest.raises(OSError, match="space"),
    ):
        while True:
            filler.write(bytes(4096))
    more = bytes(2**20 - 6)
    with told.open("ab") as file:
        file.write(more)
    assert told.read_bytes() == b"first\n" + more


def test_room_that_is_not_there_is_not_reserved(small_disk):
    with pytest.raises(CommandError, match="No space left"):
        memory_disk.reserve_ahead(small_disk / "told", 4 * 2**20)


@pytest.mark.parametrize("dated", [False, True])
def test_the_same_content_makes_the_same_image_whenever_it_was_written(tmp_path, content, dated):
    images = [tmp_path / "first", tmp_path / "second"]
    for number, image in enumerate(images):
        for path in content.rglob("*"):
            if path.is_dir() or not dated:
                os.utime(path, (1e9 + number, 1.1e9 + number))  # and now as the time of this change
        memory_disk.make(image, memory_disk.ALIGNMENT_BYTES, content, dated=dated)
    first, second = (image.read_bytes() for image in images)
    # Directory entries keep the order in which this machine's file system lists them.
    assert first == second


@pytest.mark.parametrize("dated", [False, True])
def test_compiled_code_is_of_its_source_in_an_image_that_keeps_times(tmp_path, dated):
    source = tmp_path / "content" / "directory" / "module.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1")
    os.utime(source, (1e9, 1.1e9))
    compiled = Path(py_compile.compile(str(source), doraise=True))
    image = tmp_path / "image"
    memory_disk.make(image, memory_disk.ALIGNMENT_BYTES, source.parent.parent, dated=dated)
    request = ("debugfs", "-R", "stat /directory/module.py", str(image))
    shown = subprocess.run(request, capture_output=True, text=True, check=True).stdout
    modified_s = int(re.search(r" mtime: 0x([0-9a-f]+)", shown)[1], 16)
    recorded_s = int.from_bytes(compiled.read_bytes()[8:12], "little")
    assert (modified_s == recorded_s) == dated


def test_content_that_does_not_fit_is_an_error(tmp_path, content):
    (content / "large").write_bytes(os.urandom(40 * 2**20))
    with pytest.raises(CommandError, match="mke2fs"):
        memory_disk.make(tmp_path / "image", 32 * 2**20, content)


def test_what_is_no_image_is_an_error_that_leaves_it(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(b"x" * 100_000)
    (tmp_path / "run").mkdir()
    with pytest.raises(CommandError, match="e2fsck"):
        memory_disk.extract(image, "/directory", tmp_path / "run")
    assert image.exists()


@pytest.mark.parametrize(("size", "expected"), [(1, 1), (2**27, 1), (2**27 + 1, 2), (3e8, 3)])
def test_sizes_are_whole_sections(size, expected):
    assert memory_disk.aligned(size) == expected * memory_disk.ALIGNMENT_BYTES
