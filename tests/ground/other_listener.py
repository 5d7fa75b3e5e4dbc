"""Another user's listener: `python other_listener.py UID FILE PORT…` holds [::1] at each port, and notes what comes."""

import os
import selectors
import socket
import sys


def main() -> None:
    uid, file, *ports = sys.argv[1:]
    told = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    heard = selectors.DefaultSelector()
    for port in ports:
        listener = socket.create_server(("::1", int(port)), family=socket.AF_INET6)
        heard.register(listener, selectors.EVENT_READ)
    print("listening", flush=True)
    while True:
        for key, _ in heard.select():
            assert isinstance(key.fileobj, socket.socket)
            connection, _ = key.fileobj.accept()
            with connection:
                os.write(told, connection.recv(65536) + b"\n")
                body = b'{"status": "ok", "version": "0"}'
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
                connection.sendall(head + str(len(body)).encode() + b"\r\n\r\n" + body)


if __name__ == "__main__":
    main()
