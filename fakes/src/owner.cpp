#include "holdfast/fakes/owner.hpp"

#include "hex_offset.hpp"

namespace holdfast::fakes {

std::string_view to_string(IncidentKind kind) {
  switch (kind) {
    case IncidentKind::free_slot_written:
      return "free slot written";
    case IncidentKind::red_zone_written:
      return "red zone written";
    case IncidentKind::duplicate_key:
      return "one key twice in a put";
    case IncidentKind::abort_of_read_plan:
      return "put_abort of a read plan";
    case IncidentKind::release_of_put_plan:
      return "release_views of a put plan";
  }
  return "?";
}

std::string to_string(const Incident& incident) {
  std::string text(to_string(incident.kind));
  if (!incident.where.empty()) {
    text += " at " + incident.where + ", first wrong byte " + std::to_string(incident.first_wrong_byte);
  }
  if (!incident.last_key.empty()) text += ", last key " + incident.last_key;
  if (incident.last_plan != 0) text += ", last plan " + std::to_string(incident.last_plan);
  return text;
}

std::vector<std::string> Owner::evictable_keys() const {
  std::vector<std::string> names;
  for_each_stored_key([&](std::string_view name, const KeyView& view) {
    if (view.state == KeyState::committed && view.holders == 0) names.emplace_back(name);
  });
  return names;
}

std::string Owner::label(std::uintptr_t address) const {
  const Place place = place_of(address);
  switch (place.kind) {
    case Place::Kind::plan_blob:
      return "plan" + hex_offset(place.offset);
    case Place::Kind::segment:
      return "seg g" + std::to_string(place.incarnation) + (place.read_side ? " read" : "") + hex_offset(place.offset);
    case Place::Kind::unknown:
      break;
  }
  return "?";
}

}  // namespace holdfast::fakes
