"""A Chromium that a test controls by its remote debugging protocol over two pipes."""

import base64
import fcntl
import json
import os
import select
import time

import interop  # adds the folder of the next import
import programs

KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One page of a headless browser. `folder` is for its files."""

    def __init__(self, folder):
        from_browser, its_output = os.pipe()
        its_input, to_browser = os.pipe()
        # Numbers that differ from 3 and 4, which the browser reads and writes.
        passed = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (its_input, its_output)]
        self.process = programs.start(
            ["bash", "-c", f'exec "$@" 3<&{passed[0]} 4>&{passed[1]}', "bash", "chromium",
             "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"],
            pass_fds=passed)
        for end in its_input, its_output, *passed:
            os.close(end)
        self.to, self.source, self.buffer, self.count, self.session = to_browser, from_browser, b"", 0, None
        self.errors = []  # of the page's scripts, and violations of its policies
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.call(domain + ".enable")

    def end(self):
        programs.end(self.process)
        os.close(self.to)
        os.close(self.source)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self):
        deadline = time.time() + interop.PATIENCE_S
        while b"\0" not in self.buffer:
            if not select.select([self.source], [], [], max(0, deadline - time.time()))[0]:
                raise AssertionError("the browser does not answer")
            received = os.read(self.source, 1 << 20)
            if not received:
                raise AssertionError("the browser has ended")
            self.buffer += received
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["source"] == "security":
            self.errors.append(message["params"]["entry"])
        return message

    def size(self, width, height=1000):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def scheme(self, name):
        """light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def evaluate(self, script):
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def text(self, element):
        """The visible text of the element with this id, or ''."""
        return self.evaluate(f"document.getElementById({json.dumps(element)})?.innerText ?? ''")

    def wait(self, script, patience_s=interop.PATIENCE_S, before_each=lambda: None):
        """Waits until an expression is true, and returns its value."""
        deadline = time.time() + patience_s
        while True:
            before_each()
            try:
                if value := self.evaluate(script):
                    return value
            except AssertionError as failure:
                if "context" not in str(failure):  # of the page before this one
                    raise
            if time.time() > deadline:
                shown = self.evaluate("document.body.innerText")
                raise AssertionError(f"never true: {script}\n{shown}\n{self.errors}")
            time.sleep(0.1)

    def await_text(self, element, pattern, **options):
        """Waits until the visible text of the element matches."""
        return self.wait(f"new RegExp({json.dumps(pattern)}, 's').test("
                         f"document.getElementById({json.dumps(element)})?.innerText)", **options)

    def press(self, key):
        for kind in "keyDown", "keyUp":
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=KEYS[key], **text)

    def picture(self, whole=True):
        """A picture, as PNG, of the whole page or of the window."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def difference(self, one, other):
        """The mean difference of two pictures, each shrunk to 64 x 64 squares: 0 to 1."""
        one, other = (base64.b64encode(picture).decode() for picture in (one, other))
        return self.evaluate(f"""(async () => {{
            const pixels = await Promise.all(['{one}', '{other}'].map(async (text) => {{
              const picture = new Image();
              picture.src = 'data:image/png;base64,' + text;
              await picture.decode();
              const canvas = Object.assign(document.createElement('canvas'), {{width: 64, height: 64}});
              const into = canvas.getContext('2d');
              into.imageSmoothingQuality = 'high';
              into.drawImage(picture, 0, 0, 64, 64);
              return into.getImageData(0, 0, 64, 64).data;
            }}));
            return pixels[0].reduce((sum, value, i) => sum + Math.abs(value - pixels[1][i]), 0) / pixels[0].length / 255;
        }})()""")
