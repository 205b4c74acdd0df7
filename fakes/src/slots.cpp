#include "holdfast/fakes/slots.hpp"

#include <algorithm>
#include <cstring>

#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::fakes {
namespace {

// Above this, giving pages back beats zeroing them, and the next run does not inherit the memory of this one.
constexpr std::uint64_t kPoolDiscardBytes = 64ULL << 20;

std::uint8_t* bytes_at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }

bool all_poison(const std::uint8_t* bytes, std::uint64_t count) {
  return count == 0 || (bytes[0] == kPoison && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

}  // namespace

SlotPool::SlotPool(const DualRegion& region, const SlotOptions& options) : region_(region), options_(options) {
  grants_.resize(options_.segment_bytes / options_.grant_bytes);
}

std::uint64_t SlotPool::slots_per_grant(std::uint64_t slot_bytes) const { return options_.grant_bytes / slot_bytes; }

std::uint64_t SlotPool::checked_bytes(const Slot& slot) const {
  return std::min<std::uint64_t>(slot.value_bytes + kRedZoneBytes, slot_bytes(slot.value_bytes));
}

bool SlotPool::has_room(std::uint64_t count, std::uint64_t value_bytes) const {
  const std::uint64_t bytes = slot_bytes(value_bytes);
  std::uint64_t room = 0;
  for (const SizeClass& size : sizes_) {
    if (size.slot_bytes == bytes) room = size.free_slots + size.untouched_slots;
  }
  for (auto grant = grants_.begin(); room < count && grant != grants_.end(); ++grant) {
    if (grant->used == 0 && grant->slot_bytes != bytes) room += slots_per_grant(bytes);
  }
  return room >= count;
}

SlotPool::SizeClass& SlotPool::size_class(std::uint64_t slot_bytes) {
  for (SizeClass& size : sizes_) {
    if (size.slot_bytes == slot_bytes) return size;
  }
  sizes_.emplace_back().slot_bytes = slot_bytes;
  return sizes_.back();
}

SlotId SlotPool::claim(std::uint64_t value_bytes) {
  SizeClass& size = size_class(slot_bytes(value_bytes));
  if (size.newest == kNone && size.untouched_slots == 0) carve(size);
  SlotId id = size.newest;
  if (id != kNone) {
    unlink_free(size, id);
    check(id, 0, true);
  } else {
    const std::uint32_t grant_index = size.grants_untouched.back();
    Grant& grant = grants_[grant_index];
    if (unused_ids_.empty()) {
      id = static_cast<SlotId>(slots_.size());
      slots_.emplace_back();
    } else {
      id = unused_ids_.back();
      unused_ids_.pop_back();
      slots_[id] = {};
    }
    slots_[id].grant = grant_index;
    slots_[id].offset = grant_index * options_.grant_bytes + grant.slots.size() * size.slot_bytes;
    grant.slots.push_back(id);
    grant.touched_bytes = std::max(grant.touched_bytes, grant.slots.size() * size.slot_bytes);
    --size.untouched_slots;
    if (grant.slots.size() == slots_per_grant(size.slot_bytes)) size.grants_untouched.pop_back();
  }
  Slot& slot = slots_[id];
  slot.free = false;
  slot.value_bytes = static_cast<std::uint32_t>(value_bytes);
  ++grants_[slot.grant].used;
  poison(slot, value_bytes);
  return id;
}

void SlotPool::release(SlotId id) {
  check_red_zone(id);
  Slot& slot = slots_[id];
  --grants_[slot.grant].used;
  poison(slot, 0);
  push_free(size_class(grants_[slot.grant].slot_bytes), id);
}

void SlotPool::check_red_zone(SlotId slot) { check(slot, slots_[slot].value_bytes, false); }

void SlotPool::check_all() {
  for (const Grant& grant : grants_) {
    for (const SlotId slot : grant.slots) {
      const bool free = slots_[slot].free;
      check(slot, free ? 0 : slots_[slot].value_bytes, free);
    }
  }
}

std::uint32_t SlotPool::tag(SlotId slot, std::uint32_t key, std::uint32_t plan) {
  const std::uint32_t before = slots_[slot].last_key;
  slots_[slot].last_key = key;
  slots_[slot].last_plan = plan;
  return before;
}

// Grants never carved come first, then those that are wholly free, each in address order.
void SlotPool::carve(SizeClass& size) {
  std::size_t chosen = grants_.size();
  for (std::size_t at = 0; at < grants_.size(); ++at) {
    const Grant& grant = grants_[at];
    if (grant.slot_bytes == 0) {
      chosen = at;
      break;
    }
    if (grant.used == 0 && chosen == grants_.size()) chosen = at;
  }
  const auto index = static_cast<std::uint32_t>(chosen);
  Grant& grant = grants_[chosen];
  if (grant.slot_bytes != 0) clear_grant(grant, index);
  grant.slot_bytes = size.slot_bytes;
  size.untouched_slots += slots_per_grant(size.slot_bytes);
  size.grants_untouched.push_back(index);
}

void SlotPool::clear_grant(Grant& grant, std::uint32_t index) {
  SizeClass& size = size_class(grant.slot_bytes);
  for (const SlotId id : grant.slots) {
    check(id, 0, true);
    unlink_free(size, id);
    if (slots_[id].last_key != kNone) dropped_keys_.push_back(slots_[id].last_key);
    slots_[id].last_key = kNone;
    unused_ids_.push_back(id);
  }
  size.untouched_slots -= slots_per_grant(grant.slot_bytes) - grant.slots.size();
  std::erase(size.grants_untouched, index);
  grant.slots.clear();
}

void SlotPool::push_free(SizeClass& size, SlotId id) {
  Slot& slot = slots_[id];
  slot.free = true;
  slot.newer = kNone;
  slot.older = size.newest;
  if (size.newest != kNone) slots_[size.newest].newer = id;
  size.newest = id;
  ++size.free_slots;
}

void SlotPool::unlink_free(SizeClass& size, SlotId id) {
  const Slot& slot = slots_[id];
  if (slot.older != kNone) slots_[slot.older].newer = slot.newer;
  if (slot.newer != kNone) {
    slots_[slot.newer].older = slot.older;
  } else {
    size.newest = slot.older;
  }
  --size.free_slots;
}

void SlotPool::check(SlotId id, std::uint64_t from, bool free_slot) {
  if (!options_.overwrite_checks) return;
  const Slot& slot = slots_[id];
  const std::uint8_t* bytes = bytes_at(write_address(id));
  const std::uint64_t to = checked_bytes(slot);
  if (all_poison(bytes + from, to - from)) return;
  const std::uint8_t* wrong = std::find_if(bytes + from, bytes + to, [](std::uint8_t byte) { return byte != kPoison; });
  damages_.push_back(
      {free_slot, slot.offset, static_cast<std::uint64_t>(wrong - bytes), slot.last_key, slot.last_plan});
  poison(slot, from);
}

void SlotPool::poison(const Slot& slot, std::uint64_t from) {
  if (!options_.overwrite_checks) return;
  std::memset(bytes_at(region_.write_base + slot.offset + from), kPoison, checked_bytes(slot) - from);
}

void SlotPool::recycle() {
  for (Grant& grant : grants_) {
    grant.used = 0;
    for (const SlotId slot : grant.slots) {
      poison(slots_[slot], 0);
      if (!slots_[slot].free) push_free(size_class(grant.slot_bytes), slot);
    }
  }
}

void SlotPool::reset(const SlotOptions& options, SegmentMemory& memory) {
  std::uint64_t touched_bytes = 0;
  for (const Grant& grant : grants_) touched_bytes += grant.touched_bytes;
  if (touched_bytes > kPoolDiscardBytes) {
    memory.discard(region_);
  } else {
    for (std::size_t at = 0; at < grants_.size(); ++at) {
      std::memset(bytes_at(region_.write_base + at * options_.grant_bytes), 0, grants_[at].touched_bytes);
    }
  }
  options_ = options;
  for (Grant& grant : grants_) {
    grant.slot_bytes = grant.touched_bytes = 0;
    grant.used = 0;
    grant.slots.clear();
  }
  grants_.resize(options_.segment_bytes / options_.grant_bytes);
  slots_.clear();
  unused_ids_.clear();
  sizes_.clear();
  damages_.clear();
  dropped_keys_.clear();
}

}  // namespace holdfast::fakes
