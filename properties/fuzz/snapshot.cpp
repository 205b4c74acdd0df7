#include "holdfast/core/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>

#include "readers.hpp"

namespace holdfast::fuzz {
namespace {

constexpr std::string_view kUsed = "\"used\":";

std::string restored_and_written(const Snapshot& snapshot) {
  Forest forest({});
  restore_snapshot(snapshot, 0, forest);
  return encode_snapshot(take_snapshot(forest));
}

// Without the header, whose length and checksum follow from the rest, and without the numbers of the accesses.
std::string content_of(std::string_view bytes) {
  std::string content(bytes.substr(bytes.find('\n') + 1));
  std::size_t at = 0;
  while ((at = content.find(kUsed, at)) != std::string::npos) {
    at += kUsed.size();
    content.erase(at, content.find_first_not_of("0123456789", at) - at);
  }
  return content;
}

// The blobs in the order of their accesses.
std::vector<NodeKey> access_order(const Snapshot& snapshot) {
  std::vector<std::pair<std::uint64_t, NodeKey>> blobs;
  for (const SnapshotWorld& world : snapshot.worlds) {
    for (const SnapshotNode& node : world.nodes) {
      if (node.blob_ready) blobs.emplace_back(node.last_access, node.key);
    }
  }
  std::ranges::stable_sort(blobs, {}, [](const auto& blob) { return blob.first; });
  std::vector<NodeKey> keys;
  for (const auto& [used, key] : blobs) keys.push_back(key);
  return keys;
}

}  // namespace

Verdict read_as_snapshot(std::string_view bytes) {
  const Result<Snapshot> snapshot = decode_snapshot(bytes);
  if (!snapshot) {
    if (!snapshot.error().is(Errc::bad_snapshot)) return {false, "refused as " + to_string(snapshot.error())};
    if (!snapshot.error().detail.starts_with("line ")) return {false, "a refusal that does not name the line"};
    return {};
  }
  const std::string written = restored_and_written(*snapshot);
  if (content_of(written) != content_of(bytes)) return {true, "accepted what is never written; we write\n" + written};
  const Result<Snapshot> again = decode_snapshot(written);
  if (!again) return {true, "what was written is refused: " + to_string(again.error())};
  if (access_order(*again) != access_order(*snapshot)) return {true, "the order of the accesses changed"};
  if (restored_and_written(*again) != written) return {true, "restored once more, another snapshot is written"};
  return {true, {}};
}

}  // namespace holdfast::fuzz
