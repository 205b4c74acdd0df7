"""A headless Chromium driven over its debugging pipe: no package besides Debian's chromium is needed."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


class BrowserError(Exception):
    pass


class Page:
    """One page; keeps what it asked for and complained of."""

    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session
        self.requests, self.complaints, self.loaded = [], [], False
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility", "Performance"):
            self.send(domain + ".enable")

    def send(self, method, **parameters):
        return self.browser.send(method, parameters, self.session)

    def heard(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(parameters["args"]))
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog: " + parameters["message"])
            self.browser.post("Page.handleJavaScriptDialog", {"accept": True}, self.session)
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, url):
        self.loaded = False
        self.send("Page.navigate", url=url)
        self.browser.wait_until(lambda: self.loaded, f"{url} did not load")

    def run(self, expression):
        """The value of a JavaScript expression; what is a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, scheme):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, key, text=None, modifiers=0):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "Escape": 27}
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else None) if text is None else text
        names = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        if text:
            self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **names)
        else:
            self.send("Input.dispatchKeyEvent", type="rawKeyDown", **names)
        self.send("Input.dispatchKeyEvent", type="keyUp", **names)

    def type(self, text):
        for character in text:
            self.key(character)

    def picture(self, path, whole=False):
        parameters = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000),
                                  "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.send("Page.captureScreenshot", **parameters)["data"]))

    def pdf(self):
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True, paperWidth=8.27,
                                          paperHeight=11.69)["data"])

    def close(self):
        self.browser.send("Target.closeTarget", {"targetId": self.target})


class Chromium:
    """Ends with `with`. Offline: whatever it asks of a network fails, and is seen."""

    def __init__(self, program="chromium", patience_s=60):
        self.patience_s = patience_s
        self.profile = tempfile.mkdtemp(prefix="holdfast-browser-")
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()

        def be_child():  # it wants these two
            os.dup2(to_read, 1003)
            os.dup2(to_write, 1004)
            os.dup2(1003, 3)
            os.dup2(1004, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--force-color-profile=srgb", f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=be_child,
            close_fds=False, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.answers, self.pages, self.bytes = 0, {}, {}, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.out)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def page(self):
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.pages[session] = page = Page.__new__(Page)
        page.__init__(self, target, session)
        page.requests.clear()
        return page

    def post(self, method, parameters, session=None):
        self.numbers += 1
        message = {"id": self.numbers, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        return self.numbers

    def send(self, method, parameters, session=None):
        number = self.post(method, parameters, session)
        self.wait_until(lambda: number in self.answers, f"no answer to {method}")
        answer = self.answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_until(self, done, why):
        give_up = time.monotonic() + self.patience_s
        while not done():
            if time.monotonic() > give_up:
                raise BrowserError(why)
            self._listen()

    def _listen(self):
        if not select.select([self.into], [], [], 1)[0]:
            return
        piece = os.read(self.into, 1 << 16)
        if not piece:
            raise BrowserError("the browser has ended")
        *messages, self.bytes = (self.bytes + piece).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].heard(message["method"], message["params"])
