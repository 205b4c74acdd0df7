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

}  // namespace

std::string_view name_of(StepKind kind) { return kStepNames.at(static_cast<std::size_t>(kind)); }
std::string_view name_of(ChoiceKind kind) { return kChoiceNames.at(static_cast<std::size_t>(kind)); }

}  // namespace holdfast::sim
