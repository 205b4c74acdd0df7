// holdfast list: what there is, by name.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "command_line.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/scenarios.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Align = Table::Align;

std::string invariants_list() {
  Table table({Align::left, Align::left});
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    table.add({std::string(name_of(invariant)), std::string(promise_of(invariant))});
  }
  return table.text();
}

std::string faults_list() {
  Table table({Align::left, Align::left, Align::right, Align::left});
  table.add({"call", "kind", "code", ""});
  for (const LegalFault& fault : legal_faults()) {
    table.add({std::string(name_of(fault.call)), std::string(name_of(fault.kind)), std::to_string(fault.code),
               std::string(fault.note)});
  }
  std::vector<std::vector<std::string>> states(kCallCount);
  for (const LegalCell& cell : legal_cells()) {
    std::vector<std::string>& of_call = states[static_cast<std::size_t>(cell.fault.call)];
    const std::string name(name_of(cell.state));
    if (cell.state != CallState::any && std::ranges::find(of_call, name) == of_call.end()) of_call.push_back(name);
  }
  std::string text = table.text() + "\nStates to tell apart:\n";
  for (std::size_t call = 0; call < kCallCount; ++call) {
    if (states[call].empty()) continue;
    text += fmt::format("  {}: {}\n", name_of(static_cast<Call>(call)), fmt::join(states[call], "; "));
  }
  return text + fmt::format("{} faults, {} cells of a call, a kind, a code and a state\n", legal_faults().size(),
                            kLegalCellCount);
}

std::string scenarios_list() {
  Table table({Align::left, Align::left});
  for (const Scenario& scenario : scenarios()) table.add({std::string(scenario.name), std::string(scenario.about)});
  return table.text();
}

std::string marks_list() {
  Table table({Align::left, Align::left});
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    table.add({is_rare(mark) ? "rare" : "", std::string(name_of(mark))});
  }
  return table.text();
}

std::string profiles_list() {
  Table table({Align::left, Align::left});
  for (const Profile& profile : profiles()) table.add({std::string(profile.name), std::string(profile.about)});
  return table.text();
}

struct Listing {
  const char* name;
  std::string (*text)();
};
constexpr std::array<Listing, 5> kListings{{{"invariants", invariants_list},
                                            {"faults", faults_list},
                                            {"scenarios", scenarios_list},
                                            {"marks", marks_list},
                                            {"profiles", profiles_list}}};

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "list";
  spec.summary = "invariants, faults, scenarios, marks or profiles, by name";
  spec.usage = "invariants|faults|scenarios|marks|profiles";
  spec.about =
      "invariants: the promises that are checked. faults: every call and the ways in which it may fail. scenarios: "
      "traces by name, for run --scenario. marks: situations that a campaign should have met, required by run "
      "--require-marks unless rare. profiles: what the traces of seeds look like.";
  spec.operand = "WHAT";
  spec.examples = {{"the promises", "holdfast list invariants"}};
  return spec;
}

Result<ExitStatus> list_main(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const Listing& listing : kListings) names.emplace_back(listing.name);
  const std::string what = arguments.operand().value_or("");
  for (const Listing& listing : kListings) {
    if (what != listing.name) continue;
    fmt::print("{}", listing.text());
    return ExitStatus::held;
  }
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  if (what.empty()) return refusal("holdfast list", "list what? One of " + all);
  return refusal("holdfast list", fmt::format("there is no list of '{}'{}; there are {}", printable(what),
                                              did_you_mean(what, names), all));
}

}  // namespace

Command list_command() { return {spec(), list_main}; }

}  // namespace holdfast::sim
