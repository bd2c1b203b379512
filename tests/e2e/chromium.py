"""A headless Chromium, spoken to through two pipes: pages as a person would see them, and all that they complain about."""
import base64
import json
import os
import pathlib
import select
import shutil
import struct
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def installed():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """Errors on the console, uncaught exceptions and requests for anything but the file itself are kept in `complaints`."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="perfd-chromium-")
        self.complaints, self.events, self.buffer, self.number = [], [], b"", 0
        self.allowed = ("file:", "about:")
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def place():  # the protocol's ends are 3 and 4
            ends = os.dup(to_browser), os.dup(from_browser)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        for end in (to_browser, from_browser):  # above 4, so that placing one does not close the other
            os.set_inheritable(end, True)
        self.process = subprocess.Popen(
            [installed(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-extensions", "--remote-debugging-pipe",
             f"--user-data-dir={self.dir}", "about:blank"],
            close_fds=False, preexec_fn=place, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setScrollbarsHidden", hidden=True)  # the page gets the whole width, as on paper and phones

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.write)  # the browser ends when its pipe does
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        os.close(self.read)
        shutil.rmtree(self.dir, ignore_errors=True)

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise AssertionError(f"Chromium said nothing for {seconds} s")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise AssertionError("Chromium is gone")
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(60)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.note(answer["method"], answer["params"])

    def note(self, method, event):
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            said = " ".join(str(a.get("value", a.get("description"))) for a in event["args"])
            self.complaints.append(f"console {event['type']}: {said}")
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"log: {event['entry']['text']}")
        elif method == "Network.requestWillBeSent" and not event["request"]["url"].startswith(self.allowed):
            self.complaints.append(f"request: {event['request']['url'][:200]}")
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {event['message']}")

    def open(self, file, width=1280, height=900, dark=False):
        """The page at this size, drawn. An address instead of a file is the one that may be asked for."""
        served = str(file).startswith("http://")
        self.allowed = (str(file),) if served else ("file:", "about:")
        phone = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                 mobile=phone)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.ask("Page.navigate", url=file if served else pathlib.Path(file).resolve().as_uri())
        end = time.monotonic() + 60
        while "Page.loadEventFired" not in self.events:
            if time.monotonic() > end:
                raise AssertionError(f"{file} did not load")
            self.ask("Runtime.evaluate", expression="1")
        self.settle()

    def settle(self):
        """Until the charts have been drawn: they wait for their width."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")

    def run(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, file):
        """All of the page, as PNG: the picture's width, height, and pixels for each of the page's."""
        width, height, scale = self.run("[innerWidth, document.documentElement.scrollHeight, devicePixelRatio]")
        wanted = scale if height * scale <= 16384 else 1  # beyond so many rows Chromium repeats what it has drawn
        data = base64.b64decode(self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={
            "x": 0, "y": 0, "width": width, "height": height, "scale": wanted / scale})["data"])
        pathlib.Path(file).write_bytes(data)
        assert data.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR") and data.endswith(b"IEND\xaeB`\x82"), data[:30]
        return *struct.unpack(">II", data[16:24]), wanted

    def colours(self, file, places=()):
        """Of a picture, in an empty page: how many different colours there are in each tenth of its height, and those at places."""
        text = base64.b64encode(pathlib.Path(file).read_bytes()).decode()
        self.ask("Page.navigate", url="about:blank")
        before = list(self.complaints)  # the picture is a request too
        answer = self.run("""new Promise((done, failed) => {
          const image = new Image();
          image.onerror = () => failed("not a picture");
          image.onload = () => {
            const canvas = new OffscreenCanvas(image.width, image.height), on = canvas.getContext("2d", {willReadFrequently: true});
            on.drawImage(image, 0, 0);
            const seen = [];
            for (let part = 0; part < 10; ++part) {
              const top = Math.floor(image.height * part / 10), rows = Math.floor(image.height / 10);
              seen.push(new Set(new Uint32Array(on.getImageData(0, top, image.width, rows).data.buffer)).size);
            }
            done([seen, %s.map(([x, y]) => [...on.getImageData(x, y, 1, 1).data.slice(0, 3)])]);
          };
          image.src = "data:image/png;base64,%s";
        })""" % (json.dumps(list(places)), text))
        self.complaints[:] = before
        return answer

    def paper(self, file):
        data = self.ask("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]
        pathlib.Path(file).write_bytes(base64.b64decode(data))
