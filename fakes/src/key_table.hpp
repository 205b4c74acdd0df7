// The names of keys, each once, with what the owner knows by name. Nothing visible depends on the order of its hashes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/fakes/slots.hpp"
#include "slab.hpp"

namespace holdfast::fakes {

class KeyTable {
 public:
  struct Key {
    std::string name;
    std::uint32_t hash = 0;
    std::uint32_t references = 0;
    std::uint32_t stored = kNone;    // the value that get calls find
    std::uint32_t prepared = kNone;  // the value last reserved, while it is
    std::uint32_t writing = 0;       // values reserved or undecided
    std::uint32_t committing = 0;    // of these, how many were submitted to a commit
    std::uint64_t batch = 0;         // the last put batch that named it
  };

  KeyTable() { clear(); }
  [[nodiscard]] std::uint32_t find(std::string_view name) const;
  // Finds or adds it, and counts one reference.
  std::uint32_t refer(std::string_view name);
  void refer(std::uint32_t id) { ++keys_[id].references; }
  // The name is forgotten with its last reference.
  void unrefer(std::uint32_t id);
  [[nodiscard]] Key& operator[](std::uint32_t id) { return keys_[id]; }
  [[nodiscard]] const Key& operator[](std::uint32_t id) const { return keys_[id]; }
  void clear();

 private:
  struct Cell {
    std::uint32_t hash = 0;
    std::uint32_t id = kNone;
  };
  [[nodiscard]] std::size_t cell_of(std::string_view name, std::uint32_t hash) const;
  void grow();

  Slab<Key> keys_;
  std::vector<Cell> cells_;  // a power of two, linear probing, at most half full
  std::size_t used_ = 0;
};

}  // namespace holdfast::fakes
