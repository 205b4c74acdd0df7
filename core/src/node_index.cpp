#include "holdfast/core/node_index.hpp"

#include "holdfast/core/check.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kFirstBuckets = 16;

}  // namespace

NodeIndex::NodeIndex() : buckets_(kFirstBuckets, nullptr), level_buckets_(kFirstBuckets) {}

std::size_t NodeIndex::number_of(std::uint64_t hash) const {
  const std::size_t number = hash & (2 * level_buckets_ - 1);
  return number < buckets_.size() ? number : number - level_buckets_;
}

void NodeIndex::insert(IndexLink& link, std::uint64_t hash) {
  link.hash = hash;
  IndexLink*& bucket = buckets_[number_of(hash)];
  link.next_in_bucket = bucket;
  bucket = &link;
  ++size_;
  if (size_ > buckets_.size()) split_one();
}

void NodeIndex::erase(IndexLink& link) {
  IndexLink** at = &buckets_[number_of(link.hash)];
  while (*at != nullptr && *at != &link) at = &(*at)->next_in_bucket;
  check(*at == &link, "an index link is erased from the index that holds it");
  *at = link.next_in_bucket;
  link = {};
  --size_;
}

void NodeIndex::split_one() {
  IndexLink*& old_bucket = buckets_[buckets_.size() - level_buckets_];
  IndexLink* link = old_bucket;
  old_bucket = nullptr;
  buckets_.push_back(nullptr);
  if (buckets_.size() == 2 * level_buckets_) level_buckets_ *= 2;
  while (link != nullptr) {
    IndexLink* next = link->next_in_bucket;
    IndexLink*& bucket = buckets_[number_of(link->hash)];
    link->next_in_bucket = bucket;
    bucket = link;
    link = next;
  }
}

}  // namespace holdfast
