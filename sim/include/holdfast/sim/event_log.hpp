// The event log of a run: hashed always, kept as text only when somebody asked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/time.hpp"
#include "holdfast/sim/calls.hpp"

namespace holdfast::sim {

// Nothing that varies between machines may be given to it: offsets instead of addresses, ordinals instead of pointers.
// The hash is XXH3 over the events' fields in order, little-endian.
class EventLog {
 public:
  EventLog();
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void keep_text(bool keep) { keep_text_ = keep; }
  [[nodiscard]] bool keeps_text() const { return keep_text_; }

  // A call as the caller knows it: `fields` are what identifies it (ordinals, lengths, counts, hashes of keys);
  // `code` 0 = success. The text is only asked for when it is kept.
  template <class Text>
  void call(Nanos at_ns, Call call, std::int32_t code, std::span<const std::uint64_t> fields, Text&& text) {
    add(at_ns, static_cast<std::uint64_t>(call), code, fields);
    if (keep_text_) keep_line(at_ns, name_of(call), code, text());
  }
  // Anything else: a step begins, a fault fires, a copy runs, a claim is made. `kind` is a stable string literal.
  template <class Text>
  void event(Nanos at_ns, std::string_view kind, std::span<const std::uint64_t> fields, Text&& text) {
    add_kind(at_ns, kind, fields);
    if (keep_text_) keep_line(at_ns, kind, 0, text());
  }

  [[nodiscard]] std::uint64_t hash() const;
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  void reset();

 private:
  void add(Nanos at_ns, std::uint64_t what, std::int32_t code, std::span<const std::uint64_t> fields);
  void add_kind(Nanos at_ns, std::string_view kind, std::span<const std::uint64_t> fields);
  void keep_line(Nanos at_ns, std::string_view what, std::int32_t code, const std::string& text);

  void* state_;  // XXH3_state_t, owned
  bool keep_text_ = false;
  std::uint64_t events_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace holdfast::sim
