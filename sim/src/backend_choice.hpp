// --backend: what the runs of a command are made against.
#pragma once

#include <optional>
#include <string>

#include "command_line.hpp"
#include "holdfast/sim/backend_factory.hpp"

namespace holdfast::sim {

OptionSpec backend_option();
OptionSpec require_device_option();

struct BackendChoice {
  std::string name = "fake";
  BackendProbe probe;
  SystemFactory factory = make_production_system;
  std::optional<ExitStatus> ended;  // it cannot be used, which has been said
};
// A library from outside is loaded in a child process first: a crash or a hang of it is a verdict. InvalidArgument for
// a name that there is not, and for a library that is refused.
Result<BackendChoice> backend_choice_of(const Arguments& arguments);

// Has the job run against it, without the checks that it does not let be decided, and the report say so.
void run_against(const BackendChoice& backend, CampaignJob& job, Report& report);

}  // namespace holdfast::sim
