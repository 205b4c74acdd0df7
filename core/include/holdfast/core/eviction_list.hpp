// A doubly linked list through its members: the order of eviction, changed in constant time and without allocation.
#pragma once

namespace holdfast {

// A member is in at most one list at a time.
struct EvictionLink {
  EvictionLink* prev = nullptr;
  EvictionLink* next = nullptr;

  [[nodiscard]] bool linked() const { return next != nullptr; }
};

// Least recent first. Does not own its members.
class EvictionList {
 public:
  EvictionList() { clear(); }
  EvictionList(const EvictionList&) = delete;
  EvictionList& operator=(const EvictionList&) = delete;

  [[nodiscard]] bool empty() const { return ends_.next == &ends_; }

  // Iteration: from before_first() through next_of() until end().
  [[nodiscard]] EvictionLink* before_first() { return &ends_; }
  [[nodiscard]] EvictionLink* end() { return &ends_; }

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
    link = {};
  }

  // Moves all members of `other` behind this list's own, in their order.
  void append(EvictionList& other) {
    if (other.empty()) return;
    EvictionLink* first = other.ends_.next;
    EvictionLink* last = other.ends_.prev;
    first->prev = ends_.prev;
    ends_.prev->next = first;
    last->next = &ends_;
    ends_.prev = last;
    other.clear();
  }

 private:
  void clear() { ends_.prev = ends_.next = &ends_; }

  EvictionLink ends_;
};

}  // namespace holdfast
