"""A folder of checkpoints behind a URI that fsspec knows: `s3://`, `gs://`, `memory://`. Uploaded in the background.

The manifest goes up last and is deleted first, so that half a checkpoint is none. Uploads follow one another on one
thread; an error comes out at the next batch end or at close, which waits for what is under way.
"""

from __future__ import annotations

import atexit
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from expkit.errors import CheckpointError, EnvironmentFault, ExpkitError
from expkit.trainer.checkpoint import checks
from expkit.trainer.checkpoint.keep import Found, Keep, to_remove
from expkit.trainer.checkpoint.manifest import FILE, LATEST, is_ours, manifest_of, read_manifest, refuse_others
from expkit.trainer.checkpoint.verify import verify
from expkit.uri import file_system, without_userinfo

_PAUSES_S = (1.0, 4.0)  # before the second and the third try of an upload


class RemoteFolder:
    """The checkpoints of one run, elsewhere."""

    def __init__(self, uri: str) -> None:
        self._fs, self._root = file_system(uri)
        self._uri = without_userinfo(uri).rstrip("/")
        self._worker: ThreadPoolExecutor | None = None
        self._pending: list[Future[None]] = []
        self._staging: Path | None = None
        self._number: int | None = None

    def address(self, name: str) -> str:
        """How a user names one of them."""
        return f"{self._uri}/{name}"

    def holds(self, name: str) -> bool:
        """Whether there is something of this name that says it is a checkpoint."""
        with _reaching(self.address(name)):
            return bool(self._fs.exists(f"{self._root}/{name}/{FILE}"))

    def found(self) -> tuple[list[Found], list[CheckpointError]]:
        """Checkpoints that are up, oldest first, and what is wrong with each whose manifest is damaged."""
        found, wrong = [], []
        for name in self._names():
            where = f"{self._uri}/{name}/{FILE}"
            try:
                with _reaching(self._uri):
                    content = self._fs.cat_file(f"{self._root}/{name}/{FILE}")
                found.append(Found(name, manifest_of(content, where)))
            except FileNotFoundError:
                continue  # not yet one, or no longer
            except CheckpointError as e:
                wrong.append(e)
        return sorted(found, key=lambda one: one.manifest.number), wrong

    def next_number(self) -> int:
        """One more than the highest there is, or will be once everything is up; looked up once."""
        if self._number is None:
            self._number = max((one.manifest.number for one in self.found()[0]), default=0)
        self._number += 1
        return self._number

    @contextlib.contextmanager
    def staged(self) -> Iterator[Path]:
        """A new folder on this machine to write into; gone once it is up, or where it is not committed."""
        if self._staging is None:
            self._staging = Path(tempfile.mkdtemp(prefix="expkit-checkpoints-"))
        staged = Path(tempfile.mkdtemp(dir=self._staging))
        try:
            yield staged
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise

    def commit(self, staged: Path, name: str, keep: Keep) -> None:
        """Begin to upload; gives back at once."""
        self.raise_errors()
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="expkit-upload")
            atexit.register(self._say_what_failed)
        self._pending.append(self._worker.submit(self._upload, staged, name, keep))

    def remove(self, name: str) -> None:
        """Take one away; without its manifest it is none already. A user's own files in it stay."""
        there = self._names_in(name)
        for file in sorted(filter(is_ours, there), key=lambda file: file != FILE):
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{name}/{file}")
        if all(map(is_ours, there)):
            with contextlib.suppress(OSError):  # most places know no folders
                self._fs.rmdir(f"{self._root}/{name}")

    @contextlib.contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """A copy of one on this machine, verified; gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="expkit-checkpoint-") as folder:
            target = Path(folder)
            for file in (FILE, *self._files(name)):
                try:
                    with _reaching(self.address(name)):
                        self._fs.get_file(f"{self._root}/{name}/{file}", str(target / file))
                except FileNotFoundError:
                    raise CheckpointError(f"{self.address(name)} is damaged: {file} is not there") from None
            with checks.calling(folder, self.address(name)):
                verify(target, read_manifest(target))
            yield target

    def claim(self) -> None:
        """No such place knows locks; half a checkpoint has no manifest, and is replaced by the next of its name."""

    def release(self) -> None:
        """Nothing was claimed."""

    def raise_errors(self) -> None:
        """EnvironmentFault for an upload that has failed since."""
        while self._pending and self._pending[0].done():
            if error := self._pending.pop(0).exception():
                said = str(error) if isinstance(error, ExpkitError) else f"{type(error).__name__}: {error}"
                raise EnvironmentFault(f"a checkpoint could not be uploaded to {self._uri}: {said}") from error

    def close(self) -> None:
        """Wait until everything is up."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
            atexit.unregister(self._say_what_failed)
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging = None
        self.raise_errors()

    def _say_what_failed(self) -> None:
        """The process ends, all is up, and nobody has called `close`."""
        try:
            self.close()
        except EnvironmentFault as e:
            sys.stderr.write(f"{e}\n")

    def _names(self) -> list[str]:
        try:
            with _reaching(self._uri):
                self._fs.invalidate_cache()
                entries = self._fs.ls(self._root, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = (entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory")
        return sorted(name for name in names if name and not name.startswith("."))

    def _files(self, name: str) -> list[str]:
        with _reaching(self.address(name)):
            data = self._fs.cat_file(f"{self._root}/{name}/{FILE}")
        return sorted(manifest_of(data, f"{self.address(name)}/{FILE}").files)

    def _upload(self, staged: Path, name: str, keep: Keep) -> None:
        try:
            self._refuse_what_is_not_ours(name)
            self.remove(name)
            for file in sorted(staged.iterdir(), key=lambda path: path.name == FILE):
                _again(lambda file=file: self._put(file, f"{self._root}/{name}/{file.name}"))  # type: ignore[misc]
            _again(lambda: self._fs.pipe_file(f"{self._root}/{LATEST}", f"{name}\n".encode()))
            for gone in to_remove(self.found()[0], keep):
                self.remove(gone)
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def _refuse_what_is_not_ours(self, name: str) -> None:
        refuse_others(self.address(name), self._names_in(name))

    def _names_in(self, name: str) -> list[str]:
        """Of all that lies in one of them, but for empty marks of folders; of a file, its own."""
        try:
            self._fs.invalidate_cache()
            entries = self._fs.ls(f"{self._root}/{name}", detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        paths = [entry["name"].rstrip("/") for entry in entries if entry["type"] == "directory" or entry["size"]]
        return [path.rpartition("/")[2] for path in paths]

    def _put(self, file: Path, target: str) -> None:
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._fs.put_file(str(file), target)
        if (size := self._fs.size(target)) != file.stat().st_size:
            raise OSError(f"{target} has {size} bytes there and {file.stat().st_size} here")


@contextlib.contextmanager
def _reaching(address: str) -> Iterator[None]:
    """Whatever a file system says that cannot be asked becomes an EnvironmentFault; each has errors of its own."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except Exception as e:
        said = (str(e).splitlines() or [""])[0]
        raise EnvironmentFault(f"{address} cannot be read: {type(e).__name__} {said}") from e


def _again(action: Callable[[], Any]) -> None:
    """Try it, and twice more where the network fails."""
    for pause_s in (*_PAUSES_S, None):
        try:
            action()
            return
        except OSError:
            if pause_s is None:
                raise
            time.sleep(pause_s)
