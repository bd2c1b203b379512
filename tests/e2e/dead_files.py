"""A file system in user space with one file, of which no read is ever answered."""
import ctypes
import errno
import os
import struct
import threading

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
FILE, SIZE = 2, 65536  # its node; the root's is 1
MNT_DETACH = 2
# Source: include/uapi/linux/fuse.h, enum fuse_opcode and the structures of the answers.
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 25, 26, 27, 36, 42
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT, READ)


def attributes(node, uid):
    mode = 0o100755 if node == FILE else 0o040755
    size = SIZE if node == FILE else 0
    return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, uid, uid, 0, 4096, 0)


class DeadFiles:
    def __init__(self, folder, uid):
        self.folder, self.uid = folder, uid

    def __enter__(self):
        self.folder.mkdir()
        try:
            self.device = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            pytest.skip(f"this machine mounts no file system in user space: {error}")
        options = f"fd={self.device},rootmode=40000,user_id={self.uid},group_id={self.uid}"
        if LIBC.mount(b"dead", bytes(self.folder), b"fuse", ctypes.c_ulong(0), options.encode()) != 0:
            os.close(self.device)
            pytest.skip(f"this machine mounts no file system in user space: {os.strerror(ctypes.get_errno())}")
        threading.Thread(target=self.serve, daemon=True).start()
        return self.folder / "file"

    def __exit__(self, *_):
        """Whoever waits for it gets an error now."""
        LIBC.umount2(bytes(self.folder), 1)  # MNT_FORCE
        LIBC.umount2(bytes(self.folder), MNT_DETACH)

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 17)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                os.close(self.device)
                return
            _, code, unique, node = struct.unpack_from("<IIQQ", request)
            if code not in UNANSWERED:
                self.answer(unique, *self.say(code, node))

    def say(self, code, node):
        """Contents and error of an answer."""
        if code == INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, SIZE, 0, 8, 6, SIZE, 1, 16, 0, *[0] * 8), 0
        if code == LOOKUP:
            return struct.pack("<4Q2I", FILE, 0, 3600, 3600, 0, 0) + attributes(FILE, self.uid), 0
        if code == GETATTR:
            return struct.pack("<Q2I", 3600, 0, 0) + attributes(node, self.uid), 0
        if code in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 1, 0, 0), 0
        return b"", 0 if code in (RELEASE, FLUSH) else -errno.ENOSYS

    def answer(self, unique, contents, error):
        os.write(self.device, struct.pack("<IiQ", 16 + len(contents), error, unique) + contents)
