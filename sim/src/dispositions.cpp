#include "holdfast/sim/dispositions.hpp"

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {
namespace {

constexpr int kDepthMax = 64;  // of a chain; deeper ones are cut

// File calls are told without the prefix that keeps them apart in traces.
std::string_view told_name(Call call) {
  constexpr std::string_view kFile = "file_";
  const std::string_view name = name_of(call);
  return name.starts_with(kFile) ? name.substr(kFile.size()) : name;
}

bool absorbed(const FiredFault& fault, Absorptions& absorptions) {
  const auto count_down = [](std::uint64_t& counter) {
    if (counter == 0) return false;
    --counter;
    return true;
  };
  const auto cuda_code = static_cast<CudaErrc>(fault.code);
  const auto fluxon_code = static_cast<FluxonErrc>(fault.code);
  switch (fault.point.call) {
    case Call::host_register:
      // Proven to be whole, it is as good as the store's own; that it was is checked where the range is used.
      if (cuda_code == CudaErrc::host_memory_already_registered) return true;
      if (cuda_code == CudaErrc::invalid_value || cuda_code == CudaErrc::not_supported) {
        if (count_down(absorptions.read_only_fallbacks)) return true;
      }
      return count_down(absorptions.translated_mappings);
    case Call::local_fast_put_start:
      if ((fluxon_code == FluxonErrc::key_already_exists || fluxon_code == FluxonErrc::key_being_written) &&
          absorptions.put_not_published) {
        return true;
      }
      break;
    case Call::remove:
      // After the settle bound: absent. Before it, the key waits, and answers for itself later.
      if (fluxon_code == FluxonErrc::key_not_found) return true;
      break;
    default:
      break;
  }
  return false;
}

}  // namespace

void ToldErrors::add(const Error& error) {
  // Chains are shallow; one deeper than the bound is somebody's loop.
  std::vector<std::pair<const Error*, int>> open{{&error, 0}};
  while (!open.empty()) {
    const auto [at, depth] = open.back();
    open.pop_back();
    entries_.push_back({at->origin, at->code, at->call, false});
    if (depth >= kDepthMax) continue;
    for (const Error& cause : at->causes) open.emplace_back(&cause, depth + 1);
    for (const Error& beside : at->suppressed) open.emplace_back(&beside, depth + 1);
  }
}

void ToldErrors::add(std::span<const Error> errors) {
  for (const Error& error : errors) add(error);
}

bool ToldErrors::take(const FiredFault& fault) {
  for (Entry& entry : entries_) {
    if (entry.taken || entry.origin != fault.origin || entry.code != fault.code) continue;
    // A per-key code comes out of a table and not from a call.
    const bool named = fault.told_as.empty()
                           ? entry.call == told_name(fault.point.call) || entry.call == name_of(fault.point.call)
                           : entry.call == fault.told_as;
    if (fault.origin != Origin::fluxon_key && !named) continue;
    entry.taken = true;
    return true;
  }
  return false;
}

std::string ToldErrors::to_string() const {
  std::string text;
  for (const Entry& entry : entries_) {
    if (!text.empty()) text += ", ";
    text += entry.call + " " + std::to_string(entry.code) + " (" + std::string(holdfast::to_string(entry.origin)) + ")";
  }
  return text.empty() ? "nothing" : text;
}

bool needs_disposition(const FiredFault& fault) {
  switch (fault.point.kind) {
    case FaultKind::before:
    case FaultKind::lost:
    case FaultKind::part:
    case FaultKind::lie:
      return fault.code != 0;
    case FaultKind::late:
    case FaultKind::gone:
    case FaultKind::evict:
    case FaultKind::time:
    case FaultKind::death:
      break;
  }
  return false;
}

std::vector<FiredFault> untold(std::span<const FiredFault> faults, ToldErrors& told, Absorptions& absorptions) {
  // Told ones first: an absorption must not be spent on a fault that was told of.
  std::vector<const FiredFault*> left;
  for (const FiredFault& fault : faults) {
    if (needs_disposition(fault) && !told.take(fault)) left.push_back(&fault);
  }
  std::vector<FiredFault> without;
  for (const FiredFault* fault : left) {
    if (!absorbed(*fault, absorptions)) without.push_back(*fault);
  }
  return without;
}

std::string describe(const FiredFault& fault) {
  std::string text = std::string(name_of(fault.point.kind)) + " " + std::string(name_of(fault.point.call)) + " " +
                     std::to_string(fault.point.nth) + " of step " + std::to_string(fault.point.step) + " (" +
                     std::to_string(fault.code) + ")";
  if (!fault.subject.empty()) text += ", " + fault.subject;
  return text;
}

}  // namespace holdfast::sim
