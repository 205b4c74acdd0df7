#include <fmt/format.h>

#include <algorithm>

#include "holdfast/sim/report.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

// For an attribute as well as for text: newlines and tabs of an attribute survive only as references.
std::string escaped(std::string_view text) {
  std::string xml;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        xml += "&amp;";
        break;
      case '<':
        xml += "&lt;";
        break;
      case '>':
        xml += "&gt;";
        break;
      case '"':
        xml += "&quot;";
        break;
      case '\'':
        xml += "&apos;";
        break;
      case '\n':
        xml += "&#10;";
        break;
      case '\t':
        xml += "&#9;";
        break;
      default:
        xml += c;
    }
  }
  return xml;
}

class Cases {
 public:
  void passed(std::string_view group, std::string_view name) { add(group, name, ""); }
  void skipped(std::string_view group, std::string_view name, std::string_view why) {
    ++skipped_;
    add(group, name, fmt::format("\n      <skipped message=\"{}\"/>\n    ", escaped(why)));
  }
  void failed(std::string_view group, std::string_view name, std::string_view type, std::string_view message,
              std::string_view body) {
    ++failed_;
    add(group, name,
        fmt::format("\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    ", escaped(type), escaped(message),
                    escaped(body)));
  }

  [[nodiscard]] std::string text(std::string_view suite, double seconds) const {
    const std::string totals = fmt::format(R"(tests="{}" failures="{}" errors="0" skipped="{}" time="{:.3f}")", count_,
                                           failed_, skipped_, seconds);
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"holdfast\" {}>\n"
        "  <testsuite name=\"{}\" {}>\n{}  </testsuite>\n</testsuites>\n",
        totals, escaped(suite), totals, cases_);
  }

 private:
  void add(std::string_view group, std::string_view name, std::string_view inside) {
    ++count_;
    cases_ += fmt::format("    <testcase classname=\"holdfast.{}\" name=\"{}\" time=\"0\"", group, escaped(name));
    cases_ += inside.empty() ? std::string("/>\n") : fmt::format(">{}</testcase>\n", inside);
  }

  std::string cases_;
  std::uint64_t count_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace

std::string junit_xml(const Report& report) {
  const CampaignResult& result = report.result;
  Cases cases;
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    const std::string_view name = name_of(invariant);
    const NotMade why = not_made(report, invariant);
    if (why == NotMade::switched_off) {
      cases.skipped("invariants", name, "switched off by --disable");
    } else if (why == NotMade::not_decidable) {
      cases.skipped("invariants", name, "not decidable: this backend cannot be looked into");
    } else if (result.violated[i] > 0) {
      cases.failed("invariants", name, name,
                   fmt::format("violated {} times in {} checks", result.violated[i], result.checked[i]),
                   promise_of(invariant));
    } else if (result.checked[i] == 0) {
      cases.skipped("invariants", name, "never checked: its situation did not come up");
    } else {
      cases.passed("invariants", name);
    }
  }
  if (result.rechecked == 0) {
    cases.skipped("harness", "determinism", "no seed was run again");
  } else if (result.diverged == 0) {
    cases.passed("harness", "determinism");
  } else {
    cases.failed("harness", "determinism", "divergence", fmt::format("{} seeds went another way", result.diverged),
                 "run again with another perturbation, the event log differed");
  }
  if (report.marks_required) {
    std::string missing;
    for (const Mark mark : missing_marks(report)) missing += fmt::format("{}\n", name_of(mark));
    if (missing.empty()) {
      cases.passed("harness", "marks");
    } else {
      cases.failed("harness", "marks", "marks", "required marks were never reached", missing);
    }
  }
  if (!report.gate_failure.empty()) {
    cases.failed("harness", report.profile, "gate", report.gate_failure, report.command);
  }
  std::uint64_t ordinal = 0;
  for (const ReportViolation& violation : report.violations) {
    cases.failed("failures", fmt::format("{}: seed {}: {}", ++ordinal, violation.seed, what_broke(violation)),
                 what_broke(violation), violation.message,
                 fmt::format("{}\nreproduce: {}{}", violation.message, violation.reproduce,
                             violation.shrunk ? fmt::format("\nshrunk to {}: {}", describe(*violation.shrunk),
                                                            violation.shrunk->reproduce)
                                              : ""));
  }
  return cases.text(report.command, static_cast<double>(result.wall_ns) / 1e9);
}

}  // namespace holdfast::sim
