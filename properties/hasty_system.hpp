// The project's own store, which after each chunk puts something of its own in haste, and does it wrong: for reports of
// failures that look like real ones.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "forwarding_system.hpp"
#include "holdfast/sim/executor.hpp"

namespace holdfast::sim {

enum class Haste : std::uint8_t {
  none,
  aborts_under_a_copy,
  commits_under_a_copy,
  aborts_twice,
  forgets_a_plan,
  claims_what_is_not_there,
  crashes,
};

class HastySystem final : public ForwardingSystem {
 public:
  // In `kHastes` worlds from `kHastyWorlds` on the world says what goes wrong, in others nothing does.
  static constexpr std::uint32_t kHastyWorlds = 100;
  static constexpr std::uint32_t kHastes = 7;

  HastySystem(Ports& ports, ClaimListener& listener, const SystemOptions& options, std::string key)
      : ForwardingSystem(make_production_system(ports, listener, options)),
        ports_(ports),
        listener_(listener),
        key_(std::move(key)) {}

  Status open_session(SessionId session, const SessionSpec& spec, Engine& engine) override {
    const bool hasty = spec.world >= kHastyWorlds && spec.world - kHastyWorlds < kHastes;
    sessions_[session] = {&engine, hasty ? Haste(spec.world - kHastyWorlds) : Haste::none};
    return ForwardingSystem::open_session(session, spec, engine);
  }
  Result<IngestOutcome> chunk_finalized(SessionId session) override {
    auto outcome = ForwardingSystem::chunk_finalized(session);
    if (outcome && outcome->kv == IngestResult::published) hurry(sessions_.at(session));
    return outcome;
  }

 private:
  struct Session {
    Engine* engine = nullptr;
    Haste haste = Haste::none;
  };
  void hurry(const Session& session) {
    if (session.haste == Haste::none) return;
    Engine& engine = *session.engine;
    static_cast<void>(ports_.fluxon.remove(key_));
    const std::array<std::string_view, 1> keys{key_};
    const auto plan = ports_.fluxon.local_fast_put_start(keys, 64, {});
    if (!plan) return;
    const auto* words = reinterpret_cast<const std::uint64_t*>(plan->address);
    const std::array copies{Copy{words[2], engine.ring().front().data, 64}};
    const bool submitted = ports_.cuda.copy_batch(CopyDirection::device_to_host, copies, engine.stream()).has_value();
    if (submitted) wrong(session.haste, *plan, engine.stream());
    static_cast<void>(ports_.cuda.stream_synchronize(engine.stream()));
  }
  void wrong(Haste haste, PlanPtr plan, StreamRef stream) {
    switch (haste) {
      case Haste::aborts_under_a_copy:
        static_cast<void>(ports_.fluxon.put_abort(plan));
        break;
      case Haste::commits_under_a_copy:
        if (auto future = ports_.fluxon.local_fast_put_commit(plan)) static_cast<void>(future->wait(kSecond));
        break;
      case Haste::aborts_twice:
        static_cast<void>(ports_.cuda.stream_synchronize(stream));
        static_cast<void>(ports_.fluxon.put_abort(plan));
        static_cast<void>(ports_.fluxon.put_abort(plan));
        break;
      case Haste::none:
      case Haste::forgets_a_plan:
        break;
      case Haste::claims_what_is_not_there:
        listener_.on_claim(Claim::kv, key_, {1, kPlainParts}, 256);
        listener_.on_withdrawal(Claim::kv, key_);
        break;
      case Haste::crashes: {
        constexpr std::string_view kWords = "the last words\n";
        static_cast<void>(!write(STDERR_FILENO, kWords.data(), kWords.size()));
        std::abort();
      }
    }
  }

  Ports& ports_;
  ClaimListener& listener_;
  std::string key_;
  std::map<SessionId, Session> sessions_;
};

// Always the same: `key` is what it puts.
inline SystemFactory hasty_system(std::string key = "hasty") {
  return [key = std::move(key)](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    return std::make_unique<HastySystem>(ports, listener, options, key);
  };
}
// Of a trace all sessions' world is the one in which this goes wrong.
inline Trace made_hasty(Trace trace, Haste haste) {
  for (Step& step : trace.steps) {
    if (step.kind == StepKind::open) step.world = HastySystem::kHastyWorlds + static_cast<std::uint32_t>(haste);
  }
  return trace;
}

}  // namespace holdfast::sim
