// The event log of a run: hashed always, kept as text only when somebody asked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/time.hpp"
#include "holdfast/sim/calls.hpp"

namespace holdfast::sim {

// Nothing that varies between machines may be given to it: offsets instead of addresses, ordinals instead of pointers.
// The hash is XXH3 over the events' fields in order, little-endian.
class EventLog {
 public:
  // An event as text. `call` is null of what is no call; `what` is the call's name or the kind.
  using Watch =
      std::function<void(Nanos at_ns, const Call* call, std::string_view what, std::int32_t code, std::string text)>;

  EventLog();
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void keep_text(bool keep) {
    keep_lines_ = keep;
    wants_text_ = keep_lines_ || watch_;
  }
  // Tells of each event as it happens; empty: nobody any more.
  void watch(Watch watch) {
    watch_ = std::move(watch);
    wants_text_ = keep_lines_ || watch_;
  }
  [[nodiscard]] bool keeps_text() const { return wants_text_; }

  // A call as the caller knows it: `fields` are what identifies it (ordinals, lengths, counts, hashes of keys);
  // `code` 0 = success. The text is only asked for when it is kept.
  template <class Text>
  void call(Nanos at_ns, Call call, std::int32_t code, std::span<const std::uint64_t> fields, Text&& text) {
    add(at_ns, static_cast<std::uint64_t>(call), code, fields);
    if (wants_text_) tell(at_ns, &call, name_of(call), code, text());
  }
  // Anything else: a step begins, a fault fires, a copy runs, a claim is made. `kind` is a stable string literal.
  template <class Text>
  void event(Nanos at_ns, std::string_view kind, std::span<const std::uint64_t> fields, Text&& text) {
    add_kind(at_ns, kind, fields);
    if (wants_text_) tell(at_ns, nullptr, kind, 0, text());
  }

  [[nodiscard]] std::uint64_t hash() const;
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  void reset();

 private:
  void add(Nanos at_ns, std::uint64_t what, std::int32_t code, std::span<const std::uint64_t> fields);
  void add_kind(Nanos at_ns, std::string_view kind, std::span<const std::uint64_t> fields);
  void tell(Nanos at_ns, const Call* call, std::string_view what, std::int32_t code, std::string text);

  void* state_;  // XXH3_state_t, owned
  bool wants_text_ = false;
  bool keep_lines_ = false;
  Watch watch_;
  std::uint64_t events_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace holdfast::sim
