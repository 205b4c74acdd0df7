"""What report.html is to whoever opens it. Usage: report_page_test.py DIR, where report_maker has made its reports."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from chromium import Chromium  # noqa: E402

REPORTS = ("held", "violated", "hostile")
DIRECTORY = None
BROWSER = None

# Of every text that is shown: its contrast with what lies behind it. Answers what is below WCAG's AA.
CONTRAST = r"""(() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const rect = at.tagName === 'g' && at.querySelector('rect');
      if (rect) return parse(getComputedStyle(rect).fill);
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !element.checkVisibility() ||
        element.closest('title, script, style, .spoken')) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const color = parse(element.ownerSVGElement ? style.fill : style.color);
    const [light, dark] = [luminance(color), luminance(behind(element))].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < (large ? 3 : 4.5)) poor.push(`${ratio.toFixed(2)} ${element.tagName}.${element.className}: ` +
                                             walker.currentNode.data.trim().slice(0, 40));
  }
  return poor;
})()"""


class ReportPage(unittest.TestCase):
    def open(self, name, width=1280, height=800):
        page = BROWSER.page()
        self.addCleanup(page.close)
        page.size(width, height)
        page.open("file://" + self.path(name))
        return page

    @staticmethod
    def path(name):
        return os.path.realpath(os.path.join(DIRECTORY, name, "report.html"))

    def json(self, name):
        with open(os.path.join(DIRECTORY, name, "report.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_asks_for_nothing_and_complains_of_nothing(self):
        for name in REPORTS:
            with self.subTest(name):
                page = self.open(name)
                page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
                page.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
                self.assertEqual(page.requests, ["file://" + self.path(name)])
                self.assertEqual(page.complaints, [])

    def test_a_script_from_the_content_is_refused(self):
        page = self.open("held")
        page.run("""(() => { const script = document.createElement('script'); script.textContent = 'window.hostile = 1';
                             document.body.append(script); })()""")
        self.assertIsNone(page.run("window.hostile"))

    def test_the_first_screen_says_what_was_run_and_how_it_went(self):
        for name, verdict in (("held", "HELD: no promise was broken"), ("violated", "VIOLATED: ")):
            with self.subTest(name):
                page = self.open(name)
                text = page.run("""[...document.querySelectorAll('header *')].filter(each => !each.children.length &&
                    each.checkVisibility() && each.getBoundingClientRect().bottom <= innerHeight)
                    .map(each => each.parentElement.textContent).join('\\n')""")
                report = self.json(name)
                for part in (verdict, "fake", "holdfast " + report["version"], "fake owner", "fake device",
                             f"{report['runtime_calls']:,}", f"{report['faults_fired']:,}", report["command"],
                             str(report["seeds"]["last"])):
                    self.assertIn(part, text)

    def test_it_is_small_and_opens_at_once(self):
        for name in ("held", "violated"):
            with self.subTest(name):
                self.assertLess(os.path.getsize(self.path(name)), 2_000_000)
                page = self.open(name)
                # The time this page itself took, whatever else the machine does.
                metrics = {each["name"]: each["value"] for each in page.send("Performance.getMetrics")["metrics"]}
                self.assertLess(metrics["TaskDuration"], 1)

    def test_failures_are_grouped_by_cause(self):
        page, report = self.open("violated"), self.json("violated")
        causes = report["causes"]
        self.assertGreater(sum(each["cases"] for each in causes), 200)
        self.assertLess(len(causes), 30)
        shown = page.run("[...document.querySelectorAll('.cause h3')].map(each => each.textContent)")
        self.assertEqual(len(shown), len(causes))
        for text, cause in zip(shown, causes):
            self.assertIn(cause["invariant"], text)
            self.assertIn(f"{cause['cases']:,} case", text)

    def test_a_cause_opens_to_promise_story_lanes_trace_and_command(self):
        page, report = self.open("violated"), self.json("violated")
        drawn = [i for i, cause in enumerate(report["causes"], 1) if cause["story"]]
        self.assertGreaterEqual(len(drawn), 5)
        for i in drawn:
            page.run(f"document.getElementById('cause-{i}').open = true")
            text = page.run(f"document.getElementById('cause-{i}').innerText")
            cause = report["causes"][i - 1]
            for sentence in cause["story"]:
                self.assertIn(" ".join(sentence.split())[:60], " ".join(text.split()))
            self.assertIn("holdfast replay", text)
            self.assertTrue(page.run(f"document.querySelector('#cause-{i} svg').getBoundingClientRect().height > 80"))
            self.assertTrue(page.run(f"document.querySelector('#cause-{i} svg .m-broken') !== null"))
            self.assertIn('"holdfast-trace/1"', page.run(f"document.querySelector('#cause-{i}').textContent"))

    def test_violations_can_be_found(self):
        page = self.open("violated")
        shown = "[...document.querySelectorAll('.cause')].filter(each => each.checkVisibility()).length"
        everything = page.run(shown)
        page.run("document.getElementById('find-cause').focus()")
        page.type("crash")
        some = page.run(shown)
        self.assertTrue(0 < some < everything, f"{some} of {everything}")
        self.assertIn(f"{some} of {everything}", page.run("document.querySelector('.filter output').textContent"))
        page.type("zzz")
        self.assertEqual(page.run(shown), 0)
        page.run("(() => { const find = document.getElementById('find-cause'); find.value = '';"
                 "find.dispatchEvent(new Event('input', {bubbles: true})); })()")
        self.assertEqual(page.run(shown), everything)

    def test_tables_can_be_reduced_to_their_gaps(self):
        page = self.open("held")
        for row, only in (("fault-row", "gap"), ("mark", "missed")):
            rows = f"[...document.getElementsByClassName('{row}')].filter(each => each.checkVisibility())"
            everything = page.run(f"{rows}.length")
            marked = page.run(f"{rows}.filter(each => each.hasAttribute('data-{only}')).length")
            self.assertTrue(0 < marked < everything, f"{row}: {marked} of {everything}")
            page.run(f"document.querySelector('[data-only={only}]').focus()")
            page.key(" ")
            self.assertEqual(page.run(f"{rows}.length"), marked)
            page.key(" ")
            self.assertEqual(page.run(f"{rows}.length"), everything)

    def test_the_matrix_shows_what_fired_and_what_never_did(self):
        page, report = self.open("held"), self.json("held")
        cells = page.run("""Object.fromEntries([...document.querySelectorAll('.fault-row')].map(row =>
            [row.querySelector('th').textContent, [...row.querySelectorAll('td')].map(cell =>
            [cell.className, cell.firstChild ? cell.firstChild.data : ''])]))""")
        kinds = page.run("[...document.querySelectorAll('.heat thead abbr')].map(each => each.textContent)")
        gaps = 0
        for call, columns in cells.items():
            for kind, (style, text) in zip(kinds, columns):
                cell = report["fault_matrix"][call].get(kind)
                if cell is None:
                    self.assertIn("none", style)
                elif cell["fired"]:
                    self.assertRegex(style, r"\bh[1-5]\b")
                    self.assertEqual(text.strip(), f"{cell['fired']:,}")
                else:
                    self.assertIn("gap", style)
                    gaps += 1
        self.assertGreater(gaps, 0)

    def test_all_of_it_can_be_used_by_keyboard(self):
        page = self.open("violated")
        focus = "document.activeElement.className || document.activeElement.tagName"
        page.key("Tab")
        self.assertEqual(page.run(focus), "skip")
        page.key("Enter")
        self.assertEqual(page.run("location.hash"), "#violations")
        page.key("/")
        self.assertEqual(page.run("document.activeElement.id"), "find-cause")
        page.key("Tab")
        self.assertEqual(page.run("document.activeElement.tagName"), "SUMMARY")
        was = page.run("document.activeElement.parentElement.open")
        page.key("Enter")
        self.assertEqual(page.run("document.activeElement.parentElement.open"), not was)
        page.key(" ")
        self.assertEqual(page.run("document.activeElement.parentElement.open"), was)
        # Nothing holds the focus for ever, and each that has it is seen.
        seen = set()
        for _ in range(400):
            page.key("Tab")
            where = page.run("""(() => { const at = document.activeElement; if (at === document.body) return '';
                at.dataset.focused ||= String(Math.random());
                const style = getComputedStyle(at);
                return at.dataset.focused + (style.outlineStyle === 'none' ? ' unseen' : ''); })()""")
            self.assertNotIn("unseen", where)
            if where in seen or not where:
                break
            seen.add(where)
        self.assertGreater(len(seen), 20)

    def test_everything_that_can_be_used_has_a_name(self):
        for name in REPORTS:
            with self.subTest(name):
                page = self.open(name)
                page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
                nodes = page.send("Accessibility.getFullAXTree")["nodes"]
                roles = {}
                for node in nodes:
                    if node.get("ignored"):
                        continue
                    role = node["role"]["value"]
                    named = bool(node.get("name", {}).get("value"))
                    roles.setdefault(role, []).append(named)
                    focusable = any(each["name"] == "focusable" and each["value"].get("value")
                                    for each in node.get("properties", []))
                    if focusable and role != "RootWebArea":
                        self.assertTrue(named, f"{role} without a name: {node}")
                for landmark in ("banner", "navigation", "main", "contentinfo"):
                    self.assertEqual(len(roles.get(landmark, [])), 1, landmark)
                for role in ("image", "img", "region"):
                    self.assertTrue(all(roles.get(role, [])), role)

    def test_headings_are_in_order(self):
        for name in REPORTS:
            page = self.open(name)
            levels = page.run("[...document.querySelectorAll('h1, h2, h3, h4')].map(each => +each.tagName[1])")
            self.assertEqual(levels.count(1), 1)
            for before, after in zip(levels, levels[1:]):
                self.assertLessEqual(after, before + 1)

    def test_texts_stand_out_in_light_and_dark(self):
        for name in ("held", "violated"):
            for scheme in ("light", "dark"):
                with self.subTest(f"{name}, {scheme}"):
                    page = self.open(name)
                    page.scheme(scheme)
                    page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
                    self.assertEqual(page.run(CONTRAST), [])
                    dark = page.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
                    self.assertEqual(dark, scheme == "dark")

    def test_nothing_is_wider_than_the_window(self):
        for name in REPORTS:
            for width in (1280, 700, 400):
                with self.subTest(f"{name}, {width}"):
                    page = self.open(name, width)
                    page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
                    self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width)

    def test_hostile_names_are_inert(self):
        page = self.open("hostile")
        page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        page.run("new Promise(done => setTimeout(done, 50))")
        self.assertIsNone(page.run("window.hostile"))
        self.assertEqual(page.run("document.scripts.length"), 1)
        self.assertEqual(page.run("document.querySelectorAll('img, iframe, object, embed, link, base, form').length"), 0)
        self.assertEqual(page.run("document.querySelectorAll('style').length"), 1)
        self.assertGreater(page.run("document.querySelectorAll('.cause svg').length"), 0)
        text = page.run("document.body.innerText")
        for part in ("<script>window.hostile = 1</script>", "{{/causes}} {{{style}}}", "\"quoted\" 'too' &"):
            self.assertIn(part, text)
        self.assertNotIn("\x1b", text)
        handlers = page.run("""[...document.querySelectorAll('*')].filter(each =>
            [...each.attributes].some(attribute => attribute.name.startsWith('on'))).length""")
        self.assertEqual(handlers, 0)

    def test_it_can_be_read_without_its_script(self):
        page = BROWSER.page()
        self.addCleanup(page.close)
        page.send("Emulation.setScriptExecutionDisabled", value=True)
        page.open("file://" + self.path("violated"))
        nodes = page.send("Accessibility.getFullAXTree")["nodes"]
        names = {node.get("name", {}).get("value") for node in nodes if not node.get("ignored")}
        self.assertIn("Violations", names)
        self.assertNotIn("Find in the violations", names)

    def test_it_can_be_printed(self):
        page = self.open("violated")
        pdf = page.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertLess(pdf.count(b"/Type /Page\n") or pdf.count(b"/Type /Page"), 60)


def main():
    global DIRECTORY, BROWSER
    DIRECTORY = sys.argv.pop(1)
    with Chromium() as browser:
        BROWSER = browser
        result = unittest.main(exit=False, verbosity=2).result
    failed = len(result.failures) + len(result.errors)
    print(f"tests: {result.testsRun - failed} passed, {failed} failed")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
