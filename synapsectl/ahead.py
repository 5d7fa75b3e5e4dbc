"""`synapsectl attach AGENT` begins before the rest of the tool is loaded: the daemon is asked, and the screen drawn,
with hardly more than every Python has loaded at its start; the rest is loaded while the person sees the screen already.

This is only for the plainest case. In any other case this module stops, and `synapsectl.attachment` goes on with the
connection and the terminal in their present state. Avoiding imports here is part of the gain.
"""

import os
import time

TYPE_CHECKING = False
"""Same as in `typing`, which takes longer to import than this whole module."""
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping, Sequence

DEFAULT_DETACH = "ctrl-]"
"""Key to detach. No agent program is known to use it; telnet has the same key for the same reason."""

PUSH_TITLE = b"\x1b[22;0t"
ALTERNATE_ON, ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"

CONNECT_TIMEOUT = 5.0
"""Seconds for the daemon to accept a connection; if its backlog is full for longer, it is stuck."""

DRAWN_S = 0.5
"""Seconds to wait for the screen; if it takes longer, the rest of the tool is loaded first."""

INTERRUPTED = 130
"""Exit code 128 + SIGINT, as shells report it."""

CHUNK = 256 * 1024
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_PLAIN_SETTINGS = (b'"status":false', b'"wheel":false', b'"scrollback":0')
"""Parts of a greeting which say that the daemon's screen is shown unchanged."""
_ONE_SCREEN = b'"one_screen":true'
_HEAD_END = b"\r\n\r\n"


def told(name: str, keys: str) -> str:
    """Returns the hint before an agent's screen is shown."""
    return f"[{name}: {keys} detaches, {keys.partition(',')[0]} ? tells what else it can]"


def take(given: int) -> tuple[int, list[object]]:
    """Makes the terminal on the descriptor `given` raw. Returns a descriptor of our own for it, if possible, and its
    former settings. Raises termios.error."""
    import termios
    import tty

    try:
        fd = os.open(os.ttyname(given), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        fd = given
    try:
        saved: list[object] = termios.tcgetattr(fd)
        # TCSADRAIN keeps the keys that were typed before: they were meant for the agent.
        tty.setraw(fd, termios.TCSADRAIN)
    except termios.error:
        if fd != given:
            os.close(fd)
        raise
    return fd, saved


def clear(rows: int, *, alternate: bool) -> bytes:
    """Returns the bytes that save the present screen: `alternate` switches to the alternate screen, and the rows are
    scrolled into the scrollback, so that they are not painted over in a terminal without an alternate screen either."""
    return PUSH_TITLE + (ALTERNATE_ON if alternate else b"") + scroll_away(rows)


def scroll_away(rows: int) -> bytes:
    return b"\x1b[999;1H" + b"\r\n" * rows + b"\x1b[H"


class BegunAttach:
    """An agent's terminal that was requested from the daemon, by a terminal of `size` (columns, rows)."""

    def __init__(self, connection: "_socket.socket", size: tuple[int, int]) -> None:
        self.connection = connection
        self.size = size
        self.received = b""
        self.alternate = False
        """True if the screen is drawn on the terminal's alternate one."""
        self.terminal: tuple[int, list[object]] | None = None
        """The result of `take`, if the screen is drawn there."""
        self.shown = b""
        """Bytes that the terminal took at once; `unshown` is the rest."""
        self.unshown = b""
        self._frames: list[tuple[int, bytes]] = []
        self._screen = b""

    def receive(self) -> bool:
        """Waits at most `DRAWN_S` for the screen; returns True if it has come after the greeting."""
        from synapsed.shared.attach_frames import NEWS, SCREEN, SCREEN_MAX, FrameError, FrameReader

        until = time.monotonic() + DRAWN_S
        reader: FrameReader | None = None
        while (left := until - time.monotonic()) > 0:
            self.connection.settimeout(left)
            try:
                data = self.connection.recv(CHUNK)
            except OSError:
                return False
            if not data:
                return False
            self.received += data
            if reader is None and _HEAD_END in self.received:
                head, _, data = self.received.partition(_HEAD_END)
                if not head.startswith(b"HTTP/1.1 101 "):
                    return False
                reader = FrameReader(SCREEN_MAX)
            try:
                self._frames += reader.feed(data) if reader else ()
            except FrameError:
                return False
            if screens := [payload for kind, payload in self._frames if kind == SCREEN]:
                self._screen = screens[0]
                return self._frames[0][0] == NEWS
        return False

    def draw(self) -> None:
        """Takes the terminal and shows the screen there, if nothing else has to be shown around it."""
        greeting = self._frames[0][1]
        name = greeting.partition(b'"name":"')[2].partition(b'"')[0].decode("ascii", "replace")
        if not (name and _NAME.issuperset(name) and all(setting in greeting for setting in _PLAIN_SETTINGS)):
            return
        import termios

        try:
            os.write(2, told(name, DEFAULT_DETACH).encode() + b"\n")
            self.terminal = take(0)
            self.alternate = _ONE_SCREEN in greeting
            self.unshown = clear(self.size[1], alternate=self.alternate) + self._screen
            taken = os.write(self.terminal[0], self.unshown)
            self.shown, self.unshown = self.unshown[:taken], self.unshown[taken:]
        except (OSError, termios.error):  # full, or gone: `AttachedTerminal` handles it
            return


def head_of(agent: str, cols: int, rows: int) -> bytes:
    """Returns the request for the terminal of `agent`."""
    from synapsed.shared.attach_frames import UPGRADE

    target = f"/agents/{agent}/terminal?cols={cols}&rows={rows}&one_screen=1"
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\nUpgrade: {UPGRADE}\r\nConnection: Upgrade\r\n\r\n".encode()


def _load() -> None:
    """Imports the modules for drawing."""
    import termios  # noqa: F401
    import tty  # noqa: F401


def begin(arguments: "Sequence[str]", environ: "Mapping[str, str]") -> BegunAttach | None:
    """Requests the terminal of the agent, if `arguments` are `attach AGENT` and nothing forbids; returns None
    otherwise. After the request, signals that end or stop are blocked until `AttachedTerminal` can handle them; before
    it, a KeyboardInterrupt is raised as usual."""
    if len(arguments) != 2 or arguments[0] != "attach" or not _NAME.issuperset(arguments[1]):
        return None
    if arguments[1][:1] in ("-", "") or environ.get("TERM") == "dumb" or "SYNAPSE_CONTROL_SOCKET" in environ:
        return None
    if not (os.isatty(0) and os.isatty(1) and os.isatty(2)):
        return None
    begun = _ask(arguments[1], environ)
    if begun is not None and begun.receive():
        begun.draw()
    return begun


def _ask(agent: str, environ: "Mapping[str, str]") -> BegunAttach | None:
    """Requests the agent's terminal; returns None if that fails: the second attempt, with everything loaded, reports
    the reason."""
    import _signal  # type: ignore[import-not-found]  # typeshed has none
    import _socket

    from synapsed.config.sockets import connect, control_socket, why_not_our_folder, why_not_our_peer

    path = control_socket(environ)
    if why_not_our_folder(path.rpartition("/")[0] or "/") is not None:
        return None
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        size = os.get_terminal_size(0)
        cols, rows = size.columns or 80, size.lines or 24
        connect(connection, path, CONNECT_TIMEOUT)
        if why_not_our_peer(connection) is not None:
            connection.close()
            return None
        # A signal that ends or stops would leave the terminal as it is. Importing `signal` itself would take longer.
        ending = (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTSTP)
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, ending)
        try:
            connection.sendall(head_of(agent, cols, rows))
        except OSError:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
            raise
    except OSError:
        connection.close()
        return None
    _load()  # while the daemon works
    return BegunAttach(connection, (cols, rows))
