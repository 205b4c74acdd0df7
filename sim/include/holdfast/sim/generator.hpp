// Makes a trace of a seed: episodes in which something goes wrong, each biased towards one situation of the contract,
// strung together at random. The same seed and profile give the same trace on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {

enum class Episode : std::uint8_t {
  write,            // a session writes chunks that nobody wrote before
  reuse,            // a session resumes on what is there and goes on
  rewrite,          // a session writes again what is there
  put_trouble,      // a put fails, and somebody wants the same node soon, or later
  leftovers,        // a put fails after some of its keys were committed
  get_trouble,      // a resume fails somewhere
  evict,            // blobs are evicted, also pinned and referenced ones, and removals fail
  store_evict,      // the owner evicts values under a ready flag
  make_room,        // least recently used blobs go
  owner_restart,    // between steps, or in the middle of a put or a get
  restart,          // a snapshot, the end of the client, and what it still knows
  death,            // the client dies in the middle of a call
  mistaken_layout,  // an engine with other sizes than its namespace was made for
  idle,             // time passes, periodic work
};
inline constexpr std::size_t kEpisodeCount = 14;

struct Ratio {
  std::uint32_t numerator = 0;
  std::uint32_t denominator = 1;
};

// Faults that no episode asked for, at two levels: a site (a call, a kind, a code) is active in a trace, then fires.
struct FaultSites {
  Ratio eventful;  // of traces: have active sites at all
  Ratio active;    // of the sites of such a trace
  Ratio drastic;   // of the active ones after which little goes on: are left active
  Ratio burst;     // of traces: many calls fail over a few neighbouring steps
};

struct Profile {
  std::string_view name;
  std::string_view about;
  std::uint32_t episodes_min = 1;
  std::uint32_t episodes_max = 1;
  std::array<std::uint32_t, kEpisodeCount> weights{};
  bool faults = true;  // false: neither faults nor the environment's events
  FaultSites sites{};
  Ratio choice{};                // of steps that copy: another moment or order, a late route or answer
  Ratio registration_trouble{};  // of traces
  Ratio tight_segment{};         // of traces: slots run out
  Ratio in_memory_store{};       // of traces
  bool hostile = false;          // lies as well: see lies.hpp
  Ratio large_values{};          // of geometries: values that a copy engine moves
  // Each seed switches a random half of the episodes, steps, faults, choices and shapes off and leans hard towards some
  // of the rest.
  bool swarm = false;
  // The campaign keeps what reaches something new and changes it (see coverage.hpp); what follows is for the rest.
  bool coverage_guided = false;
  bool side_by_side = false;  // neighbouring steps take turns at random
};

// "default", "calm", "faulty", "hostile", "swarm", "coverage", "side-by-side".
std::span<const Profile> profiles();
const Profile* profile_named(std::string_view name);

// "seed 17 of default".
std::string generated_name(std::uint64_t seed, const Profile& profile);
// A valid trace of that name.
Trace generate(std::uint64_t seed, const Profile& profile);

}  // namespace holdfast::sim
