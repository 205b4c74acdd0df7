// holdfast list: what there is, by name.
#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

#include "command_line.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/lies.hpp"
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
  Table states({Align::left, Align::left});
  states.add({"call", "state to tell apart"});
  std::set<std::pair<Call, CallState>> seen;
  for (const LegalCell& cell : legal_cells()) {
    if (cell.state == CallState::any || !seen.emplace(cell.fault.call, cell.state).second) continue;
    states.add({std::string(name_of(cell.fault.call)), std::string(name_of(cell.state))});
  }
  Table lies({Align::left, Align::right, Align::left});
  lies.add({"lie of the hostile profile about", "code", ""});
  for (const LegalLie& lie : legal_lies()) {
    lies.add(
        {std::string(name_of(lie.call)), std::to_string(static_cast<std::int32_t>(lie.lie)), std::string(lie.note)});
  }
  return fmt::format("{}\n{}\n{}\n{} faults, {} cells of a call, a kind, a code and a state\n", table.text(),
                     states.text(), lies.text(), legal_faults().size(), kLegalCellCount);
}

std::string scenarios_list() {
  Table table({Align::left, Align::left});
  for (const Scenario& scenario : scenarios()) table.add({std::string(scenario.name), std::string(scenario.about)});
  Table together({Align::left, Align::left});
  for (const Scenario& scenario : scenarios_together()) {
    together.add({std::string(scenario.name), std::string(scenario.about)});
  }
  return table.text() + "\nsessions side by side, for holdfast explore:\n" + together.text();
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
