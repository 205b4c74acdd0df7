// Memory for plan blobs: what was freed is scribbled over and is the first to be used again, so that a stale plan
// pointer meets another plan or nonsense, never the old table.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/fakes/arena.hpp"

namespace holdfast::fakes {

class BlobPool {
 public:
  explicit BlobPool(Arena& arena);

  // 8-byte aligned memory for `words`, marked with `mark`; 0 when there is none left.
  std::uintptr_t take(std::uint64_t words, std::uint32_t mark);
  // Scribbles over it and frees it. It keeps `mark` until it is used again.
  void give(std::uintptr_t address, std::uint32_t mark);

  // The mark of a blob that starts at `address`; kNone when none does.
  [[nodiscard]] std::uint32_t mark(std::uintptr_t address) const;
  void set_mark(std::uintptr_t address, std::uint32_t mark);
  void replace_marks(std::uint32_t from, std::uint32_t to);

  [[nodiscard]] bool contains(std::uintptr_t address) const;
  [[nodiscard]] std::uint64_t offset(std::uintptr_t address) const { return address - base_; }
  void reset();

 private:
  struct Block {
    std::uint32_t mark = 0;
    std::uint32_t size = 0;  // which power of two
  };
  [[nodiscard]] std::size_t block_of(std::uintptr_t address) const;

  Arena& arena_;
  std::uintptr_t base_ = 0;
  std::vector<Block> blocks_;                              // one for every smallest block in use or used
  std::vector<std::vector<std::uintptr_t>> free_by_size_;  // stacks
};

}  // namespace holdfast::fakes
