// A hash table through its members that grows one bucket at a time, so that no single insertion pays for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace holdfast {

struct IndexLink {
  IndexLink* next_in_bucket = nullptr;
  std::uint64_t hash = 0;
};

// Linear hashing. Does not own its members; equality is the caller's, over the links of `bucket_of`. Not thread-safe by
// itself: the lock of its members' owner guards it.
class NodeIndex {
 public:
  NodeIndex();

  void insert(IndexLink& link, std::uint64_t hash);
  void erase(IndexLink& link);

  // The first link of the only bucket where members of this hash can be; others may be there too.
  [[nodiscard]] IndexLink* bucket_of(std::uint64_t hash) const { return buckets_[number_of(hash)]; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  [[nodiscard]] std::size_t number_of(std::uint64_t hash) const;
  void split_one();

  std::deque<IndexLink*> buckets_;
  std::size_t level_buckets_;  // the power of two at or below the number of buckets
  std::size_t size_ = 0;
};

}  // namespace holdfast
