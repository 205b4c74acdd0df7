// The life of a slot: reserved, readable, routed, free.
#include "fluxon_owner_state.hpp"

namespace holdfast::fakes {

std::uint32_t FakeOwner::State::reserve_value(std::uint32_t key, std::uint64_t value_bytes,
                                              std::uint64_t plan_number_in) {
  const SlotId slot = pool->claim(value_bytes);
  if (!pool->damages().empty() || !pool->dropped_keys().empty()) collect_damage();
  keys.refer(key);
  const std::uint32_t key_before = pool->tag(slot, key, static_cast<std::uint32_t>(plan_number_in));
  if (key_before != kNone) keys.unrefer(key_before);
  const std::uint32_t id = values.take();
  Value& value = values[id];
  value.slot = slot;
  value.key = key;
  value.holders = 0;
  value.value_bytes = static_cast<std::uint32_t>(value_bytes);
  value.state = ValueState::prepared;
  value.damaged = false;
  keys[key].prepared = id;
  ++keys[key].writing;
  ++prepared_slots;
  held_bytes += slot_bytes(value_bytes);
  return id;
}

void FakeOwner::State::free_value(std::uint32_t id) {
  Value& value = values[id];
  pool->release(value.slot);
  if (!pool->damages().empty()) collect_damage();
  held_bytes -= slot_bytes(value.value_bytes);
  value.state = ValueState::free;
  ++value.use;
  values.give(id);
}

void FakeOwner::State::unreserve_value(std::uint32_t id, bool submitted) {
  KeyTable::Key& key = keys[values[id].key];
  --key.writing;
  if (submitted) --key.committing;
  if (key.prepared == id) key.prepared = kNone;
  --prepared_slots;
  free_value(id);
}

void FakeOwner::State::store_value(std::uint32_t id, bool submitted) {
  Value& value = values[id];
  KeyTable::Key& key = keys[value.key];
  --key.writing;
  if (submitted) --key.committing;
  if (key.prepared == id) key.prepared = kNone;
  --prepared_slots;
  if (key.stored != kNone) drop_route(key.stored);
  key.stored = id;
  value.state = ValueState::local_visible;
  stored.append(values, id);
  ++stored_keys;
  stored_bytes += slot_bytes(value.value_bytes);
}

void FakeOwner::State::drop_route(std::uint32_t id) {
  Value& value = values[id];
  keys[value.key].stored = kNone;
  stored.remove(values, id);
  --stored_keys;
  stored_bytes -= slot_bytes(value.value_bytes);
  value.state = ValueState::removed;
  if (value.holders == 0) free_value(id);
}

void FakeOwner::State::route_value(ValueRef ref) {
  Value& value = values[ref.value];
  if (value.use == ref.use && value.state == ValueState::local_visible) value.state = ValueState::committed;
}

void FakeOwner::State::pin(std::uint32_t id) {
  ++values[id].holders;
  ++pins;
}

void FakeOwner::State::unpin(std::uint32_t id) {
  --pins;
  if (--values[id].holders == 0 && values[id].state == ValueState::removed) free_value(id);
}

void FakeOwner::State::unpin_all(std::vector<std::uint32_t>& ids) {
  for (const std::uint32_t id : ids) unpin(id);
  ids.clear();
}

KeyView FakeOwner::State::view(std::uint32_t id) const {
  const Value& value = values[id];
  KeyView view;
  view.state = value.state == ValueState::prepared        ? KeyState::prepared
               : value.state == ValueState::local_visible ? KeyState::local_visible
                                                          : KeyState::committed;
  view.generation = generation;
  view.write_address = pool->write_address(value.slot);
  view.read_address = pool->read_address(value.slot);
  view.value_bytes = value.value_bytes;
  view.holders = value.holders;
  view.damaged = value.damaged;
  return view;
}

}  // namespace holdfast::fakes
