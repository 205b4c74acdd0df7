#include "backend_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "forked_child.hpp"
#include "holdfast/sim/files.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::string_view kPluginBackend = "plugin:";
constexpr Nanos kLoadListenNs = 50 * kMillisecond;
constexpr Nanos kLoadLimitNs = kMinute;  // real time

Result<std::string> backend_named(const Arguments& arguments) {
  std::string backend = arguments.value("backend").value_or("fake");
  const std::vector<std::string> names{"fake", "cuda", "plugin:FILE"};
  if (!backend.starts_with(kPluginBackend) && backend != "fake" && backend != "cuda") {
    return refusal("--backend", fmt::format("there is no backend '{}'{}; there are fake, cuda and plugin:FILE",
                                            printable(backend), did_you_mean(backend, names)));
  }
  return backend;
}

// Empty: it came back, whatever it said; else what loading it did to the process.
Result<std::string> try_to_load(const std::string& backend) {
  auto child = ForkedChild::start([&](ForkedChild::Link& link) {
    static_cast<void>(probe_real_backend(backend));
    link.send("y");
  });
  if (!child) return child.error();
  const SteadyClock clock;
  const Nanos began_ns = clock.now_ns();
  std::string bytes;
  auto heard = ForkedChild::Heard::silence;
  while (heard == ForkedChild::Heard::silence && clock.now_ns() - began_ns < kLoadLimitNs) {
    heard = (*child)->listen(bytes, kLoadListenNs);
  }
  const bool hung = heard == ForkedChild::Heard::silence;
  const ForkedChild::Ending ending = (*child)->bury(hung);
  if (!bytes.empty()) return std::string();
  if (hung) return fmt::format("HUNG: it was not loaded within {}", seconds_text(kLoadLimitNs));
  return fmt::format("CRASHED: while it was loaded {}{}", ending.how,
                     ending.complaints.empty() ? "" : "; it had written:\n" + ending.complaints);
}

void say_backend(const BackendChoice& choice) {
  fmt::print("holdfast {}, backend {}\n{}", program_version(), printable(choice.name),
             runtimes_text(choice.probe.runtimes));
}

}  // namespace

OptionSpec backend_option() { return {"backend", Kind::value, "NAME", "fake (default), cuda, or plugin:FILE"}; }
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
    choice.probe = probe_real_backend(choice.name);
    const bool required = arguments.has("require-device");
    say_backend(choice);
    fmt::print("{}: {}\n", required ? "FAILED (--require-device)" : "SKIPPED", printable(choice.probe.reason));
    choice.ended = required ? ExitStatus::harness_failed : ExitStatus::skipped;
    return choice;
  }
  const std::string file = choice.name.substr(kPluginBackend.size());
  auto digest = sha256_of_file(file);
  if (!digest) return digest.error();
  auto trouble = try_to_load(choice.name);
  if (!trouble) return trouble.error();
  if (!trouble->empty()) {
    choice.probe.runtimes.push_back({"fluxon", "plug-in", "", file, *digest});
    say_backend(choice);
    fmt::print("{}\n", printable(*trouble));
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
