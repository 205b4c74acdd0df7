#include "blob_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "holdfast/fakes/slots.hpp"

namespace holdfast::fakes {
namespace {

// Batches of up to 30 keys share one size, so that their blobs take each other's place.
constexpr std::uint64_t kSmallestBytes = 256;
constexpr std::uint64_t kPoolBytes = 256ULL << 20;
constexpr std::uint64_t kDiscardBytes = 4ULL << 20;
constexpr int kScribble = 0xdd;
constexpr std::size_t kNoBlock = ~std::size_t{0};

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

BlobPool::BlobPool(Arena& arena) : arena_(arena), base_(arena.map_private(kPoolBytes)) { free_by_size_.resize(64); }

std::uintptr_t BlobPool::take(std::uint64_t words, std::uint32_t mark) {
  const std::uint64_t bytes = std::bit_ceil(std::max<std::uint64_t>(words * 8, kSmallestBytes));
  const auto size = static_cast<std::uint32_t>(std::countr_zero(bytes / kSmallestBytes));
  std::uintptr_t address = 0;
  if (!free_by_size_[size].empty()) {
    address = free_by_size_[size].back();
    free_by_size_[size].pop_back();
  } else {
    if (blocks_.size() * kSmallestBytes + bytes > kPoolBytes) return 0;
    address = base_ + blocks_.size() * kSmallestBytes;
    blocks_.resize(blocks_.size() + bytes / kSmallestBytes, Block{kNone, 0});
  }
  blocks_[block_of(address)] = {mark, size};
  return address;
}

void BlobPool::give(std::uintptr_t address, std::uint32_t mark) {
  Block& block = blocks_[block_of(address)];
  block.mark = mark;
  std::memset(pointer(address), kScribble, kSmallestBytes << block.size);
  free_by_size_[block.size].push_back(address);
}

std::size_t BlobPool::block_of(std::uintptr_t address) const {
  if (address < base_ || (address - base_) % kSmallestBytes != 0) return kNoBlock;
  const std::size_t block = (address - base_) / kSmallestBytes;
  return block < blocks_.size() ? block : kNoBlock;
}

std::uint32_t BlobPool::mark(std::uintptr_t address) const {
  const std::size_t block = block_of(address);
  return block == kNoBlock ? kNone : blocks_[block].mark;
}

void BlobPool::set_mark(std::uintptr_t address, std::uint32_t mark) { blocks_[block_of(address)].mark = mark; }

void BlobPool::replace_marks(std::uint32_t from, std::uint32_t to) {
  for (Block& block : blocks_) {
    if (block.mark == from) block.mark = to;
  }
}

bool BlobPool::contains(std::uintptr_t address) const { return address >= base_ && address < base_ + kPoolBytes; }

void BlobPool::reset() {
  const std::uint64_t used_bytes = blocks_.size() * kSmallestBytes;
  if (used_bytes > kDiscardBytes) {
    arena_.discard(base_, kPoolBytes);
  } else {
    std::memset(pointer(base_), 0, used_bytes);
  }
  blocks_.clear();
  for (std::vector<std::uintptr_t>& stack : free_by_size_) stack.clear();
}

}  // namespace holdfast::fakes
