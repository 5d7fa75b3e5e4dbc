"""Reports one event of an agent program to the daemon; the program runs it as a hook, inside its turn.

    python -S -E -I hookclient.py HOOKS-DIRECTORY HOOKS-SOCKET AGENT-ID EVENT [DECIDE-SOCKET] < payload

The payload goes into a maildir, so that a hook that fires while the daemon is dead is not lost: written to `tmp/`,
renamed to `new/<at_ns, 20 digits>-<pid>.json`, then the agent's id is sent as a datagram to wake the daemon. The file
is one JSON object, the payload in it as it came, unparsed:

    {"event": EVENT, "at_ns": CLOCK_MONOTONIC, "wall": Unix seconds, "payload": PAYLOAD or null[, "problem": WORD]}

`problem` says why the payload is null: `terminal` (standard input is the person's keyboard), `closed`, `timeout` (it
stayed open and brought nothing), `too-large`. In every case the exit code is 0 and nothing is printed: programs read a
hook's output as orders, and a report must never make a turn (the program's work on one message) fail.

With DECIDE-SOCKET the event is a question: the agent's id, a line break and the file's content go to the daemon over
that stream socket, and its answer within DECIDE_SECONDS is printed, whole or not at all. If the daemon is dead, slow or
has no answer, nothing is printed: the program then asks its person, as it would by itself.
"""

import _socket  # not `socket`, which imports enum and selectors: more than everything here costs
import os
import select
import stat
import sys
import time

PAYLOAD_MAX = 16 << 20
"""Bytes of a payload that are kept; a larger one is reported without its content."""
STDIN_SECONDS = 3.0
"""Seconds that standard input may stay open; below the 5 s after which programs kill their hooks."""
READ_BYTES = 1 << 16
DECIDE_SECONDS = 2.0
"""Seconds that the daemon may take to decide, in all."""
DECISION_MAX = 1 << 16
"""Bytes of a decision; a longer one does not count."""


def read_payload(fd: int) -> tuple[bytes, str | None]:
    """Returns the content of `fd` until its end, and the problem, if any; at most PAYLOAD_MAX bytes, STDIN_SECONDS."""
    if os.isatty(fd):
        return b"", "terminal"
    deadline = time.monotonic() + STDIN_SECONDS
    pieces: list[bytes] = []
    size = 0
    while size <= PAYLOAD_MAX:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return b"".join(pieces), None if size else "timeout"
        piece = os.read(fd, READ_BYTES)
        if not piece:
            return b"".join(pieces), None
        pieces.append(piece)
        size += len(piece)
    return b"", "too-large"


def envelope(event: str, at_ns: int, wall: float, payload: bytes, problem: str | None) -> bytes:
    """Returns the file's content. `event` and `problem` are names of our own profiles: plain ASCII."""
    head = f'{{"event":"{event}","at_ns":{at_ns},"wall":{wall:.6f},"payload":'.encode("ascii", "replace")
    return b"".join((head, payload.strip() or b"null", f',"problem":"{problem}"}}\n'.encode() if problem else b"}\n"))


def store(hooks: str, name: str, content: bytes) -> None:
    """Stores the file `name` in `hooks`/new, whole or not at all. Raises OSError if disk or directory refuses."""
    unfinished = f"{hooks}/tmp/{name}"  # noqa: S108 - the maildir's own, not the system's
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.rename(unfinished, f"{hooks}/new/{name}")
    except OSError:
        os.unlink(unfinished)
        raise
    finally:
        os.close(fd)


def wake(path: str, agent: str) -> None:
    """Sends one datagram. Raises OSError if no process listens or the queue is full: the daemon sweeps anyway."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
    try:
        sock.sendto(agent.encode(), _socket.MSG_DONTWAIT, path)
    finally:
        sock.close()


def folder_is_ours(path: str) -> bool:
    """Returns True if only this user can have made the socket `path`. `synapsed.config.sockets` has the same rule;
    importing that would cost as much as all of this."""
    found = os.lstat(os.path.dirname(path))
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def peer_is_ours(sock: _socket.socket) -> bool:
    """Returns True if this user, or root, listens at the other end: the uid is the second number that Linux
    (SO_PEERCRED) and macOS (LOCAL_PEERCRED) report."""
    level, option, size = (1, 17, 12) if sys.platform == "linux" else (0, 1, 76)
    told: bytes = sock.getsockopt(level, option, size)
    return int.from_bytes(told[4:8], sys.byteorder) in (os.getuid(), 0)


def decision(path: str, agent: str, content: bytes) -> bytes:
    """Returns the decision of the daemon at `path`, or nothing. Raises OSError if it is missing or does not answer."""
    deadline = time.monotonic() + DECIDE_SECONDS
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.settimeout(DECIDE_SECONDS)
        while True:  # `synapsed.config.sockets.connect` has the same
            try:
                sock.connect(path)
            except BlockingIOError:  # many ask at once, and its queue is full
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.01)
            else:
                break
        if not peer_is_ours(sock):
            return b""
        sock.sendall(agent.encode() + b"\n" + content)
        sock.shutdown(_socket.SHUT_WR)
        answer = b""
        while len(answer) <= DECISION_MAX:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            piece = sock.recv(READ_BYTES)
            if not piece:
                return answer
            answer += piece
        return b""
    finally:
        sock.close()


def main(argv: list[str]) -> None:
    """Reports the event of `argv` (program, hooks directory, socket, agent, event[, decide socket]). Raises nothing."""
    at_ns, wall = time.monotonic_ns(), time.time()
    _, hooks, sock, agent, event, *decide = argv
    try:
        payload, problem = read_payload(0)
    except OSError:
        payload, problem = b"", "closed"
    content = envelope(event, at_ns, wall, payload, problem)
    try:
        store(hooks, f"{at_ns:020d}-{os.getpid()}.json", content)
    finally:
        if folder_is_ours(sock):
            try:
                wake(sock, agent)
            finally:
                if decide and (answer := decision(decide[0], agent, content)):
                    os.write(1, answer)


if __name__ == "__main__":
    try:
        main(sys.argv)
    except Exception:  # a report that fails must not fail the agent's turn, nor say anything
        pass
    finally:
        os._exit(0)  # nothing is left to flush; saves the interpreter's teardown
