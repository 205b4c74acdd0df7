// Records with stable addresses and small numbers, used again last in, first out, so that a steady run allocates
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast::fakes {

// A record taken is as its last user left it (or default-constructed): whoever takes it sets every field.
template <class T>
class Slab {
 public:
  [[nodiscard]] T& operator[](std::uint32_t id) { return chunks_[id / kChunk][id % kChunk]; }
  [[nodiscard]] const T& operator[](std::uint32_t id) const { return chunks_[id / kChunk][id % kChunk]; }

  std::uint32_t take() {
    if (!free_.empty()) {
      const std::uint32_t id = free_.back();
      free_.pop_back();
      return id;
    }
    if (end_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
    return end_++;
  }
  void give(std::uint32_t id) { free_.push_back(id); }

  // Every number below this was taken at some time.
  [[nodiscard]] std::uint32_t end() const { return end_; }
  // All numbers are free again. Chunks beyond the first few go back to the heap.
  void clear() {
    free_.clear();
    end_ = 0;
    if (chunks_.size() > kKeptChunks) chunks_.resize(kKeptChunks);
  }

 private:
  static constexpr std::uint32_t kChunk = 256;
  static constexpr std::size_t kKeptChunks = 64;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t end_ = 0;
};

}  // namespace holdfast::fakes
