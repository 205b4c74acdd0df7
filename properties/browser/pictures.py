"""Takes pictures of reports, to be looked at. Usage: pictures.py DIR OUT, where report_maker has made its reports."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from chromium import Chromium  # noqa: E402


def main():
    directory, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    with Chromium() as browser:
        for name in sorted(os.listdir(directory)):
            report = os.path.realpath(os.path.join(directory, name, "report.html"))
            if not os.path.exists(report):
                continue
            page = browser.page()
            page.size(1280, 800)
            page.open("file://" + report)
            for scheme in ("light", "dark"):
                page.scheme(scheme)
                page.picture(os.path.join(out, f"{name}-{scheme}.png"))
                page.picture(os.path.join(out, f"{name}-{scheme}-whole.png"), whole=True)
            page.scheme("light")
            page.size(420, 800)
            page.picture(os.path.join(out, f"{name}-narrow.png"), whole=True)
            page.size(1280, 800)
            with open(os.path.join(out, f"{name}.pdf"), "wb") as file:
                file.write(page.pdf())
            page.close()


if __name__ == "__main__":
    main()
