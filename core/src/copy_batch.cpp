#include "holdfast/core/copy_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace holdfast {
namespace {

Error invalid(std::string_view call, std::string detail) {
  return make_error(Errc::invalid_argument, call, std::move(detail));
}

}  // namespace

Status check_tensors(std::span<const DeviceTensor> tensors) {
  constexpr std::string_view kCall = "check_tensors";
  if (tensors.empty()) return invalid(kCall, "no tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const DeviceTensor& tensor = tensors[i];
    if (tensor.data == 0 || tensor.bytes == 0) return invalid(kCall, fmt::format("tensor {} is empty", i));
    if (!tensor.contiguous) return invalid(kCall, fmt::format("tensor {} is not contiguous", i));
    if (tensor.data + tensor.bytes < tensor.data) return invalid(kCall, fmt::format("tensor {} overflows", i));
    if (tensor.device != tensors.front().device) {
      return invalid(kCall, fmt::format("tensor {} is on device {}, tensor 0 on device {}", i, tensor.device,
                                        tensors.front().device));
    }
  }
  return {};
}

void CopyBatch::reserve(std::size_t copies) {
  device_.reserve(copies);
  host_.reserve(copies);
  copies_.reserve(copies);
}

void CopyBatch::add(const DeviceTensor& tensor, std::uint64_t offset, std::uintptr_t host, std::uint64_t bytes) {
  device_.push_back({tensor, offset});
  host_.push_back({host, bytes});
}

std::uint64_t CopyBatch::bytes() const {
  return std::accumulate(host_.begin(), host_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const HostRange& range) { return sum + range.bytes; });
}

Status CopyBatch::check_device_side() const {
  if (device_.empty()) return invalid("validate", "a batch without copies");
  for (std::size_t i = 0; i < device_.size(); ++i) {
    const std::uint64_t bytes = host_[i].bytes;
    const DeviceSide& side = device_[i];
    if (bytes == 0) return invalid("validate", fmt::format("copy {} is empty", i));
    if (side.offset > side.tensor.bytes || bytes > side.tensor.bytes - side.offset) {
      return invalid("validate", fmt::format("copy {} reaches past its tensor: offset {} and {} bytes of {}", i,
                                             side.offset, bytes, side.tensor.bytes));
    }
  }
  return {};
}

Status CopyBatch::build_copies(std::vector<HostRange>& written) {
  std::vector<Copy> copies;
  copies.reserve(device_.size());
  for (std::size_t i = 0; i < device_.size(); ++i) {
    const std::uintptr_t device = device_[i].tensor.data + device_[i].offset;
    const std::uintptr_t host = host_[i].base;
    const bool to_host = direction_ == CopyDirection::device_to_host;
    copies.push_back({to_host ? host : device, to_host ? device : host, host_[i].bytes});
  }
  // The runtime would take overlapping destinations without a word, and write either.
  std::vector<HostRange> destinations = written;
  destinations.reserve(written.size() + copies.size());
  for (const Copy& copy : copies) destinations.push_back({copy.dst, copy.bytes});
  const auto by_base = [](const HostRange& a, const HostRange& b) { return a.base < b.base; };
  if (!std::is_sorted(destinations.begin(), destinations.end(), by_base)) {
    std::sort(destinations.begin(), destinations.end(), by_base);
  }
  for (std::size_t i = 1; i < destinations.size(); ++i) {
    if (overlap(destinations[i - 1], destinations[i])) {
      return invalid("validate", "two copies write the same bytes");
    }
  }
  copies_ = std::move(copies);
  written = std::move(destinations);
  return {};
}

}  // namespace holdfast
