// holdfast completion: what a shell needs to complete holdfast's commands, options and names.
#include <fmt/format.h>

#include <map>

#include "command_line.hpp"
#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/scenarios.hpp"

namespace holdfast::sim {
namespace {

CommandSpec spec() {
  CommandSpec spec;
  spec.name = "completion";
  spec.summary = "what bash or zsh needs to complete commands, options and names";
  spec.usage = "";
  spec.about =
      "Prints a shell script, the same for bash and zsh. It completes commands, their options, and the names of "
      "profiles, scenarios and invariants; where a file is wanted, files.";
  spec.examples = {
      {"in this shell, or in ~/.bashrc or ~/.zshrc (there after compinit)", "eval \"$(holdfast completion)\""}};
  return spec;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string options_of(const CommandSpec& command) {
  std::vector<std::string> words;
  for (const OptionSpec& option : command.options) words.push_back("--" + option.name);
  words.emplace_back("--help");
  return joined(words);
}

// The words that its operand may be; empty where it is a file, or there is none.
std::string_view operands_of(const CommandSpec& command) {
  if (command.name == "list") return "invariants faults scenarios marks profiles ";
  if (command.name == "bench") return "sim copy register ";
  return {};
}

// By the option whose value they may be.
std::map<std::string, std::vector<std::string>> values_of_options() {
  std::map<std::string, std::vector<std::string>> values;
  for (const Profile& profile : profiles()) values["profile"].emplace_back(profile.name);
  for (const Scenario& scenario : scenarios()) values["scenario"].emplace_back(scenario.name);
  for (const Scenario& scenario : scenarios_together()) values["scenario"].emplace_back(scenario.name);
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    values["disable"].emplace_back(name_of(static_cast<Invariant>(i)));
  }
  values["stop-at"] = values["disable"];
  values["stop-at"].emplace_back("any");
  values["backend"] = {"fake", "cuda", "plugin:"};
  values["format"] = {"mooncake"};
  values["strategy"] = {"random", "pct", "dfs"};
  return values;
}

// Names here are plain words: nothing needs quoting.
std::string completion_script() {
  std::vector<std::string> names;
  std::string options;
  for (const Command& command : all_commands()) {
    names.push_back(command.spec.name);
    const std::string_view operands = operands_of(command.spec);
    options += fmt::format("    {}) words='{}{}'{} ;;\n", command.spec.name, operands, options_of(command.spec),
                           operands.empty() && !command.spec.operand.empty() ? "; files=yes" : "");
  }
  std::string values;
  for (const auto& [option, words] : values_of_options()) {
    values += fmt::format("      --{}) words='{}' ;;\n", option, joined(words));
  }
  return fmt::format(R"(# Completion of holdfast {0} for bash and zsh.
if [ -n "${{ZSH_VERSION:-}}" ]; then autoload -U +X bashcompinit && bashcompinit; fi
_holdfast() {{
  local now="${{COMP_WORDS[COMP_CWORD]}}" before='' command='' words='' files=''
  if [ "$COMP_CWORD" -gt 0 ]; then before="${{COMP_WORDS[COMP_CWORD-1]}}"; fi
  if [ "$COMP_CWORD" -gt 1 ]; then
    command="${{COMP_WORDS[1]}}"
    case "$before" in
{1}    esac
  else
    words='{2} help --help --version'
  fi
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$now")); return; fi
  case "$command" in
{3}    help) words='{2}' ;;
  esac
  case "$now" in
    -*) files='' ;;
  esac
  case "$before" in
    --*) if [ "$before" != --help ]; then files=yes; fi ;;
  esac
  if [ -n "$files" ]; then
    COMPREPLY=($(compgen -f -- "$now"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$now"))
  fi
}}
complete -o filenames -F _holdfast holdfast
)",
                     program_version(), values, joined(names), options);
}

Result<ExitStatus> completion_main(const Arguments&) {
  fmt::print("{}", completion_script());
  return ExitStatus::held;
}

}  // namespace

Command completion_command() { return {spec(), completion_main}; }

}  // namespace holdfast::sim
