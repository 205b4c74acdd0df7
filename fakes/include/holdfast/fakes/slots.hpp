// The memory of one segment mapping, carved into slots. A slot that was used and let go is poisoned; the poison, and a
// red zone behind every value, are checked, so that a copy that came too late or went too far is seen.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "holdfast/fakes/segment_memory.hpp"

namespace holdfast::fakes {

inline constexpr std::uint64_t kRedZoneBytes = 64;  // less where the slot ends sooner
inline constexpr std::uint8_t kPoison = 0xdb;

// Names a slot within its pool. Which slot it is never depends on where the arena lies.
using SlotId = std::uint32_t;
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

struct SlotOptions {
  std::uint64_t segment_bytes = 0;
  std::uint64_t grant_bytes = 0;  // a multiple of kSlotAlignment; grants that do not fit whole are not used
  bool overwrite_checks = true;
};

// A byte that nobody had a right to write.
struct Damage {
  bool free_slot = true;               // else the red zone of one in use
  std::uint64_t slot_offset = 0;       // in the segment
  std::uint64_t first_wrong_byte = 0;  // from the slot's start
  std::uint32_t last_key = kNone;      // the tags of whoever held the slot last
  std::uint32_t last_plan = 0;
};

// Slots of one size come from grants of that size; a grant that is wholly free can be carved anew for another size. The
// slot that was let go last is handed out first. Memory is touched only as far as it is handed out.
class SlotPool {
 public:
  // `region` is zeroed and at least `segment_bytes` long.
  SlotPool(const DualRegion& region, const SlotOptions& options);

  // True when `count` slots for values of `value_bytes` (at most a grant) could be claimed now.
  [[nodiscard]] bool has_room(std::uint64_t count, std::uint64_t value_bytes) const;
  // Takes one slot; only after `has_room` said that there is one. It keeps its old tags.
  SlotId claim(std::uint64_t value_bytes);
  // Makes its bytes poison and gives it back.
  void release(SlotId slot);
  // Reports a red zone that was written to, and mends it.
  void check_red_zone(SlotId slot);
  // Looks at every slot that was ever handed out, and mends what it reports.
  void check_all();

  // Tags are the holder's business, and stay when the slot is let go. Gives back the key tag it replaces.
  std::uint32_t tag(SlotId slot, std::uint32_t key, std::uint32_t plan);

  [[nodiscard]] std::uintptr_t write_address(SlotId slot) const { return region_.write_base + slots_[slot].offset; }
  [[nodiscard]] std::uintptr_t read_address(SlotId slot) const { return region_.read_base + slots_[slot].offset; }
  [[nodiscard]] const DualRegion& region() const { return region_; }
  [[nodiscard]] std::uint64_t segment_bytes() const { return options_.segment_bytes; }

  // Both lists are for the caller to empty: damage found, and key tags of slots that ceased to exist.
  [[nodiscard]] std::vector<Damage>& damages() { return damages_; }
  [[nodiscard]] std::vector<std::uint32_t>& dropped_keys() { return dropped_keys_; }

  // Another generation takes these pages over: every slot is free and poisoned, whatever was written here meanwhile.
  void recycle();
  // Another run, as if new; `memory` is where the region comes from.
  void reset(const SlotOptions& options, SegmentMemory& memory);

 private:
  struct Slot {
    std::uint64_t offset = 0;
    std::uint32_t grant = 0;
    std::uint32_t value_bytes = 0;  // of the value it is or was last claimed for
    std::uint32_t newer = kNone;    // free slots of one size form a stack
    std::uint32_t older = kNone;
    std::uint32_t last_key = kNone;
    std::uint32_t last_plan = 0;
    bool free = false;
  };
  struct Grant {
    std::uint64_t slot_bytes = 0;     // 0: not carved
    std::uint64_t touched_bytes = 0;  // from its start, ever
    std::uint32_t used = 0;
    std::vector<SlotId> slots;  // those handed out at least once, in address order
  };
  struct SizeClass {
    std::uint64_t slot_bytes = 0;
    std::uint64_t free_slots = 0;       // on the stack
    std::uint64_t untouched_slots = 0;  // carved, never handed out
    SlotId newest = kNone;
    std::vector<std::uint32_t> grants_untouched;  // grants that have such slots; the last one's go first
  };

  [[nodiscard]] std::uint64_t slots_per_grant(std::uint64_t slot_bytes) const;
  [[nodiscard]] std::uint64_t checked_bytes(const Slot& slot) const;
  SizeClass& size_class(std::uint64_t slot_bytes);
  void carve(SizeClass& size);
  void clear_grant(Grant& grant, std::uint32_t index);
  void push_free(SizeClass& size, SlotId slot);
  void unlink_free(SizeClass& size, SlotId slot);
  void check(SlotId slot, std::uint64_t from, bool free_slot);
  void poison(const Slot& slot, std::uint64_t from);

  DualRegion region_;
  SlotOptions options_;
  std::vector<Slot> slots_;
  std::vector<SlotId> unused_ids_;
  std::vector<Grant> grants_;
  std::vector<SizeClass> sizes_;
  std::vector<Damage> damages_;
  std::vector<std::uint32_t> dropped_keys_;
};

}  // namespace holdfast::fakes
