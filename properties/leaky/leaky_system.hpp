// The project's own store, into whose decisions something leaks that must not: the path that it asks the file system
// for, when a session is opened, shows it in the log. Both the tests and the fresh process's program make one.
#pragma once

#include <chrono>
#include <locale>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../forwarding_system.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/system_under_test.hpp"

namespace holdfast::sim {

enum class Leak : std::uint8_t {
  none,
  address,         // of the engine's memory
  static_address,  // the same in all runs of one process
  hash_seed,
  pointer_order,  // of a set of heap objects
  hash_order,     // of a hash set of heap objects
  clock,
  history,       // how many sessions this process has opened
  long_history,  // whether this process has opened many sessions
  once,          // whether this is the first of its sessions that leaks
  locale,
  violation,  // the hash seed in what a violation says, and nowhere in the log
  crashes_in_a_fresh_process,
  hangs_in_a_fresh_process,
};
struct NamedLeak {
  Leak leak{};
  std::string_view name;
};
inline constexpr NamedLeak kLeaks[] = {
    {Leak::none, "none"},
    {Leak::address, "address"},
    {Leak::static_address, "static-address"},
    {Leak::hash_seed, "hash-seed"},
    {Leak::pointer_order, "pointer-order"},
    {Leak::hash_order, "hash-order"},
    {Leak::clock, "clock"},
    {Leak::history, "history"},
    {Leak::long_history, "long-history"},
    {Leak::once, "once"},
    {Leak::locale, "locale"},
    {Leak::violation, "violation"},
    {Leak::crashes_in_a_fresh_process, "crashes-in-a-fresh-process"},
    {Leak::hangs_in_a_fresh_process, "hangs-in-a-fresh-process"},
};

// The worlds whose sessions leak; those of all others behave.
inline constexpr std::uint32_t kLeakyWorld = 31;

// Of a process whose history is long: more than the fresh one has had by then.
inline constexpr std::uint64_t kManySessions = 300;

// True in the program that is a fresh process.
inline bool& in_a_fresh_process() {
  static bool fresh = false;
  return fresh;
}

class LeakySystem final : public ForwardingSystem {
 public:
  LeakySystem(Ports& ports, ClaimListener& listener, const SystemOptions& options, Leak leak)
      : ForwardingSystem(make_production_system(ports, listener, options)),
        ports_(ports),
        options_(options),
        leak_(leak) {}

  Status open_session(SessionId session, const SessionSpec& spec, Engine& engine) override {
    static std::uint64_t opened = 0;
    ++opened;
    if (spec.world == kLeakyWorld && leak_ != Leak::none) show(leaked(engine, opened));
    return ForwardingSystem::open_session(session, spec, engine);
  }
  [[nodiscard]] Inspection inspect() const override {
    Inspection inspection = ForwardingSystem::inspect();
    inspection.references += references_;
    return inspection;
  }

 private:
  void show(const std::string& leaked) { static_cast<void>(ports_.files.read("leak " + leaked, 1)); }

  std::string leaked(Engine& engine, std::uint64_t opened) {
    static const char somewhere = 0;
    switch (leak_) {
      case Leak::address:
        return text_of(reinterpret_cast<std::uintptr_t>(engine.ring().front().data));
      case Leak::static_address:
        return text_of(reinterpret_cast<std::uintptr_t>(&somewhere));
      case Leak::hash_seed:
        return text_of(options_.hash_seed);
      case Leak::pointer_order:
        return order_of<std::set<const std::string*>>();
      case Leak::hash_order:
        return order_of<std::unordered_set<const std::string*>>();
      case Leak::clock:
        return text_of(std::chrono::system_clock::now().time_since_epoch().count());
      case Leak::history:
        return text_of(opened);
      case Leak::long_history:
        return opened > kManySessions ? "many" : "few";
      case Leak::once: {
        static bool before = false;
        return std::exchange(before, true) ? "later" : "first";
      }
      case Leak::locale: {
        std::ostringstream text;
        text << 12345.5;
        return text.str();
      }
      case Leak::violation:
        references_ = 1 + options_.hash_seed % 1000;
        break;
      case Leak::crashes_in_a_fresh_process:
        if (in_a_fresh_process()) throw std::runtime_error("thrown in the fresh process");
        break;
      case Leak::hangs_in_a_fresh_process:
        for (volatile bool forever = in_a_fresh_process(); forever;) continue;
        break;
      case Leak::none:
        break;
    }
    return "nothing";
  }

  template <class T>
  static std::string text_of(T number) {
    return std::to_string(number);
  }
  // Which of some objects on the heap comes first, and so on, by where they lie.
  template <class Set>
  static std::string order_of() {
    std::vector<std::unique_ptr<std::string>> objects;
    Set set;
    for (int i = 0; i < 16; ++i) {
      objects.push_back(std::make_unique<std::string>(std::to_string(i)));
      set.insert(objects.back().get());
    }
    std::string order;
    for (const std::string* object : set) order += *object + " ";
    return order;
  }

  Ports& ports_;
  SystemOptions options_;
  Leak leak_;
  std::uint64_t references_ = 0;  // that nobody took
};

inline SystemFactory leaky_factory(Leak leak) {
  return [leak](Ports& ports, ClaimListener& listener, const SystemOptions& options) {
    return std::make_unique<LeakySystem>(ports, listener, options, leak);
  };
}

}  // namespace holdfast::sim
