"""Results of counted cases on disk: a cache, and the journal from which an interrupted run resumes.

One file per question (which ids, which transforms, which version), one line per case. A line is appended as soon as its case
is counted, in one write, so a killed run loses at most the case it was working on, and two processes may append at the same time.
A line carries the identity of everything that was read and a checksum; a line that is torn, foreign or out of date is not used.

A cache saves work and decides nothing: where it cannot be read or written, the count goes on without it, with a warning.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..counting.case_record import CaseRecord
from ..files import hold

_VERSION = 1


class Journal:
    """Counted cases of one question.

    Args:
        folder: where journals are kept; made if missing.
        question: everything that the result depends on besides the data, as JSON types.

    Warns:
        UserWarning: once, the journal cannot be read or written (no permission, no space, ``folder`` is a file); what it holds
            is still found.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> Journal(folder, {"ids": [0, 1]}).add("identity of case_7", CaseRecord("case_7", {0: 8, 1: 2}))
        >>> Journal(folder, {"ids": [0, 1]}).find("identity of case_7").values
        {0: 8, 1: 2}
        >>> Journal(folder, {"ids": [0, 1, 2]}).find("identity of case_7") is None
        True
    """

    def __init__(self, folder: str | os.PathLike[str], question: dict[str, Any]) -> None:
        self.question = json.dumps({"version": _VERSION, **question}, sort_keys=True)
        digest = hashlib.blake2b(self.question.encode(), digest_size=16).hexdigest()
        self.path = Path(folder) / f"label_counts_{digest}.jsonl"
        self._records: dict[str, CaseRecord] = {}
        self._is_kept = True
        with self._or_warning():
            self._read()
        with self._or_warning():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # reported now, not after hours
            with self._locked():
                pass

    def find(self, identity: str) -> CaseRecord | None:
        """The record of a case with this identity, or None."""
        return self._records.get(identity)

    def add(self, identity: str, record: CaseRecord) -> None:
        """Append a record; it is on disk, whole, when this returns, unless the journal has warned."""
        self._records[identity] = record
        if not self._is_kept:
            return
        content = json.dumps({"question": self.question, "identity": identity, "record": record.to_dict()})
        line = f"{zlib.crc32(content.encode()):08x} {content}\n".encode()
        with self._or_warning(), self._locked() as handle:
            # a line torn by a crash must not swallow this one
            if os.fstat(handle).st_size and not self._ends_with_newline():
                line = b"\n" + line
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    @contextlib.contextmanager
    def _or_warning(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._is_kept:
                warnings.warn(
                    f"{self.path}: the cache cannot be read or written ({error.strerror or error}): the count goes on, and a "
                    "later one counts again what is not kept there",
                    stacklevel=3,
                )
            self._is_kept = False

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            # a file system without locks still appends whole lines in nearly all cases; the checksum catches the rest
            hold(handle, self.path)
            yield handle
        finally:
            os.close(handle)

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _read(self) -> None:
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            checksum, _, content = line.partition(b" ")
            if len(checksum) != 8 or checksum != f"{zlib.crc32(content):08x}".encode():
                continue
            entry = json.loads(content)
            if entry["question"] == self.question:
                self._records[entry["identity"]] = CaseRecord.from_dict(entry["record"])
