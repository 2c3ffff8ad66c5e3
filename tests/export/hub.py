"""A model hub on this machine: speaks what huggingface_hub asks, keeps what it was asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LARGE = (".safetensors", ".bin", ".h5", ".onnx", ".msgpack")
"""Stored by their SHA-256, as Git LFS does; other files by git's hash of their content."""


class Hub:
    """Repositories by name and commit, served on 127.0.0.1.

    Attributes:
        requests: Method, path and whether a key came along, in order.
        replaced: Content sent in place of a file's own, by its name.
        moved: Commit that listings name instead of the one asked for.
    """

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[tuple[str, str, bool]] = []
        self.replaced: dict[str, bytes] = {}
        self.moved: str | None = None
        self._files: dict[str, dict[str, dict[str, bytes]]] = {}

    def add(self, name: str, commit: str, folder: Path, **more: bytes) -> None:
        """Serve a folder's files, and some more, as a repository at a commit."""
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self._files.setdefault(name, {})[commit] = files | more

    def fetched(self) -> list[str]:
        """Return the names of the files whose content was asked for, in order."""
        parts = [path.split("/resolve/") for method, path, _ in self.requests if method == "GET"]
        return sorted(rest[0].split("/", 1)[1] for _, *rest in parts if rest)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for an address."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"] and len(parts) == 6:
            return self._listing("/".join(parts[2:4]), parts[5])
        if len(parts) >= 5 and parts[2] == "resolve":
            return self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))
        return 404, {}, b""

    def _commit(self, name: str, commit: str) -> dict[str, bytes] | str:
        if name not in self._files:
            return "RepoNotFound"
        return self._files[name].get(commit) or "RevisionNotFound"

    def _listing(self, name: str, commit: str) -> tuple[int, dict[str, str], bytes]:
        files = self._commit(name, commit)
        if isinstance(files, str):
            return 404, {"X-Error-Code": files}, b"{}"
        siblings = [self._sibling(file, content) for file, content in files.items()]
        listed = {"id": name, "sha": self.moved or commit, "siblings": siblings}
        return 200, {"Content-Type": "application/json"}, json.dumps(listed).encode()

    def _sibling(self, name: str, content: bytes) -> dict[str, Any]:
        found: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git(content)}
        if name.endswith(LARGE):
            digest = hashlib.sha256(content).hexdigest()
            found["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
        return found

    def _file(self, name: str, commit: str, file: str) -> tuple[int, dict[str, str], bytes]:
        files = self._commit(name, commit)
        if isinstance(files, str):
            return 404, {"X-Error-Code": files}, b""
        if file not in files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        content = files[file]
        is_large = file.endswith(LARGE)
        digest = hashlib.sha256(content).hexdigest() if is_large else git(content)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{digest}"', "Accept-Ranges": "none"}
        headers["X-Linked-Size"] = str(len(content))
        return 200, headers, self.replaced.get(file, content)


def git(content: bytes) -> str:
    """Return git's name of a file's content."""
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """Yield a hub without repositories, and end it."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Send status, headers and, for a GET, the body."""
            hub.requests.append((self.command, self.path, "Authorization" in self.headers))
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            """Send what a GET sends, without the body."""
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
