"""A mail server on loopback, in a thread: speaks as much of SMTP as a client needs, with STARTTLS and a login where the
test wants them."""

import base64
import socketserver
import ssl
import threading
from email import message_from_bytes
from email.message import Message
from email.policy import default

__all__ = ["MailServer"]


class MailServer:
    """`mails` are those that were taken. `refuse` is the answer to the next mails, such as `451 later`."""

    def __init__(self, *, trust: ssl.SSLContext | None = None, login: tuple[str, str] | None = None) -> None:
        self.mails: list[Message] = []
        self.recipients: list[list[str]] = []
        self.refuse = ""
        self.refused_recipients: set[str] = set()
        self.bye = "221 bye"
        self.attempts = 0
        self.slow_s = 0.0
        """Seconds before a mail is taken."""
        self.over = threading.Event()
        self.trust = trust
        self.login = login
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _Dialogue(server, self).hold()

            def finish(self) -> None:
                super().finish()
                self.connection.close()

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> "MailServer":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Dialogue:
    def __init__(self, server: MailServer, request: socketserver.StreamRequestHandler) -> None:
        self._server = server
        self._request = request
        self._secure = server.trust is None
        self._known = server.login is None
        self._to: list[str] = []

    def hold(self) -> None:
        self._say("220 here")
        while line := self._request.rfile.readline():
            if not self._heard(line.decode().strip()):
                return

    def _heard(self, line: str) -> bool:
        verb = line.partition(" ")[0].upper()
        match verb:
            case "EHLO":
                offers = ["here", *([] if self._secure else ["STARTTLS"]), *(["AUTH PLAIN"] if self._secure else [])]
                self._say(*(f"250{'-' if offer != offers[-1] else ' '}{offer}" for offer in offers))
            case "STARTTLS" if self._server.trust is not None:
                self._say("220 go on")
                self._request.connection = self._server.trust.wrap_socket(self._request.connection, server_side=True)
                self._request.rfile = self._request.connection.makefile("rb")
                self._request.wfile = self._request.connection.makefile("wb")
                self._secure = True
            case "AUTH":
                _, user, password = base64.b64decode(line.split(" ")[2]).decode().split("\0")
                self._known = self._secure and (user, password) == self._server.login
                self._say("235 welcome" if self._known else "535 no")
            case "MAIL":
                self._server.attempts += 1
                self._say(self._server.refuse or ("250 ok" if self._known else "530 who are you"))
            case "RCPT":
                name = line.partition("<")[2].partition(">")[0]
                if name in self._server.refused_recipients:
                    self._say("550 not here")
                else:
                    self._to.append(name)
                    self._say("250 ok")
            case "DATA":
                self._say("354 go on")
                self._take()
            case "QUIT":
                self._say(*[self._server.bye] if self._server.bye else [])
                return False
            case _:
                self._say("250 ok")
        return True

    def _take(self) -> None:
        lines = []
        while (line := self._request.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        self._server.over.wait(self._server.slow_s)
        self._server.recipients.append(self._to)
        self._server.mails.append(message_from_bytes(b"".join(lines), policy=default))
        self._say("250 taken")

    def _say(self, *lines: str) -> None:
        self._request.wfile.write("".join(f"{line}\r\n" for line in lines).encode())
        self._request.wfile.flush()
