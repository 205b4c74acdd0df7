#include "holdfast/sim/coverage.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kFreshOneIn = 4;
constexpr std::uint64_t kWantedOneIn = 3;

std::vector<std::size_t> reached_in(std::span<const std::uint64_t> counts) {
  std::vector<std::size_t> reached;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) reached.push_back(i);
  }
  return reached;
}

}  // namespace

std::vector<std::size_t> CoverageCorpus::all_cells() {
  std::vector<std::size_t> all(kLegalCellCount);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

bool CoverageCorpus::offer(std::shared_ptr<const Trace> trace, const RunResult& run) {
  const std::vector<std::size_t> cells = reached_in(run.faults.cells);
  const std::vector<std::size_t> marks = reached_in(run.marks.counts);
  const std::uint64_t cost = run.runtime_calls;
  std::vector<std::size_t> taken;
  bool is_new = false;
  const auto look_at = [&](std::size_t feature) {
    const std::uint64_t owner = owners_[feature];
    if (owner != 0 && entries_.at(owner).cost <= cost) return;
    is_new = is_new || owner == 0;
    taken.push_back(feature);
  };
  for (const std::size_t cell : cells) look_at(cell);
  for (const std::size_t mark : marks) look_at(kMarksAt + mark);
  const bool essential = is_new;
  for (const std::size_t mark : marks) {
    for (const std::size_t cell : cells) look_at(kCellPairsAt + cell * kMarkCount + mark);
    for (const std::size_t other : marks) {
      if (other < mark) look_at(kMarkPairsAt + mark * kMarkCount + other);
    }
  }
  if (taken.empty() || (entries_.size() >= entries_max_ && !essential)) return false;

  const std::uint64_t id = next_id_++;
  entries_[id] = {{std::move(trace), last_calls_of(run.calls)}, cost, taken.size()};
  for (const std::size_t feature : taken) {
    const std::uint64_t owner = std::exchange(owners_[feature], id);
    if (owner != 0) {
      if (--entries_.at(owner).owned == 0) entries_.erase(owner);
    } else if (feature < kCellPairsAt) {
      reached_.push_back(feature);
      std::erase(wanted_, feature);
    } else {
      ++pairs_;
    }
  }
  return is_new;
}

const RanTrace& CoverageCorpus::pick(Rng& rng) const {
  // What is alone with a cell or a mark is picked as often as what has many.
  if (rng.ratio(1, 2)) return entries_.at(owners_[reached_[rng.below(reached_.size())]]).ran;
  return std::next(entries_.begin(), static_cast<std::ptrdiff_t>(rng.below(entries_.size())))->second.ran;
}

Trace CoverageCorpus::make(std::uint64_t seed, const Profile& profile) const {
  Rng rng(seed);
  if (entries_.empty() || reached_.empty() || rng.ratio(1, kFreshOneIn)) return generate(seed, profile);
  const RanTrace* parent = &pick(rng);
  const RanTrace& other = pick(rng);
  const LegalFault* wanted = nullptr;
  if (!wanted_.empty() && rng.ratio(1, kWantedOneIn)) {
    const std::size_t cell = wanted_[rng.below(wanted_.size())];
    if (const auto near = beside(cell, rng)) {
      parent = &entries_.at(owners_[*near]).ran;
      wanted = &legal_cells()[cell].fault;
    }
  }
  Trace trace = mutate(*parent, other, wanted, rng.split());
  trace.name = generated_name(seed, profile);
  trace.seed = seed;
  return trace;
}

std::optional<std::size_t> CoverageCorpus::beside(std::size_t cell, Rng& rng) const {
  const LegalCell& wanted = legal_cells()[cell];
  std::vector<std::size_t> same_state;
  std::vector<std::size_t> same_call;
  for (std::size_t i = 0; i < kLegalCellCount; ++i) {
    const LegalCell& other = legal_cells()[i];
    if (owners_[i] == 0 || other.fault.call != wanted.fault.call) continue;
    same_call.push_back(i);
    if (other.state == wanted.state) same_state.push_back(i);
  }
  const std::vector<std::size_t>& near = same_state.empty() ? same_call : same_state;
  return near.empty() ? std::nullopt : std::optional(near[rng.below(near.size())]);
}

CoverageFigures CoverageCorpus::figures() const {
  CoverageFigures now;
  now.corpus = entries_.size();
  now.cells = kLegalCellCount - wanted_.size();
  now.marks = reached_.size() - now.cells;
  now.pairs = pairs_;
  return now;
}

}  // namespace holdfast::sim
