#include "holdfast/sim/abcd_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kFrames = 37;

struct Row {
  char name;
  std::string_view what;
  std::uint64_t hits;     // required
  std::size_t reference;  // whose frames it must have; itself = a reference
};
constexpr std::array<Row, 4> kRows{{{'A', "cold", 0, 0},
                                    {'B', "A's actions again", 3, 0},
                                    {'C', "two chunks of A's, then another", 2, 3},
                                    {'D', "C's actions, cold", 0, 3}}};

std::size_t equal_frames(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::size_t equal = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) equal += a[i] == b[i] ? 1 : 0;
  return equal;
}

}  // namespace

AbcdVerdict judge_abcd(const RunResult& run) {
  AbcdVerdict verdict;
  const auto fails = [&](std::string what) {
    verdict.failure += (verdict.failure.empty() ? "" : "; ") + std::move(what);
  };
  // Those of phase two come after the scenario's own.
  if (run.frame_hashes.size() < kRows.size() || run.session_chunks_hit.size() < kRows.size()) {
    fails(fmt::format("{} sessions told their frames and {} their hits, not four", run.frame_hashes.size(),
                      run.session_chunks_hit.size()));
    return verdict;
  }
  using Align = Table::Align;
  Table table({Align::left, Align::left, Align::right, Align::right, Align::left});
  table.add({"session", "runs", "chunks hit", "frames", "frame hashes"});
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows[i];
    const std::vector<std::uint64_t>& frames = run.frame_hashes[i];
    const std::vector<std::uint64_t>& reference = run.frame_hashes[row.reference];
    const std::size_t equal = equal_frames(frames, reference);
    const char name = kRows[row.reference].name;
    table.add({std::string(1, row.name), std::string(row.what), std::to_string(run.session_chunks_hit[i]),
               std::to_string(frames.size()),
               row.reference == i ? std::string("the reference") : fmt::format("{} equal {}'s", equal, name)});
    if (run.session_chunks_hit[i] != row.hits) {
      fails(fmt::format("{} hit {} chunks, not {}", row.name, run.session_chunks_hit[i], row.hits));
    }
    if (frames.size() != kFrames) fails(fmt::format("{} made {} frames, not {}", row.name, frames.size(), kFrames));
    if (equal != kFrames) fails(fmt::format("{} of {}'s {} frames equal {}'s", equal, row.name, kFrames, name));
  }
  verdict.table = table.text();
  return verdict;
}

}  // namespace holdfast::sim
