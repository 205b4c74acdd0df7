// What the generator knows while it writes a trace: which paths it has let sessions write, and how a step's calls are
// numbered.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "holdfast/sim/generator.hpp"
#include "holdfast/sim/rng.hpp"
#include "holdfast/sim/trace_builder.hpp"
#include "leaning.hpp"

namespace holdfast::sim {

class TraceAuthor {
 public:
  using Id = TraceBuilder::Id;

  // Where a session goes, and how much of it was written before, as far as the author knows.
  struct Path {
    std::uint32_t world = 0;
    std::uint32_t geometry = 0;
    std::vector<std::string> actions;
    std::uint32_t written = 0;

    [[nodiscard]] std::uint32_t chunks() const { return static_cast<std::uint32_t>(actions.size()); }
  };

  TraceAuthor(std::uint64_t seed, const Profile& profile);

  // Memory, geometries, and the first session.
  void begin();
  void play_all();
  Trace finish();

 private:
  void draw_sizes(Geometry& geometry, bool large);
  // ---- episodes.cpp
  void play(Episode episode);
  void play_write();
  void play_reuse();
  void play_rewrite();
  void play_put_trouble();
  void play_leftovers();
  void play_get_trouble();
  void play_evict();
  void play_store_evict();
  void play_make_room();
  void play_owner_restart();
  void play_restart();
  void play_death();
  void play_mistaken_layout();
  void play_idle();
  // Somebody else wants the path of a put that failed at `depth`.
  void follow_up(const Path& path, std::uint32_t depth);
  void put_fault(Id step, const Path& path);
  void get_fault(Id step, const Path& path);
  void registration_trouble(Id step);

  // ---- Sessions.
  Path& known_path();
  // `known` as far as `keep`, then `fresh` chunks that nobody wrote.
  Path fork_of(const Path& known, std::uint32_t keep, std::uint32_t fresh);
  // A fork with at least one fresh chunk; `keep` is how many it shares.
  Path fresh_path(std::uint32_t* keep);
  std::string fresh_action();
  Id open(const Path& path);
  Id generate(Id session);
  Id resume(Id session);
  // Generates what is left after `from`; remembers the path as written.
  void write_on(Id session, const Path& path, std::uint32_t from);
  void remember(const Path& path, std::uint32_t written);
  // Opens it, resumes and generates the rest. By value: writing makes the known paths move.
  Id continue_on(const Path& path);
  // The client is a new one: its sessions are gone.
  void forget_sessions();

  // One thing that a layout's bytes depend on is another.
  Geometry twin_of(Geometry twin);

  // ---- Calls of a step, as far as they can be foreseen. Each is numbered within its step.
  [[nodiscard]] const Geometry& geometry_of(const Path& path) { return trace_.trace().geometries[path.geometry]; }
  [[nodiscard]] std::uint32_t latent_puts(const Path& path) { return geometry_of(path).latent_bytes > 0 ? 1 : 0; }
  [[nodiscard]] std::uint32_t kv_groups(const Path& path);
  [[nodiscard]] std::uint32_t puts(const Path& path) { return latent_puts(path) + kv_groups(path); }
  [[nodiscard]] std::uint32_t registration_pieces();
  // By which a batch of copies is waited for.
  [[nodiscard]] Call wait_call();

  void fault(Id step, Call call, std::uint32_t nth, FaultKind kind, std::int32_t code = 0, std::uint64_t arg = 0,
             bool persistent = false);
  // Any legal fault of the call that the step goes on after.
  void any_fault(Id step, Call call, std::uint32_t nth);
  void choices(Id step, bool commits);
  void leave_out_steps();
  void add_steps();
  bool chance(Ratio ratio) { return rng_.ratio(ratio.numerator, ratio.denominator); }
  bool one_in(std::uint32_t n) { return rng_.ratio(1, n); }
  template <class T>
  T any_of(std::initializer_list<T> items) {
    return items.begin()[rng_.below(items.size())];
  }

  const Profile& profile_;
  Rng rng_;  // at most one draw among the arguments of a call: their order differs between compilers
  Leaning leaning_;
  TraceBuilder trace_;
  std::vector<Path> paths_;
  std::uint32_t actions_made_ = 0;
  Id last_session_ = 0;  // 0: none is open
};

}  // namespace holdfast::sim
