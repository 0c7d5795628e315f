"""A bucket in memory that speaks as much of S3's protocol as listing and reading need, on a port of this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 100
"""Keys in one answer of a listing, so that a store of some trials needs several."""


class Bucket:
    """Objects by key; `reads` counts those that were fetched."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.objects: dict[str, bytes] = {}
        self.reads: list[str] = []
        self.url = ""

    def listing(self, query: dict[str, list[str]]) -> str:
        """One page of ListObjectsV2."""
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        after = query.get("continuation-token", [""])[0]
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        files, folders = [], set()
        for key in keys[:PAGE]:
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                files.append(key)
        more = len(keys) > PAGE
        parts = [f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size><ETag>{self.etag(key)}</ETag>"
                 "<LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>" for key in files]  # fmt: skip
        parts += [f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders)]
        token = f"<NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{self.name}</Name><KeyCount>{len(files)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token}{''.join(parts)}</ListBucketResult>"
        )

    def etag(self, key: str) -> str:
        """The content's hash in quotes."""
        return f'"{hashlib.md5(self.objects[key]).hexdigest()}"'


@contextmanager
def serving(bucket: Bucket) -> Iterator[Bucket]:
    """The bucket behind `bucket.url` until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            name, _, key = unquote(url.path).lstrip("/").partition("/")
            if name != bucket.name:
                self._answer(404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>")
            elif not key:
                self._answer(200, bucket.listing(parse_qs(url.query)).encode())
            elif key not in bucket.objects:
                self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")
            else:
                bucket.reads += [key] if self.command == "GET" else []
                self._answer(200, bucket.objects[key], bucket.etag(key))

        def _answer(self, code: int, body: bytes, etag: str = "") -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", formatdate(1767323045, usegmt=True))
            if etag:
                self.send_header("ETag", etag)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: tests read stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    bucket.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield bucket
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
