// The input is u64 words in the machine's order, a missing one 0, for a request and its answer:
//   flags (see Flag), number of segments % 4, number of values % 16,
//   of each segment write_ptr, read_ptr, len; of each value its length; then the words of the table.
// The lengths are the caller's own, and within bounds; all else is the owner's, and may be anything.
#include "holdfast/core/plan_blob.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "holdfast/core/check.hpp"
#include "readers.hpp"

namespace holdfast::fuzz {
namespace {

constexpr std::size_t kPageBytes = 65536;  // no page is larger where this runs
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

enum Flag : std::uint64_t { kReadSide = 1, kNullTable = 2, kMisaligned = 4 };

class Words {
 public:
  explicit Words(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t next() {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(bytes_.size(), kWordBytes);
    std::memcpy(&word, bytes_.data(), taken);
    bytes_.remove_prefix(taken);
    return word;
  }
  [[nodiscard]] std::size_t left() const { return bytes_.size() / kWordBytes; }

 private:
  std::string_view bytes_;
};

// Memory that ends at a page that nobody may touch, and begins behind another.
class Guarded {
 public:
  Guarded() : base_(::mmap(nullptr, 3 * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    check(base_ != MAP_FAILED && ::mprotect(middle(), kPageBytes, PROT_READ | PROT_WRITE) == 0, "pages can be mapped");
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, 3 * kPageBytes); }

  [[nodiscard]] std::uintptr_t end() const { return reinterpret_cast<std::uintptr_t>(middle()) + kPageBytes; }
  // A copy of the words that ends where the memory does.
  [[nodiscard]] std::uintptr_t place(const std::vector<std::uint64_t>& words) const {
    const std::uintptr_t at = end() - words.size() * kWordBytes;
    if (!words.empty()) std::memcpy(reinterpret_cast<void*>(at), words.data(), words.size() * kWordBytes);
    return at;
  }

 private:
  [[nodiscard]] char* middle() const { return static_cast<char*>(base_) + kPageBytes; }

  void* base_;
};

struct Case {
  PlanSide side = PlanSide::write;
  bool null_table = false;
  bool misaligned = false;
  std::vector<Segment> live;
  std::vector<std::uint64_t> value_bytes;
  std::vector<std::uint64_t> table;
};

Case case_of(std::string_view bytes) {
  Words words(bytes);
  Case given;
  const std::uint64_t flags = words.next();
  given.side = (flags & kReadSide) != 0 ? PlanSide::read : PlanSide::write;
  given.null_table = (flags & kNullTable) != 0;
  given.misaligned = (flags & kMisaligned) != 0;
  given.live.resize(words.next() % 4);
  given.value_bytes.resize(words.next() % 16);
  for (Segment& segment : given.live) {
    segment.write_ptr = words.next();
    segment.read_ptr = words.next();
    segment.len = words.next();
  }
  for (std::uint64_t& length : given.value_bytes) length = words.next() % (kMaxValueBytes + 1);
  // A table has as many words as its own count says; one of another kind has none but the first.
  given.table.push_back(words.next());
  if (given.table[0] != kPlanMagic) return given;
  const std::uint64_t count = words.next();
  given.table.push_back(count);
  // Where the input ends early, the table of a count that was asked for is whole all the same.
  const bool whole = count == given.value_bytes.size() || count <= words.left();
  for (std::uint64_t i = 0; whole && i < count; ++i) given.table.push_back(words.next());
  return given;
}

// Wide enough for any sum of two words.
__extension__ using Wide = unsigned __int128;

struct Range {
  Wide begin = 0;
  Wide end = 0;

  [[nodiscard]] bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
  [[nodiscard]] bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

// In the first segment that holds the value: where segments overlap, the contract does not say.
bool begins_a_slot(const Case& given, const Range& value) {
  for (const Segment& segment : given.live) {
    const Wide base = given.side == PlanSide::write ? segment.write_ptr : segment.read_ptr;
    if (Range{base, base + segment.len}.holds(value)) return (value.begin - base) % kSlotAlignment == 0;
  }
  return false;
}

bool should_accept(const Case& given) {
  if (given.null_table || given.misaligned || given.table.size() < 2) return false;
  if (given.table[1] != given.value_bytes.size()) return false;
  std::vector<Range> slots;
  for (std::size_t i = 0; i < given.value_bytes.size(); ++i) {
    const Wide address = given.table[2 + i];
    if (address == 0 || !begins_a_slot(given, {address, address + given.value_bytes[i]})) return false;
    const Range slot{address, address + slot_bytes(given.value_bytes[i])};
    if (std::ranges::any_of(slots, [&](const Range& other) { return other.meets(slot); })) return false;
    slots.push_back(slot);
  }
  return true;
}

}  // namespace

Verdict read_as_plan_blob(std::string_view bytes) {
  static const Guarded memory;
  const Case given = case_of(bytes);
  std::uintptr_t at = memory.place(given.table);
  // Each of these may not be read at all: the second one lies where nothing may be touched.
  if (given.null_table) at = 0;
  if (given.misaligned) at = memory.end() + 1 + bytes.size() % (kWordBytes - 1);
  const Result<std::vector<std::uintptr_t>> decoded =
      decode_plan_blob({{at}, given.side, given.value_bytes, given.live});
  const bool wanted = should_accept(given);
  if (decoded.has_value() != wanted) {
    return {!wanted, wanted ? "a good table is refused: " + to_string(decoded.error()) : "a bad table is accepted"};
  }
  if (!decoded) {
    return {false, decoded.error().is(Errc::bad_plan_blob) ? "" : "refused as " + to_string(decoded.error())};
  }
  if (!std::ranges::equal(*decoded, std::span(given.table).subspan(2)))
    return {true, "other addresses than the table's"};
  return {true, {}};
}

}  // namespace holdfast::fuzz
