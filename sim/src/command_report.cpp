// holdfast report: one report of the outputs of many runs or shards, and what changed since another run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "command_line.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/report_compare.hpp"
#include "holdfast/sim/report_merge.hpp"
#include "holdfast/sim/report_read.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

namespace fs = std::filesystem;
using Kind = OptionSpec::Kind;

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "report";
  spec.summary = "merge the outputs of shards or runs into one report; compare two runs";
  spec.usage = "DIR... [--out DIR] [--against DIR]";
  spec.about =
      "Each DIR is what a run was given as --out: one with a report.json, or one with the directories of shards, which "
      "must all be there. The exit status is that of the merged run.";
  spec.operand = "DIR";
  spec.many_operands = true;
  spec.options = {
      {"out", Kind::value, "DIR",
       "write the merged report.json, report.html and junit.xml to DIR; traces and timelines stay where they are"},
      {"against", Kind::value, "DIR", "say what changed since the run whose output this is"},
  };
  spec.examples = {
      {"the eight shards in out/, as one", "holdfast report out --out out/all"},
      {"what changed since yesterday", "holdfast report out --against yesterday"},
  };
  return spec;
}

// Directories with a report.json: the one given, or the shards' in it.
std::vector<fs::path> places_of(const fs::path& given) {
  std::error_code error;
  std::vector<fs::path> shards;
  for (const auto& entry : fs::directory_iterator(given, error)) {
    if (!entry.path().filename().string().starts_with("shard-")) continue;
    if (fs::exists(entry.path() / "report.json", error)) shards.push_back(entry.path());
  }
  std::ranges::sort(shards);
  if (shards.empty() || fs::exists(given / "report.json", error)) return {given};
  return shards;
}

// `out` is where the merged report goes, whose links to traces are relative to it.
Result<Report> report_of(const std::vector<std::string>& given, const std::string& out) {
  std::vector<Report> reports;
  for (const std::string& directory : given) {
    for (const fs::path& place : places_of(directory)) {
      std::error_code error;
      const fs::path from_here = out.empty() ? place : fs::proximate(place, fs::absolute(out), error);
      const std::string prefix = from_here == "." ? std::string() : from_here.string() + "/";
      auto report = read_report((place / "report.json").string(), prefix);
      if (!report) return report.error();
      reports.push_back(std::move(*report));
    }
  }
  return merge_reports(std::move(reports));
}

Result<ExitStatus> report_main(const Arguments& arguments) {
  if (!arguments.operand()) return refusal("holdfast report", "wants the directory of a run's output, or several");
  const std::string out = arguments.value("out").value_or("");
  auto report = report_of(arguments.operands(), out);
  if (!report) return report.error();
  std::optional<Report> before;
  if (const auto against = arguments.value("against")) {
    auto other = report_of({*against}, "");
    if (!other) return other.error();
    before = std::move(*other);
  }
  if (!out.empty()) {
    if (auto status = make_directory(out); !status) return refusal("--out", explain(status.error()));
  }
  print_start(*report);
  auto status = conclude(out, *report);
  if (!status || !before) return status;
  fmt::print("\n{}", comparison_text(compare_reports(*before, *report)));
  return status;
}

}  // namespace

Command report_command() { return {spec(), report_main}; }

}  // namespace holdfast::sim
