// The forest as a file: topology, the keys of ready values, and their lengths. What it says of readiness is a hint.
//
// A snapshot is lines of canonical JSON: a header (schema, version, counts, length and XXH3 checksum of the rest), then
// one line a world, each followed by one line a node, parents first. A value's locator follows from its node's key.
// Nodes with nothing ready in their subtree are left out. A checksum of values is kept where one is known, and where
// the layers of a chunk have scales too, that is said. A file has version 2 when it says any of this, else version 1,
// which earlier programs read too.
//
// Taking a snapshot and restoring one need the forest's lock; encoding, decoding and files need none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/file_replace.hpp"
#include "holdfast/core/file_system.hpp"
#include "holdfast/core/trie.hpp"

namespace holdfast {

inline constexpr std::string_view kSnapshotSchema = "holdfast-snapshot";
inline constexpr std::uint32_t kSnapshotVersion = 1;
inline constexpr std::uint32_t kSnapshotSecondVersion = 2;

// Files beyond these are refused.
struct SnapshotLimits {
  std::uint64_t bytes_max = 4ULL << 30;
  std::uint64_t nodes_max = 10'000'000;
  std::uint64_t line_bytes_max = 1 << 20;
};

struct SnapshotNode {
  NodeKey key;
  std::int64_t parent = -1;  // index among its world's nodes, always smaller than its own; -1: the virtual root
  std::string action;
  std::uint64_t last_access = 0;
  bool blob_ready = false;
  BlobRecord blob;
  bool skeleton_ready = false;
  SkeletonRecord skeleton;
};

struct SnapshotWorld {
  NodeKey root;
  std::uint32_t sink_chunks = 0;
  std::vector<SnapshotNode> nodes;
};

struct Snapshot {
  std::vector<SnapshotWorld> worlds;
};

// A copy of what is ready and of the way to it, so that whoever encodes it keeps nobody from the forest. Says nothing
// of when a value was committed.
[[nodiscard]] Snapshot take_snapshot(const Forest& forest);

[[nodiscard]] std::string encode_snapshot(const Snapshot& snapshot);

// BadSnapshot, with line, place and reason, for whatever encode_snapshot could not have written.
[[nodiscard]] Result<Snapshot> decode_snapshot(std::string_view bytes, const SnapshotLimits& limits = {});

// Adds what the snapshot knows to the forest: ready flags not confirmed, the order of eviction as it was. What the
// forest already has ready stays as it is. Values count as committed at `now_ns`: when they really were, on a clock
// that is gone, nobody knows.
void restore_snapshot(const Snapshot& snapshot, Nanos now_ns, Forest& forest);

[[nodiscard]] std::string temporary_path(const std::string& path);

// Replaces the file in one step; see replace_file.
template <FileSystem F>
[[nodiscard]] Status write_snapshot(F& files, const std::string& path, const std::string& bytes) {
  return replace_file(files, {.call = "write_snapshot", .path = path, .temporary = temporary_path(path)}, bytes);
}

// A missing file is an empty snapshot.
template <FileSystem F>
[[nodiscard]] Result<Snapshot> read_snapshot(F& files, const std::string& path, const SnapshotLimits& limits = {}) {
  Result<std::string> bytes = files.read(path, limits.bytes_max);
  if (!bytes) {
    if (is_missing_file(bytes.error())) return Snapshot{};
    return file_failed("read_snapshot", path, std::move(bytes.error()));
  }
  Result<Snapshot> snapshot = decode_snapshot(*bytes, limits);
  if (!snapshot) snapshot.error().detail = path + ": " + snapshot.error().detail;
  return snapshot;
}

}  // namespace holdfast
