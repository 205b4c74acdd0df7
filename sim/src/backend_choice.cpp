#include "backend_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "forked_child.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::string_view kPluginBackend = "plugin:";
constexpr char kFieldEnd = '\x1f';
constexpr char kAnswerEnd = '\x1e';
constexpr Nanos kLoadListenNs = 50 * kMillisecond;
constexpr Nanos kLoadLimitNs = kMinute;  // real time

Result<std::string> backend_named(const Arguments& arguments) {
  std::string backend = arguments.value("backend").value_or("fake");
  const std::vector<std::string> names{"fake", "cuda", "both", "plugin:FILE"};
  if (!backend.starts_with(kPluginBackend) && std::find(names.begin(), names.end() - 1, backend) == names.end() - 1) {
    return refusal("--backend", fmt::format("there is no backend '{}'{}; there are fake, cuda, both and plugin:FILE",
                                            printable(backend), did_you_mean(backend, names)));
  }
  return backend;
}

struct Tried {
  std::string trouble;  // what it did to the process; empty: it came back
  std::string answer;
};

// Asks in a child: a library may crash or hang, and a device that was used here could not be used in a child again.
Result<Tried> try_in_a_child(const std::function<std::string()>& ask) {
  auto child = ForkedChild::start([&](ForkedChild::Link& link) { link.send(ask() + kAnswerEnd); });
  if (!child) return child.error();
  const SteadyClock clock;
  const Nanos began_ns = clock.now_ns();
  Tried tried;
  while (!tried.answer.ends_with(kAnswerEnd)) {
    if (clock.now_ns() - began_ns > kLoadLimitNs) break;
    if ((*child)->listen(tried.answer, kLoadListenNs) == ForkedChild::Heard::end) break;
  }
  const bool answered = tried.answer.ends_with(kAnswerEnd);
  const bool hung = !answered && clock.now_ns() - began_ns > kLoadLimitNs;
  const ForkedChild::Ending ending = (*child)->bury(hung);
  if (answered) {
    tried.answer.pop_back();
  } else if (hung) {
    tried.trouble = fmt::format("HUNG: it was not loaded within {}", seconds_text(kLoadLimitNs));
  } else {
    tried.trouble = fmt::format("CRASHED: while it was loaded {}{}", ending.how,
                                ending.complaints.empty() ? "" : "; it had written:\n" + ending.complaints);
  }
  return tried;
}

// The device's name, its version, and why it cannot be used; of these, the last is empty when it can.
Result<BackendProbe> probe_device_in_a_child(const std::string& backend) {
  auto tried = try_in_a_child([&] {
    const BackendProbe probe = probe_real_backend(backend);
    const RuntimeInfo device = probe.runtimes.empty() ? RuntimeInfo{} : probe.runtimes.back();
    return device.name + kFieldEnd + device.version + kFieldEnd + probe.reason;
  });
  if (!tried) return tried.error();
  BackendProbe probe;
  const std::size_t first = tried->answer.find(kFieldEnd);
  const std::size_t second = tried->answer.find(kFieldEnd, first + 1);
  if (!tried->trouble.empty() || second == std::string::npos) {
    probe.reason = tried->trouble;
    return probe;
  }
  probe.reason = tried->answer.substr(second + 1);
  probe.usable = probe.reason.empty();
  const std::string name = tried->answer.substr(0, first);
  if (probe.usable) probe.runtimes = probe_fake_backend().runtimes;
  if (probe.usable) probe.runtimes.pop_back();
  if (!name.empty()) {
    probe.runtimes.push_back({"cuda", name, tried->answer.substr(first + 1, second - first - 1), "", ""});
  }
  return probe;
}

void say_backend(const BackendChoice& choice) {
  fmt::print("holdfast {}, backend {}\n{}", program_version(), printable(choice.name),
             runtimes_text(choice.probe.runtimes));
}

}  // namespace

OptionSpec backend_option() {
  return {"backend", Kind::value, "NAME",
          "fake (default), cuda, plugin:FILE, or both: the fake and cuda, whose histories must be the same"};
}
OptionSpec require_device_option() {
  return {"require-device", Kind::flag, "", "fail with status 3, instead of 77, when the backend cannot be used"};
}

Result<BackendChoice> backend_choice_of(const Arguments& arguments) {
  auto backend = backend_named(arguments);
  if (!backend) return backend.error();
  BackendChoice choice;
  choice.name = std::move(*backend);
  if (choice.name == "fake") {
    choice.probe = probe_fake_backend();
    return choice;
  }
  if (!choice.name.starts_with(kPluginBackend)) {
    auto probe = probe_device_in_a_child(choice.name);
    if (!probe) return probe.error();
    choice.probe = std::move(*probe);
    if (choice.probe.usable) {
      auto device = device_factory_of(choice.name);
      if (!device) return device.error();
      choice.factory.make_device = std::move(*device);
      choice.factory.beside_fake = choice.name == "both";
      return choice;
    }
    const bool required = arguments.has("require-device");
    say_backend(choice);
    fmt::print("{}: {}\n", required ? "FAILED (--require-device)" : "SKIPPED", printable(choice.probe.reason));
    choice.ended = required ? ExitStatus::harness_failed : ExitStatus::skipped;
    return choice;
  }
  const std::string file = choice.name.substr(kPluginBackend.size());
  auto digest = sha256_of_file(file);
  if (!digest) return digest.error();
  auto tried = try_in_a_child([&] {
    static_cast<void>(probe_real_backend(choice.name));
    return std::string();
  });
  if (!tried) return tried.error();
  if (!tried->trouble.empty()) {
    choice.probe.runtimes.push_back({"fluxon", "plug-in", "", file, *digest});
    say_backend(choice);
    fmt::print("{}\n", printable(tried->trouble));
    choice.ended = ExitStatus::violated;
    return choice;
  }
  choice.probe = probe_real_backend(choice.name);
  auto owner = owner_factory_of(choice.name);
  if (!owner) return owner.error();
  choice.factory.make_owner = std::move(*owner);
  const auto fakes = probe_fake_backend();
  choice.probe.runtimes.push_back(fakes.runtimes.back());
  return choice;
}

void run_against(const BackendChoice& backend, CampaignJob& job, Report& report) {
  job.factory = backend.factory;
  job.backend = backend.name;
  report.backend = backend.name;
  report.runtimes = backend.probe.runtimes;
  report.undecidable = backend.probe.undecidable;
  std::vector<Invariant>& off = job.options.run.disabled;
  for (const Invariant invariant : report.undecidable) {
    if (std::ranges::find(off, invariant) == off.end()) off.push_back(invariant);
  }
}

}  // namespace holdfast::sim
