#include "key_table.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

namespace holdfast::fakes {
namespace {

constexpr std::size_t kFirstCells = 1024;

std::uint32_t hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(XXH3_64bits(name.data(), name.size()));
}

}  // namespace

// Where `name` is, or where it would be put.
std::size_t KeyTable::cell_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = cells_.size() - 1;
  std::size_t at = hash & mask;
  while (cells_[at].id != kNone && !(cells_[at].hash == hash && keys_[cells_[at].id].name == name))
    at = (at + 1) & mask;
  return at;
}

std::uint32_t KeyTable::find(std::string_view name) const { return cells_[cell_of(name, hash_of(name))].id; }

std::uint32_t KeyTable::refer(std::string_view name) {
  const std::uint32_t hash = hash_of(name);
  std::size_t at = cell_of(name, hash);
  if (cells_[at].id == kNone) {
    if (2 * (used_ + 1) > cells_.size()) {
      grow();
      at = cell_of(name, hash);
    }
    const std::uint32_t id = keys_.take();
    Key& key = keys_[id];
    key.name.assign(name);
    key.hash = hash;
    key.references = key.writing = key.committing = 0;
    key.stored = key.prepared = kNone;
    key.batch = 0;
    cells_[at] = {hash, id};
    ++used_;
  }
  ++keys_[cells_[at].id].references;
  return cells_[at].id;
}

void KeyTable::unrefer(std::uint32_t id) {
  Key& key = keys_[id];
  if (--key.references > 0) return;
  const std::size_t mask = cells_.size() - 1;
  std::size_t hole = cell_of(key.name, key.hash);
  // Close the gap, so that probing never meets a hole before its key.
  for (std::size_t at = (hole + 1) & mask; cells_[at].id != kNone; at = (at + 1) & mask) {
    const std::size_t home = cells_[at].hash & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      cells_[hole] = cells_[at];
      hole = at;
    }
  }
  cells_[hole] = {};
  keys_.give(id);
  --used_;
}

void KeyTable::grow() {
  std::vector<Cell> before(2 * cells_.size());
  std::swap(before, cells_);
  const std::size_t mask = cells_.size() - 1;
  for (const Cell& cell : before) {
    if (cell.id == kNone) continue;
    std::size_t at = cell.hash & mask;
    while (cells_[at].id != kNone) at = (at + 1) & mask;
    cells_[at] = cell;
  }
}

void KeyTable::clear() {
  keys_.clear();
  cells_.assign(kFirstCells, Cell{});
  used_ = 0;
}

}  // namespace holdfast::fakes
