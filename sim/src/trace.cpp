#include "holdfast/sim/trace.hpp"

#include <array>

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, kStepKindCount> kStepNames{
    "open",    "close", "generate", "resume",  "hold",        "unhold",        "evict",     "make_room",
    "warm_up", "pump",  "snapshot", "restart", "store_evict", "owner_restart", "pass_time",
};

constexpr std::array<std::string_view, kChoiceKindCount> kChoiceNames{
    "copy_at_submit", "copy_after_calls", "copy_split", "copy_order", "route_after", "answer_after", "needs_transfer",
};

constexpr std::array<std::string_view, kEvictionCount> kEvictionNames{"lru", "frequency"};

}  // namespace

std::uint64_t Geometry::token_bytes(std::size_t tensor) const {
  const ChunkShape shape = chunk_shape();
  const auto part = static_cast<std::uint32_t>(shape.part_of(tensor));
  if (part >= kPlainParts) return scale_token_bytes;
  return kv_token_bytes[(std::size_t{kPlainParts} * shape.layer_of(tensor) + part) % kv_token_bytes.size()];
}

std::string_view name_of(Eviction eviction) { return kEvictionNames.at(static_cast<std::size_t>(eviction)); }
std::string_view name_of(StepKind kind) { return kStepNames.at(static_cast<std::size_t>(kind)); }
std::string_view name_of(ChoiceKind kind) { return kChoiceNames.at(static_cast<std::size_t>(kind)); }

Call call_of(ChoiceKind kind) {
  switch (kind) {
    case ChoiceKind::copy_at_submit:
    case ChoiceKind::copy_after_calls:
    case ChoiceKind::copy_split:
    case ChoiceKind::copy_order:
      return Call::copy_batch;
    case ChoiceKind::route_after:
    case ChoiceKind::answer_after:
      return Call::local_fast_put_commit;
    case ChoiceKind::needs_transfer:
      return Call::get_start;
  }
  return Call::copy_batch;
}

int slot_of(const FaultPoint& fault) {
  const bool fate = fault.kind == FaultKind::before || fault.kind == FaultKind::lost || fault.kind == FaultKind::part ||
                    fault.kind == FaultKind::lie;
  return fate ? 0 : static_cast<int>(fault.kind);
}
int slot_of(const Choice& choice) { return choice.call == Call::copy_batch ? 0 : static_cast<int>(choice.kind); }

}  // namespace holdfast::sim
