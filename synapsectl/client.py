"""Calls the daemon's API over its Unix socket: plain requests and event streams.

HTTP/1.0 is spoken, one connection a request: the end of an answer is the end of the connection, nothing is chunked,
and a stream can be waited on with a time limit without losing a byte. Doing so by hand saves the 16 ms that importing
`http.client` (with `email` and `ssl`) costs, a quarter of what `synapsectl list` may take.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, Self

from synapsectl.ahead import CONNECT_TIMEOUT
from synapsectl.errors import ApiError, BadAnswer, NoDaemon, NotAllowed, NotOurs, TimedOut
from synapsed.config.sockets import connect, why_not_our_folder, why_not_our_peer
from synapsed.shared.sse_parser import SseEvent, SseParser, SseTooLarge

REQUEST_TIMEOUT = 30.0
"""Seconds of silence after a request."""

SLOW_TIMEOUT = 180.0
"""Seconds of silence after a request that starts or stops programs: the stop ladder waits for them."""

GRACE = 0.5
"""Seconds that a request gets when a person's time limit is over."""

HEAD_MAX = 64 * 1024
"""Bytes of an answer's status line and headers."""

ANSWER_MAX = 256 * 1024 * 1024
"""Bytes of an answer's body, above any spool's retention."""

CHUNK = 64 * 1024
SAVED_AT_ONCE = 1024 * 1024
_ANOTHER_PLACE = "remove it if you can, or set XDG_RUNTIME_DIR to a folder of your own"
_IN_A_SANDBOX = (
    "the system keeps this command from sockets, as the sandbox of an agent's program does. It has tools for this "
    "outside of its sandbox (list_agents, send_message, reply, get_task); a person runs it in another terminal"
)
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


class HttpReply(NamedTuple):
    """One answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def agent_path(agent: str, rest: str = "", *, control: bool = False) -> str:
    """Returns the path of an agent's resource; `agent` is an address as a person typed it."""
    prefix = "/control/agents/" if control else "/agents/"
    return f"{prefix}{_quoted(agent)}{'/' + rest if rest else ''}"


def task_path(task: str, rest: str = "") -> str:
    """Returns the control path of a task, by its id or a prefix of it."""
    return f"/control/tasks/{_quoted(task)}{'/' + rest if rest else ''}"


def host_path(host: str) -> str:
    """Returns the path of another host, by its name here."""
    return f"/hosts/{_quoted(host)}"


def _quoted(text: str) -> str:
    """Returns `text` as a piece of a path or query. Names and ids, the usual case, need no quoting: `urllib` is
    imported for the others only."""
    if _PLAIN.fullmatch(text):
        return text
    from urllib.parse import quote

    return quote(text, safe="")


class Client:
    """Speaks to the daemon behind `socket_path`, or, if no process listens there, to the daemon whose socket the lock
    file `lock` records. `token` is an agent's own, in a shell of an agent."""

    def __init__(self, socket_path: str, *, token: str | None = None, lock: str | None = None) -> None:
        self.socket_path = socket_path
        self.token = token
        self._lock = lock
        self.deadline: float | None = None
        """End of the person's own time limit, on the monotonic clock. No request waits much longer."""
        self._limit: float | None = None

    def limit(self, seconds: float | None) -> float | None:
        """Begins the person's own time limit for all following requests; returns its end."""
        self._limit = seconds
        self.deadline = None if seconds is None else time.monotonic() + seconds
        return self.deadline

    def get(self, path: str, query: Mapping[str, object] | None = None, *, timeout: float = REQUEST_TIMEOUT) -> Any:
        """Returns the JSON at `path`. Raises ApiError, NoDaemon, TimedOut."""
        return document_of(self.request("GET", path, query, timeout=timeout))

    def post(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float = REQUEST_TIMEOUT,
        key: str | None = None,
    ) -> Any:
        """Returns the JSON that answers `body`; requests with the same `key` count once. Raises ApiError, NoDaemon,
        TimedOut."""
        return document_of(self.request("POST", path, None, body=body or {}, timeout=timeout, key=key))

    def tell(self, path: str, body: Mapping[str, Any], *, timeout: float) -> socket.socket:
        """Sends `body` without waiting for the answer; the daemon handles the request while the returned connection is
        open. Raises NoDaemon, OSError."""
        connection = self.connect()
        try:
            connection.settimeout(timeout)
            self._send(connection, "POST", path, None, body=body, accept="application/json")
        except OSError:
            connection.close()
            raise
        return connection

    def delete(self, path: str) -> Any:
        """Returns the JSON of the answer. Raises ApiError, NoDaemon, TimedOut."""
        return document_of(self.request("DELETE", path, None))

    def get_bytes(self, path: str, query: Mapping[str, object] | None = None) -> bytes:
        """Returns the raw body at `path`. Raises ApiError, NoDaemon, TimedOut."""
        reply = self.request("GET", path, query, timeout=REQUEST_TIMEOUT)
        if reply.status != 200:
            document_of(reply)
        return reply.body

    def save(self, path: str, file: BinaryIO) -> int:
        """Writes the raw body at `path` into `file`, piece by piece; returns its size in bytes. Raises ApiError,
        BadAnswer, NoDaemon, TimedOut; OSError if the file cannot be written."""
        with self.connect() as connection:
            connection.settimeout(self._within(REQUEST_TIMEOUT))
            self._send(connection, "GET", path, None, body=None, accept="*/*")
            try:
                status, headers, piece = read_head(connection)
                if status != 200:
                    document_of(HttpReply(status, headers, read_body(connection, piece, headers)))
                size, length = 0, int(headers.get("content-length", "-1"))
                while True:
                    size += file.write(piece)
                    if size == length or not (piece := connection.recv(SAVED_AT_ONCE)):
                        break
            except TimeoutError:
                raise TimedOut(
                    f"the daemon stopped sending its answer for {self.told(REQUEST_TIMEOUT)} (GET {path})"
                ) from None
        if size != length:
            raise BadAnswer("the daemon went away while it answered")
        return size

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        *,
        body: Mapping[str, Any] | None = None,
        timeout: float = REQUEST_TIMEOUT,
        key: str | None = None,
    ) -> HttpReply:
        """Sends one request and returns its whole answer, whatever its status. Raises NoDaemon, TimedOut."""
        with self.connect() as connection:
            connection.settimeout(self._within(timeout))
            extra = {"Idempotency-Key": key} if key is not None else {}
            try:
                self._send(connection, method, path, query, body=body, accept="application/json", extra=extra)
                return _read_reply(connection)
            except TimeoutError:
                raise TimedOut(f"the daemon did not answer within {self.told(timeout)} ({method} {path})") from None
            except OSError as error:
                raise BadAnswer(f"the daemon went away while it answered: {error.strerror or error}") from None

    def stream(self, path: str, query: Mapping[str, object] | None = None, *, last_id: str = "") -> "EventStream":
        """Returns the events at `path`, after the one with `last_id` if it is given. Raises ApiError, NoDaemon."""
        connection = self.connect()
        try:
            connection.settimeout(self._within(REQUEST_TIMEOUT))
            extra = {"Last-Event-ID": last_id} if last_id else {}
            self._send(connection, "GET", path, query, body=None, accept="text/event-stream", extra=extra)
            status, headers, rest = read_head(connection)
            if status != 200:
                document_of(HttpReply(status, headers, read_body(connection, rest, headers)))
            return EventStream(connection, rest)
        except TimeoutError:
            connection.close()
            raise TimedOut(f"the daemon did not answer within {self.told(REQUEST_TIMEOUT)} (GET {path})") from None
        except OSError as error:
            connection.close()
            raise BadAnswer(f"the daemon went away while it answered: {error.strerror or error}") from None
        except BaseException:
            connection.close()
            raise

    def connect(self) -> socket.socket:
        """Returns a connection to the daemon. Raises NoDaemon, NotAllowed; NotOurs before anything is sent to another
        user."""
        try:
            return self._connect(self.socket_path)
        except NoDaemon as error:
            path = self._told_elsewhere(error)
        connection = self._connect(path)
        self.socket_path = path  # the next request goes there at once
        return connection

    def _told_elsewhere(self, error: NoDaemon) -> str:
        """Returns the daemon's socket if it is in another place than expected. Raises `error` if none is recorded,
        NoDaemon if it is on another host."""
        from synapsed.process.lock_record import advice, elsewhere, recorded_socket, whose

        if self._lock is None:
            raise error
        if (path := recorded_socket(self._lock)) is not None and path != self.socket_path:
            return path
        if (record := elsewhere(self._lock)) is not None:
            state = self._lock.rpartition("/")[0]
            raise NoDaemon(f"no daemon runs here: {whose(state, record)}", advice(state))
        raise error

    def _connect(self, path: str) -> socket.socket:
        folder = path.rpartition("/")[0] or "/"
        if (reason := why_not_our_folder(folder)) is not None:
            raise NotOurs(f"{reason}: nothing was sent to the control socket there; {_ANOTHER_PLACE}")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connect(connection, path, self._within(CONNECT_TIMEOUT))
        except OSError as error:
            connection.close()
            if isinstance(error, TimeoutError) and self._within(CONNECT_TIMEOUT) <= GRACE:
                raise TimedOut("the daemon did not take the connection in time") from None
            if isinstance(error, PermissionError):
                raise NotAllowed(f"{path}: {error.strerror}; {_IN_A_SANDBOX}") from None
            if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
                reason = f"no daemon is running (no answer on {path})"
            else:
                reason = f"the daemon cannot be reached on {path}: {error.strerror or error}"
            raise NoDaemon(reason, "'synapsed run' starts one, and so does 'synapsectl start PROFILE'") from None
        if (reason := why_not_our_peer(connection)) is not None:
            connection.close()
            raise NotOurs(f"{path}: {reason}: nothing was sent; {_ANOTHER_PLACE}")
        return connection

    def _within(self, seconds: float) -> float:
        """Returns `seconds`, or the rest of the person's own limit if that is less, but at least `GRACE`, for the
        request that reads the state after the limit."""
        if self.deadline is None:
            return seconds
        return min(seconds, max(GRACE, self.deadline - time.monotonic()))

    def told(self, seconds: float) -> str:
        """Returns the limit that was over: the person's own, as it was given, or `seconds`."""
        return f"{seconds if self._limit is None else min(seconds, self._limit):g} s"

    def head(
        self, method: str, path: str, query: Mapping[str, object] | None, *, version: str, headers: Mapping[str, str]
    ) -> bytes:
        """Returns the request line and headers, with the empty line after them."""
        target = path + ("?" + "&".join(f"{key}={_quoted(str(query[key]))}" for key in query) if query else "")
        told = {"Host": "localhost", **headers} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        return f"{method} {target} HTTP/{version}\r\n{lines}\r\n".encode("ascii")

    def _send(
        self,
        connection: socket.socket,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        *,
        body: Mapping[str, Any] | None,
        accept: str,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        payload = b"" if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "Connection": "close", **(extra or {})}
        if body is not None:
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(payload))}
        head = self.head(method, path, query, version="1.0", headers=headers)
        try:
            connection.sendall(head + payload)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a body answers and closes before it has read the body: the answer says why.
            return


class EventStream:
    """An open stream of events; a context manager."""

    def __init__(self, connection: socket.socket, rest: bytes) -> None:
        self._connection = connection
        self._parser = SseParser()
        self._ready = self._feed(rest)

    def events(self, tick: Callable[[], float] | None = None) -> Iterator[SseEvent | None]:
        """Yields every event until the daemon ends the stream; None after each `tick()` seconds without one.

        Raises BadAnswer when the connection breaks."""
        while True:
            while self._ready:
                yield self._ready.pop(0)
            chunk = self._receive(tick() if tick else None)
            if chunk is None:
                yield None
            elif not chunk:
                return
            else:
                self._ready.extend(self._feed(chunk))

    def _receive(self, tick: float | None) -> bytes | None:
        """Returns the next bytes, b"" at the end, None when `tick` passed."""
        self._connection.settimeout(tick)
        try:
            return self._connection.recv(CHUNK)
        except TimeoutError:
            return None
        except OSError as error:
            raise BadAnswer(f"the daemon went away: {error.strerror or error}") from None

    def _feed(self, chunk: bytes) -> list[SseEvent]:
        try:
            return self._parser.feed(chunk)
        except SseTooLarge:
            raise BadAnswer("the daemon sent an event that is too large to be one") from None

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def read_head(connection: socket.socket, data: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Returns status, headers, and the part of the body that was read; `data` was read before."""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(CHUNK)
        if not chunk or len(data) > HEAD_MAX:
            raise BadAnswer("the daemon ended the connection without an answer" if not chunk else "no HTTP answer")
        data += chunk
    head, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdecimal():
        raise BadAnswer("what listens on the control socket is no synapsed")
    pairs = (line.partition(":") for line in lines)
    return int(parts[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}, rest


def read_body(connection: socket.socket, rest: bytes, headers: Mapping[str, str]) -> bytes:
    """Returns the body: as long as its header says, else up to the end of the connection."""
    said = headers.get("content-length", "")
    length = int(said) if said.isdecimal() else None
    pieces, size = [rest], len(rest)
    while length is None or size < length:
        chunk = connection.recv(CHUNK)
        if not chunk:
            break
        pieces.append(chunk)
        size += len(chunk)
        if size > ANSWER_MAX:
            raise BadAnswer(f"the daemon's answer has more than {ANSWER_MAX} bytes")
    if length is not None and size < length:
        raise BadAnswer("the daemon went away while it answered")
    return b"".join(pieces)


def _read_reply(connection: socket.socket) -> HttpReply:
    status, headers, rest = read_head(connection)
    return HttpReply(status, headers, read_body(connection, rest, headers))


def document_of(reply: HttpReply) -> Any:
    """Returns the answer's JSON. Raises ApiError for an error document, BadAnswer for anything else."""
    try:
        document = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise BadAnswer(f"the daemon answered HTTP {reply.status} without JSON") from None
    if reply.status < 400:
        return document
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        raise BadAnswer(f"the daemon answered HTTP {reply.status} without an error document")
    raise ApiError(
        str(error.get("code", "INTERNAL")),
        str(error.get("message", f"HTTP {reply.status}")),
        details=error.get("details") if isinstance(error.get("details"), dict) else None,
        status=reply.status,
    )
