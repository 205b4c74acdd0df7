// What a report says, and that nothing in a trace can break the file it ends up in.
#include "holdfast/sim/report.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "holdfast/sim/failure_story.hpp"
#include "holdfast/sim/progress.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using nlohmann::json;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kHostile =
    "<script>alert('x')</script> ]]> & \"q\" \x1b[2J \x01 \xFF {{/violations}} --> \n\tend";

Report held_report() {
  Report report;
  report.command = "holdfast run --seeds 1-3 --profile default";
  report.profile = "default";
  report.runtimes = probe_fake_backend().runtimes;
  report.seeds = {1, 3};
  report.result.seeds_run = 3;
  report.result.runtime_calls = 900;
  report.result.checked.fill(7);
  report.result.faults.fired[static_cast<std::size_t>(Call::remove)][static_cast<std::size_t>(FaultKind::lost)] = 4;
  report.result.faults.total = 4;
  report.result.marks.reach(Mark::full_hit);
  report.result.rechecked = 1;
  report.result.wall_ns = 2 * kSecond;
  report.result.virtual_ns = 9 * kSecond;
  return report;
}

ViolationSources sources_of(const Report& report) {
  return {[](const SeedFailure& failure) { return "failures/" + std::to_string(failure.seed) + ".trace.json"; },
          [&report](const SeedFailure& failure) {
            return "holdfast replay out/failures/" + std::to_string(failure.seed) + ".trace.json";
          }};
}

// One seed of each kind of failure, every text hostile.
Report broken_report() {
  Report report = held_report();
  const std::string hostile(kHostile);
  report.profile = hostile;
  report.command = hostile;
  report.result.failures = {
      {1, FailureKind::violation, {{Invariant::exact_bytes, 4, hostile, hostile, 1'500'000}}, {}, true},
      {2, FailureKind::crash, {}, hostile, true},
      {3, FailureKind::hang, {}, hostile, true}};
  report.result.violated[static_cast<std::size_t>(Invariant::exact_bytes)] = 1;
  report.violations = list_violations(report.result, sources_of(report));
  return report;
}

TEST(Verdict, HoldsOnlyWhenEverythingWasRunAndHeld) {
  EXPECT_EQ(verdict_of(held_report()), ExitStatus::held);
  Report nothing = held_report();
  nothing.result.seeds_run = 0;
  EXPECT_EQ(verdict_of(nothing), ExitStatus::harness_failed);
  Report interrupted = held_report();
  interrupted.result.interrupted = true;
  EXPECT_EQ(verdict_of(interrupted), ExitStatus::harness_failed);
}

TEST(Verdict, IsViolatedByEachKindOfFailureAndByAGate) {
  for (const FailureKind kind : {FailureKind::violation, FailureKind::crash, FailureKind::hang}) {
    Report report = held_report();
    report.result.failures = {{2, kind, {}, "why", true}};
    EXPECT_EQ(verdict_of(report), ExitStatus::violated);
  }
  Report gate = held_report();
  gate.gate_failure = "B hit 2 chunks, not 3";
  EXPECT_EQ(verdict_of(gate), ExitStatus::violated);
}

TEST(Verdict, ADivergenceIsTheHarnessesFailureEvenBesideViolations) {
  Report report = broken_report();
  report.result.diverged = 1;
  EXPECT_EQ(verdict_of(report), ExitStatus::harness_failed);
}

TEST(Verdict, RequiredMarksMustBeReachedUnlessTheyAreRare) {
  Report report = held_report();
  report.marks_required = true;
  EXPECT_EQ(verdict_of(report), ExitStatus::violated);
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    if (!is_rare(static_cast<Mark>(i))) report.result.marks.counts[i] = 1;
  }
  EXPECT_EQ(verdict_of(report), ExitStatus::held);
  EXPECT_THAT(missing_marks(report), SizeIs(0));
}

TEST(Verdict, OfASweepRareMarksAreRequiredToo) {
  Report report = held_report();
  report.marks_required = true;
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    if (!is_rare(static_cast<Mark>(i))) report.result.marks.counts[i] = 1;
  }
  report.sweep = SweepFigures{};
  EXPECT_EQ(verdict_of(report), ExitStatus::violated);
  report.result.marks.counts.fill(1);
  EXPECT_EQ(verdict_of(report), ExitStatus::held);
}

// One row, and a cell that was not reached.
Report swept_report() {
  Report report = held_report();
  SweepFigures figures;
  figures.complete = true;
  figures.cases = 3;
  figures.scenarios = {"cold_write"};
  SweepRow row;
  row.call = Call::remove;
  row.kinds[static_cast<std::size_t>(FaultKind::lost)] = {2, 1, 1};
  figures.rows = {row};
  figures.gaps = {*std::ranges::find(legal_cells(), CallState::local_visible, &LegalCell::state)};
  report.sweep = figures;
  return report;
}

TEST(ReportJson, OfASweepHasItsRowsAndTheCellsThatWereNotReached) {
  const json report = json::parse(report_json(swept_report()));
  const json& row = report.at("sweep").at("rows").at(0);
  EXPECT_EQ(row.at("scenario"), "cold_write");
  EXPECT_EQ(row.at("call"), "remove");
  EXPECT_EQ(row.at("kinds").at("lost"), json({{"cases", 2}, {"fired", 1}, {"failed", 1}}));
  const json& cell = report.at("cells").at("not_reached").at(0);
  EXPECT_EQ(cell.at("state"), "local-visible");
  EXPECT_EQ(cell.at("call"), "local_fast_put_start");
}

TEST(ReportText, OfASweepHasLinesWithinTheWidthAndTheFailuresByRow) {
  const Report report = swept_report();
  const std::string text = sweep_tables(*report.sweep);
  EXPECT_THAT(text, testing::ContainsRegex(" remove +2 +1 FAILED 1\n"));
  EXPECT_THAT(text, HasSubstr("legal, and reached by no scenario:\n  local_fast_put_start "));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 100U) << text.substr(at, end - at);
    at = end + 1;
  }
}

TEST(ReportJson, HasEveryFieldOfTheSchema) {
  const json report = json::parse(report_json(broken_report()));
  EXPECT_EQ(report.at("schema"), "holdfast-report/1");
  for (const char* field : {"version", "command", "backend"}) EXPECT_TRUE(report.at(field).is_string()) << field;
  for (const char* field : {"first", "last", "run"}) EXPECT_TRUE(report.at("seeds").at(field).is_number_unsigned());
  for (const char* field : {"steps", "runtime_calls"}) EXPECT_TRUE(report.at(field).is_number_unsigned()) << field;
  for (const char* field : {"wall_s", "virtual_s"}) EXPECT_TRUE(report.at(field).is_number()) << field;
  EXPECT_THAT(report.at("invariants"), SizeIs(kInvariantCount));
  for (const auto& [name, invariant] : report.at("invariants").items()) {
    EXPECT_TRUE(invariant.at("checked").is_number_unsigned()) << name;
    EXPECT_TRUE(invariant.at("violated").is_number_unsigned()) << name;
    EXPECT_EQ(invariant.at("promise"), promise_of(*invariant_named(name)));
  }
  EXPECT_EQ(report.at("faults").at("remove").at("lost"), 4);
  EXPECT_THAT(report.at("marks"), SizeIs(kMarkCount));
  EXPECT_EQ(report.at("marks").at("full hit"), 1);
  EXPECT_EQ(report.at("determinism"), (json{{"rechecked", 1}, {"diverged", 0}}));
  EXPECT_TRUE(report.at("log_hash").is_string());
}

TEST(ReportJson, AViolationSaysWhatWhereAndHowToSeeItAgain) {
  const json report = json::parse(report_json(broken_report()));
  ASSERT_THAT(report.at("violations"), SizeIs(3));
  const json& violation = report.at("violations").at(0);
  EXPECT_EQ(violation.at("invariant"), "exact-bytes");
  EXPECT_EQ(violation.at("seed"), 1);
  EXPECT_EQ(violation.at("step"), 4);
  EXPECT_EQ(violation.at("trace"), "failures/1.trace.json");
  EXPECT_EQ(violation.at("reproduce"), "holdfast replay out/failures/1.trace.json");
  EXPECT_EQ(report.at("violations").at(1).at("invariant"), "crash");
  EXPECT_EQ(report.at("violations").at(2).at("invariant"), "hang");
  EXPECT_EQ(report.at("verdict"), "violated");
}

TEST(ReportShrunk, IsNamedWithItsStepsAndCommandInEveryReport) {
  Report report = held_report();
  report.result.failures = {{1, FailureKind::violation, {{Invariant::exact_bytes, 4, "", "wrong", 5}}, {}, true},
                            {2, FailureKind::violation, {{Invariant::exact_bytes, 4, "", "wrong", 5}}, {}, true}};
  ViolationSources sources = sources_of(report);
  sources.shrunk = [](const SeedFailure& failure) -> std::optional<ShrunkTrace> {
    if (failure.seed != 1) return std::nullopt;
    return ShrunkTrace{1, "failures/1.min.trace.json", 97, 6, 1, 0, 0, "", "holdfast replay 1.min.trace.json"};
  };
  report.violations = list_violations(report.result, sources);
  const json violations = json::parse(report_json(report)).at("violations");
  EXPECT_EQ(violations.at(0).at("shrunk").at("trace"), "failures/1.min.trace.json");
  EXPECT_EQ(violations.at(0).at("shrunk").at("steps"), 6);
  EXPECT_EQ(violations.at(0).at("shrunk").at("steps_before"), 97);
  EXPECT_EQ(violations.at(0).at("shrunk").at("one_minimal"), true);
  EXPECT_TRUE(violations.at(1).at("shrunk").is_null());
  for (const std::string& text : {summary_text(report, false), junit_xml(report), report_html(report)}) {
    EXPECT_THAT(text, HasSubstr("6 of 97 steps, 1 fault, no choice, 1-minimal"));
    EXPECT_THAT(text, HasSubstr("holdfast replay 1.min.trace.json"));
  }
}

TEST(ReportJson, ListsAtMostFourViolationsOfASeed) {
  Report report = held_report();
  report.result.failures = {{1, FailureKind::violation, std::vector<Violation>(32), {}, true}};
  EXPECT_THAT(list_violations(report.result, sources_of(report)), SizeIs(4));
}

TEST(Junit, HasACaseForEachInvariantAndEachFailure) {
  std::istringstream xml(junit_xml(broken_report()));
  boost::property_tree::ptree tree;
  ASSERT_NO_THROW(boost::property_tree::read_xml(xml, tree));
  const auto& suite = tree.get_child("testsuites.testsuite");
  std::size_t cases = 0;
  std::size_t failures = 0;
  for (const auto& [name, child] : suite) {
    if (name != "testcase") continue;
    ++cases;
    failures += child.count("failure");
  }
  EXPECT_EQ(cases, kInvariantCount + 1 + 3);  // determinism, and the three failures
  EXPECT_EQ(failures, 1U + 3U);
  EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.tests"), cases);
  EXPECT_EQ(suite.get<std::size_t>("<xmlattr>.failures"), failures);
}

TEST(Junit, HostileTextComesBackAsTextAndNothingElse) {
  std::istringstream xml(junit_xml(broken_report()));
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(xml, tree);
  std::string message;
  for (const auto& [name, child] : tree.get_child("testsuites.testsuite")) {
    const auto failure = child.get_child_optional("failure");
    if (failure && failure->get<std::string>("<xmlattr>.type") == "crash") {
      message = failure->get<std::string>("<xmlattr>.message");
    }
  }
  EXPECT_EQ(message, printable(kHostile));
}

TEST(Junit, HoldsNoControlCharacter) {
  EXPECT_THAT(junit_xml(broken_report()),
              Each(::testing::Truly([](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\n'; })));
}

TEST(Junit, AnInvariantThatWasNotCheckedIsSkippedNotPassed) {
  Report report = held_report();
  report.result.checked[0] = 0;
  report.disabled = {Invariant::one_terminal};
  const std::string xml = junit_xml(report);
  EXPECT_THAT(xml, HasSubstr("skipped=\"2\""));
  EXPECT_THAT(xml, HasSubstr("never checked"));
  EXPECT_THAT(xml, HasSubstr("switched off by --disable"));
}

TEST(ReportHtml, HostileTextIsInert) {
  const std::string html = report_html(broken_report());
  EXPECT_EQ(html.find("<script"), html.rfind("<script"));  // the page's own
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("{{/violations}}"));  // as text: values are not templates
}

TEST(ReportHtml, NeedsNothingFromElsewhere) {
  const std::string html = report_html(broken_report());
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

TEST(ReportHtml, LinksOnlyIntoItself) {
  const std::string html = report_html(broken_report());
  for (std::size_t at = 0; (at = html.find("href=", at)) != std::string::npos; ++at) {
    EXPECT_EQ(html.substr(at, 7), "href=\"#");
    const std::string id = html.substr(at + 7, html.find('"', at + 7) - at - 7);
    EXPECT_THAT(html, HasSubstr(" id=\"" + id + "\""));
  }
}

TEST(ReportHtml, AllowsNoScriptButItsOwn) {
  const std::string html = report_html(broken_report());
  EXPECT_THAT(html, HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_THAT(html, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(html, Not(HasSubstr("unsafe-inline")));
}

TEST(ReportHtml, IsTheSameForTheSameRunButForRealTimes) {
  Report one = broken_report();
  Report other = broken_report();
  one.result.slowest = one.result.longest = {{3, 2000, 10, 4, 5}};
  other.result.slowest = other.result.longest = {{3, 2000, 10, 4, 5}};
  EXPECT_EQ(report_html(one), report_html(other));
  EXPECT_EQ(report_json(one), report_json(other));
}

// Seeds of three causes; the story of the first.
Report report_of_many(std::uint64_t seeds) {
  Report report = held_report();
  report.seeds = {1, seeds};
  report.result.seeds_run = seeds;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Violation violation{Invariant::exact_bytes, 4, "", "byte " + std::to_string(seed) + " is wrong", 5, "resume: byte"};
    if (seed % 3 == 1) violation.culprits = "resume: latent";
    if (seed % 3 == 2) violation.invariant = Invariant::one_terminal;
    report.result.failures.push_back({seed, FailureKind::violation, {violation, violation}, {}, true});
  }
  auto story = std::make_shared<FailureStory>();
  story->seed = 1;
  story->sentences = {"This is what happened.", "And this before it."};
  story->trace = "{\"schema\": \"holdfast-trace/1\"}";
  story->trace_file = "failures/1.min.trace.json";
  ViolationSources sources = sources_of(report);
  sources.story = [story](const SeedFailure& failure) { return failure.seed % 3 == 1 ? story : nullptr; };
  sources.timeline = [](const SeedFailure& failure) { return fmt::format("failures/{}.timeline.json", failure.seed); };
  report.violations = list_violations(report.result, sources);
  return report;
}

TEST(ReportCauses, GroupsSeedsThatFailedAlike) {
  const Report report = report_of_many(200);
  const std::vector<FailureCause> causes = causes_of(report);
  ASSERT_THAT(causes, SizeIs(3));
  EXPECT_EQ(causes[0].cause, "exact-bytes, resume: latent");
  EXPECT_EQ(causes[0].seeds, 67U);
  EXPECT_EQ(causes[1].seeds, 67U);
  EXPECT_EQ(causes[2].seeds, 66U);
  EXPECT_EQ(causes[1].invariant, Invariant::one_terminal);
  EXPECT_THAT(causes[0].violations, SizeIs(67));
  const json told = json::parse(report_json(report)).at("causes");
  EXPECT_EQ(told.at(0).at("cases"), 67);
  EXPECT_EQ(told.at(0).at("story"), json({"This is what happened.", "And this before it."}));
  EXPECT_EQ(told.at(2).at("story"), json::array());
}

TEST(ReportCauses, CountsSeedsBeyondThoseListed) {
  const std::vector<FailureCause> causes = causes_of(report_of_many(3000));
  ASSERT_THAT(causes, SizeIs(3));
  EXPECT_EQ(causes[0].seeds, 1000U);
  EXPECT_LT(causes[0].violations.size(), 500U);
}

TEST(ReportHtml, OfManyFailuresHasOnePlaceForEachCauseAndStaysSmall) {
  const std::string html = report_html(report_of_many(10'000));
  std::size_t causes = 0;
  for (std::size_t at = 0; (at = html.find("<details class=\"cause\"", at)) != std::string::npos; ++at) ++causes;
  EXPECT_EQ(causes, 3U);
  EXPECT_LT(html.size(), 2'000'000U);
  EXPECT_THAT(html, HasSubstr("10,000 failed cases, by 3 causes"));
  EXPECT_THAT(html, HasSubstr("This is what happened."));
  EXPECT_THAT(html, HasSubstr("failures/1.min.trace.json"));
  EXPECT_THAT(html, HasSubstr("of the trace before it was shrunk"));
  EXPECT_THAT(html, HasSubstr("failures/1.timeline.json"));
}

TEST(ReportHtml, SaysNeverCheckedAndNeverReached) {
  Report report = held_report();
  report.result.checked[0] = 0;
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("never checked</td>"));
  EXPECT_THAT(html, HasSubstr("1 never checked"));
  EXPECT_THAT(html, HasSubstr("<span class=\"n\">never</span>"));
}

TEST(ReportMatrix, TellsWhatFiredWhatCouldHaveAndWhatMayNot) {
  Report report = held_report();
  const auto lost = static_cast<std::size_t>(FaultKind::lost);
  const auto cell = std::ranges::find_if(legal_cells(), [](const LegalCell& legal) {
    return legal.fault.call == Call::remove && legal.fault.kind == FaultKind::lost;
  });
  report.result.faults.cells[static_cast<std::size_t>(cell - legal_cells().begin())] = 1;
  const FaultMatrix matrix = fault_matrix(report.result.faults);
  const FaultCell& fired = matrix[static_cast<std::size_t>(Call::remove)][lost];
  EXPECT_EQ(fired.fired, 4U);
  EXPECT_EQ(fired.reached, 1U);
  EXPECT_GT(fired.legal, 1U);
  EXPECT_FALSE(fired.gap());
  EXPECT_TRUE(matrix[static_cast<std::size_t>(Call::put)][lost].gap());
  EXPECT_FALSE(matrix[static_cast<std::size_t>(Call::get)][lost].gap());  // not legal
  EXPECT_THAT(fault_gaps(report.result.faults), SizeIs(kLegalCellCount - 1));

  const json told = json::parse(report_json(report)).at("fault_matrix");
  EXPECT_EQ(told.at("remove").at("lost"), json({{"fired", 4}, {"legal_cells", fired.legal}, {"reached_cells", 1}}));
  EXPECT_EQ(told.at("put").at("lost").at("reached_cells"), 0);
  EXPECT_FALSE(told.at("get").contains("lost"));
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr(fmt::format("<small>1/{}</small>", fired.legal)));
  EXPECT_THAT(html, HasSubstr("lost of put: fired 0 times, in 0 of "));
}

TEST(ReportCases, NamesTheSlowestAndTheLongest) {
  Report report = held_report();
  report.result.slowest = {{17, 3 * kMillisecond, 900, 12, kSecond}};
  report.result.longest = {{23, kMillisecond, 1900, 14, 2 * kSecond}};
  const json cases = json::parse(report_json(report)).at("cases");
  EXPECT_EQ(cases.at("slowest").at(0).at("seed"), 17);
  EXPECT_EQ(cases.at("longest").at(0).at("runtime_calls"), 1900);
  EXPECT_THAT(report_html(report), HasSubstr("<th scope=\"row\" class=\"n\">23</th>"));
}

TEST(ReportHtml, OfAWorkloadHasHitRateAndBytes) {
  Report report = held_report();
  report.workload = WorkloadFigures{100, 1000, 366, 0, 1 << 30};
  const std::string html = report_html(report);
  EXPECT_THAT(html, HasSubstr("0.366"));
  EXPECT_THAT(html, HasSubstr("366 of 1,000 blocks"));
  EXPECT_LT(html.find("id=\"workload\""), html.find("id=\"invariants\""));
  EXPECT_THAT(html, Not(HasSubstr("never reached</span>")));  // it is no campaign
  EXPECT_THAT(html, HasSubstr("1.0 GiB"));
}

TEST(ReportHtml, SaysVerdictInvariantsFaultsMarksAndCommands) {
  const std::string html = report_html(broken_report());
  for (const char* part :
       {"VIOLATED: 1 of 3 cases broke a promise, 1 of 3 cases crashed, 1 of 3 cases hung", "sync-before-commit",
        "<code>remove</code>", "<span>full hit</span> <span class=\"n\">1</span>",
        "holdfast replay out/failures/2.trace.json"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
}

TEST(Summary, FitsAHundredColumns) {
  Report report = broken_report();
  report.disabled = {Invariant::pinned_stays};
  report.marks_required = true;
  report.violations.front().message =
      "a story that is told in many words until it is over, with both culprits and the times, on and on and on, "
      "longer than any line may be";
  std::istringstream lines(summary_text(report, false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U + 4U) << line;  // U+FFFD counts three
}

TEST(Summary, SaysLoudlyWhatIsSwitchedOff) {
  Report report = held_report();
  report.disabled = {Invariant::pinned_stays};
  EXPECT_THAT(summary_text(report, false), HasSubstr("pinned-stays was SWITCHED OFF"));
}

TEST(Summary, HasNoColourUnlessAsked) {
  EXPECT_THAT(summary_text(broken_report(), false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(summary_text(broken_report(), true), HasSubstr("\x1b[1;31m"));
}

TEST(ProgressLine, TellsRatesViolationsAndTimeLeft) {
  CampaignProgress progress;
  progress.seeds_run = 5000;
  progress.seeds_all = 20'000;
  progress.runtime_calls = 2'000'000;
  progress.failed_seeds = 2;
  progress.elapsed_ns = 10 * kSecond;
  EXPECT_EQ(progress_line(progress), "5,000 of 20,000 seeds, 500 seeds/s, 200,000 calls/s, 2 violated, 30.0 s left");
  progress.time_budget_ns = 12 * kSecond;
  EXPECT_THAT(progress_line(progress), HasSubstr(", 2.00 s left"));
}

TEST(ProgressLine, KnowsNoTimeLeftBeforeTheFirstSeed) {
  CampaignProgress progress;
  progress.seeds_all = 10;
  EXPECT_THAT(progress_line(progress), HasSubstr("? left"));
}

TEST(ProgressLine, OfASingleRunTellsHowLongItHasRun) {
  CampaignProgress progress;
  progress.seeds_all = 1;
  progress.elapsed_ns = 5 * kSecond;
  EXPECT_EQ(progress_line(progress), "running for 5.00 s");
}

}  // namespace
}  // namespace holdfast::sim
