#include "holdfast/sim/marks.hpp"

namespace holdfast::sim {
namespace {

struct MarkEntry {
  std::string_view name;
  bool rare;
};

constexpr std::array<MarkEntry, kMarkCount> kMarks{{
#define HOLDFAST_MARK_ENTRY(id, name, rare) {name, rare},
    HOLDFAST_MARKS(HOLDFAST_MARK_ENTRY)
#undef HOLDFAST_MARK_ENTRY
}};

}  // namespace

std::string_view name_of(Mark mark) { return kMarks.at(static_cast<std::size_t>(mark)).name; }
bool is_rare(Mark mark) { return kMarks.at(static_cast<std::size_t>(mark)).rare; }

}  // namespace holdfast::sim
