// A doubly linked list through its members: an order of eviction, changed in constant time and without allocation.
#pragma once

#include <cstdint>

namespace holdfast {

// A member is in at most one list at a time.
struct EvictionLink {
  EvictionLink* prev = nullptr;
  EvictionLink* next = nullptr;
  std::uint32_t uses = 0;   // how often its blob was found, also before it was last evicted
  std::uint32_t level = 0;  // these are its policy's
  std::uint64_t base = 0;
  std::uint64_t turn = 0;

  [[nodiscard]] bool linked() const { return next != nullptr; }
};

// Least recent first. Does not own its members.
class EvictionList {
 public:
  EvictionList() { ends_.prev = ends_.next = &ends_; }
  EvictionList(const EvictionList&) = delete;
  EvictionList& operator=(const EvictionList&) = delete;

  // Iteration: from first() through next_of() until end().
  [[nodiscard]] bool empty() const { return ends_.next == &ends_; }
  [[nodiscard]] EvictionLink* first() { return ends_.next; }
  [[nodiscard]] const EvictionLink* end() const { return &ends_; }

  void push_most_recent(EvictionLink& link) {
    link.prev = ends_.prev;
    link.next = &ends_;
    ends_.prev->next = &link;
    ends_.prev = &link;
  }

  // From whichever list it is in.
  static void unlink(EvictionLink& link) {
    link.prev->next = link.next;
    link.next->prev = link.prev;
    link.prev = link.next = nullptr;
  }

 private:
  EvictionLink ends_;
};

}  // namespace holdfast
