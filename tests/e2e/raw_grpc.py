"""gRPC by hand: enough HTTP/2 to say to perfd, or to an agent, what a well-behaved library never would.

Source: RFC 9113 sections 3.4, 4.1, 6.2; RFC 7541 section 6.2.2; gRPC over HTTP/2 (PROTOCOL-HTTP2.md).
"""
import os
import socket
import ssl
import struct
import threading
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4
CONNECT = "/perfd.v1.AgentService/Connect"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(headers):
    """Literal fields without indexing, plain strings below 127 bytes."""
    block = b""
    for name, value in headers:
        for text in (b"\0", name.encode(), value.encode()):
            block += text if text == b"\0" else bytes([len(text)]) + text
    return block


def message(payload, declared=None):
    return b"\0" + struct.pack(">I", len(payload) if declared is None else declared) + payload


def field(number, value):
    """One protobuf field: an int as varint, bytes or text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def register(node, protocol=1, stream="0123456789abcdef0123456789abcdef"):
    """An AgentMessage with a Register, as proto/perfd/v1/agent.proto numbers its fields."""
    return field(1, field(1, node) + field(2, "9.9.9") + field(3, protocol) + field(4, stream))


class Talk:
    """A connection to perfd's Unix socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(5)
        self.socket.connect(str(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # perfd may have closed: the point is that it lives on

    def call(self, path):
        self.send(PREFACE + frame(SETTINGS, 0, 0))
        self.send(frame(HEADERS, END_HEADERS, 1, header_block([
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "perfd"),
            ("te", "trailers"), ("content-type", "application/grpc")])))

    def say(self, data):
        for begin in range(0, len(data), 16384):
            self.send(frame(DATA, 0, 1, data[begin:begin + 16384]))

    def hear(self, wanted, seconds=5):
        """Everything that arrives until `wanted` is in it, the peer closes, or the time is over."""
        heard = b""
        self.socket.settimeout(seconds)
        end = time.monotonic() + seconds
        try:
            while wanted not in heard and time.monotonic() < end:
                piece = self.socket.recv(65536)
                if not piece:
                    break
                heard += piece
        except OSError:
            pass
        return heard


class Unfinished:
    """A connection with calls whose requests never end: it sends as much as the flow control of HTTP/2 allows (RFC 9113, 6.9)."""

    def __init__(self, where, calls, size):
        """where: the path of a Unix socket, or a socket that is connected, with or without TLS."""
        if isinstance(where, socket.socket):
            self.socket = where
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(str(where))
        self.allowed, self.first, self.heard, self.ended = 65535, 65535, b"", False
        self.send(PREFACE + frame(SETTINGS, 0, 0))
        headers = header_block([(":method", "POST"), (":scheme", "http"), (":path", "/perfd.v1.Profiler/GetProfile"),
                                (":authority", "perfd"), ("te", "trailers"), ("content-type", "application/grpc")])
        self.calls = {}  # stream: [what its window allows, what is left to send]
        for stream in range(1, 2 * calls, 2):
            self.send(frame(HEADERS, END_HEADERS, stream, headers))
            self.calls[stream] = [self.first, size]
            self.data(stream, message(b"", declared=size + 1))
        self.socket.setblocking(False)

    def send(self, data):
        self.socket.setblocking(True)
        try:
            self.socket.sendall(data)
        except OSError:
            self.ended = True
        self.socket.setblocking(False)

    def data(self, stream, payload):
        self.send(frame(DATA, 0, stream, payload))
        self.allowed -= len(payload)
        self.calls[stream][0] -= len(payload)

    def hear(self):
        try:
            piece = self.socket.recv(1 << 20)
            self.ended |= not piece
            self.heard += piece
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.ended = True
        while len(self.heard) >= 9:
            length = int.from_bytes(self.heard[:3], "big")
            if len(self.heard) < 9 + length:
                return
            kind, flags, stream = self.heard[3], self.heard[4], int.from_bytes(self.heard[5:9], "big")
            self.obey(kind, flags, stream, self.heard[9:9 + length])
            self.heard = self.heard[9 + length:]

    def obey(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & 1:
            for i in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[i:i + 6])
                if name == 4:  # the window that streams begin with
                    for call in self.calls.values():
                        call[0] += value - self.first
                    self.first = value
            self.send(frame(SETTINGS, 1, 0))
        elif kind == 8 and stream == 0:
            self.allowed += int.from_bytes(payload, "big")
        elif kind == 8 and stream in self.calls:
            self.calls[stream][0] += int.from_bytes(payload, "big")
        elif kind == 6 and not flags & 1:
            self.send(frame(6, 1, 0, payload))
        elif kind == 3:
            self.calls.pop(stream, None)
        elif kind == 7:
            self.ended = True

    def push(self):
        """Sends what may be sent now."""
        self.hear()
        for stream, call in list(self.calls.items()):
            piece = min(call[1], call[0], self.allowed, 16384)
            if piece > 0 and not self.ended:
                self.data(stream, bytes(piece))
                call[1] -= piece


class FalseDaemon:
    """Listens where an agent expects its daemon: says `hello`, and `answer` once it has been asked something."""

    def __init__(self, path, hello, answer=b""):
        self.path, self.hello, self.answer, self.visits = str(path), hello, answer, 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.visits += 1
            with peer:
                peer.settimeout(0.5)
                try:
                    peer.sendall(self.hello)
                    heard = b""
                    while CONNECT.encode() not in heard and b"/perfd.v1." not in heard:
                        piece = peer.recv(65536)
                        if not piece:
                            break
                        heard += piece
                    peer.sendall(self.answer)
                    while peer.recv(65536):
                        pass
                except OSError:
                    pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)
        os.unlink(self.path)


def refusal(status, text):
    """What a daemon says that ends a call at once."""
    return frame(HEADERS, END_HEADERS | END_STREAM, 1, header_block([
        (":status", "200"), ("content-type", "application/grpc"), ("grpc-status", str(status)),
        ("grpc-message", text)]))
