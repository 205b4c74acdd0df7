#include "holdfast/sim/program.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "command_line.hpp"
#include "holdfast/sim/fresh_process.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

std::string program_help() {
  std::string text =
      "usage: holdfast COMMAND [options]\n\nRandom traces of put, evict, materialize and failure run through the "
      "production core\nagainst deterministic runtimes, and every promise is checked after every call.\n\ncommands:\n";
  Table table({Table::Align::left, Table::Align::left});
  for (const Command& command : all_commands()) table.add({command.spec.name, command.spec.summary});
  text += table.text(2);
  text +=
      "\nholdfast COMMAND --help tells more; holdfast --version the version.\n\nexit status:\n"
      "  0   every promise held\n  1   a promise was broken, or a run crashed or hung\n"
      "  2   bad usage or bad input; nothing was written\n"
      "  3   the harness itself failed, for instance a run that is not deterministic\n"
      "  77  skipped, with the reason\n\nexamples:\n"
      "  holdfast run --seeds 1-20000\n  holdfast run --scenario abcd\n  holdfast replay --seed 17 --steps\n";
  return text;
}

int status_number(ExitStatus status) { return static_cast<int>(status); }

int bad_usage(const std::string& message, const std::string& remedy) {
  fmt::print(stderr, "{}\n{}\n", message, remedy);
  return status_number(ExitStatus::bad_usage);
}

int run_command_named(const std::string& name, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    names.push_back(command.spec.name);
    if (command.spec.name != name) continue;
    const std::string remedy = fmt::format("Try 'holdfast {} --help'.", name);
    auto arguments = Arguments::parse(command.spec, words);
    if (!arguments) return bad_usage(explain(arguments.error()), remedy);
    if (arguments->has("help")) {
      fmt::print("{}", help_text(command.spec));
      return status_number(ExitStatus::held);
    }
    const auto status = command.main(*arguments);
    if (status) return status_number(*status);
    const std::string message = explain(status.error());
    if (status.error().is(Errc::invalid_argument)) return bad_usage(message, remedy);
    fmt::print(stderr, "holdfast {}: the harness failed: {}\n", name, message);
    return status_number(ExitStatus::harness_failed);
  }
  return bad_usage(fmt::format("holdfast: there is no command '{}'{}", printable(name), did_you_mean(name, names)),
                   "Try 'holdfast --help'.");
}

int run_words(const std::vector<std::string>& words) {
  if (words.empty()) {
    fmt::print(stderr, "{}", program_help());
    return status_number(ExitStatus::bad_usage);
  }
  const std::string& first = words.front();
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (first == "--help" || first == "-h" || (first == "help" && rest.empty())) {
    fmt::print("{}", program_help());
    return status_number(ExitStatus::held);
  }
  // Not in the help: started by campaigns alone.
  if (first == kFreshProcessCommand) return serve_fresh_runs(rest, make_production_system);
  if (first == "help") return run_command_named(rest.front(), {"--help"});
  if (first == "--version") {
    fmt::print("holdfast {}\n", program_version());
    return status_number(ExitStatus::held);
  }
  return run_command_named(first, rest);
}

}  // namespace

std::vector<Command> all_commands() {
  return {run_command(),      replay_command(), sweep_command(), explore_command(), shrink_command(),
          workload_command(), report_command(), bench_command(), list_command(),    completion_command()};
}

int run_program(const std::vector<std::string>& arguments) {
  int status = status_number(ExitStatus::harness_failed);
  try {
    status = run_words(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "holdfast: the harness failed: {}\n", printable(error.what()));
  }
  // A verdict that nobody could read is none.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fputs("holdfast: cannot write to standard output\n", stderr);
    return status_number(ExitStatus::harness_failed);
  }
  return status;
}

}  // namespace holdfast::sim
