// A scripted history for the hazard checker: time passes by itself, one nanosecond a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/sim/hazard_checker.hpp"

namespace holdfast::sim {

class HazardHistory {
 public:
  static constexpr std::uintptr_t kSegment = 0x1000'0000;   // host memory
  static constexpr std::uintptr_t kReadSide = 0x2000'0000;  // the same bytes
  static constexpr std::uintptr_t kDevice = 0x8000'0000;
  static constexpr std::uint64_t kSlotBytes = HazardShadow::kGranuleBytes;
  static constexpr std::uint64_t kValueBytes = 256;
  static constexpr std::uint64_t kSegmentBytes = 1 << 20;

  HazardHistory() { checker.alias({kReadSide, kSegmentBytes}, kSegment); }

  static std::uintptr_t slot(std::size_t index) { return kSegment + index * kSlotBytes; }
  static std::uintptr_t read_slot(std::size_t index) { return kReadSide + index * kSlotBytes; }
  static std::uintptr_t frame(std::size_t index) { return kDevice + index * kValueBytes; }
  // The smallest numbers are the default streams', which are refused.
  static StreamRef stream(std::size_t number) { return StreamRef::from_native(16 + number).value(); }
  static EventRef event(std::size_t number) { return {number}; }

  HazardCaller by(std::uint32_t host) { return {host, ++now_ns}; }

  // A frame into a slot, and back.
  void copy_out(std::size_t on, std::size_t from_frame, std::size_t to_slot, std::uint32_t host = 0) {
    copy(on, {slot(to_slot), frame(from_frame), kValueBytes}, host);
  }
  void copy_in(std::size_t on, std::size_t from_slot, std::size_t to_frame, std::uint32_t host = 0) {
    copy(on, {frame(to_frame), read_slot(from_slot), kValueBytes}, host);
  }
  void copy(std::size_t on, const Copy& copy, std::uint32_t host = 0) {
    checker.copy_batch(by(host), stream(on), std::vector{copy});
  }
  void kernel(std::size_t on, std::size_t at_frame, bool write, std::uint32_t host = 0) {
    checker.kernel(by(host), stream(on), std::vector{RangeAccess{{frame(at_frame), kValueBytes}, write}});
  }
  void record(std::size_t event_number, std::size_t on, std::uint32_t host = 0) {
    checker.event_record(by(host), event(event_number), stream(on));
  }
  void stream_wait(std::size_t on, std::size_t event_number, std::uint32_t host = 0) {
    checker.stream_wait(by(host), stream(on), event(event_number));
  }
  void wait_event(std::size_t event_number, std::uint32_t host = 0) {
    checker.host_waited(by(host), event(event_number));
  }
  void wait_stream(std::size_t on, std::uint32_t host = 0) { checker.host_waited(by(host), stream(on)); }
  void claim(std::size_t index, std::uint32_t host = 0) {
    checker.claim(by(host), std::vector{slot(index)}, kValueBytes);
  }
  void commit(std::size_t index, std::uint32_t host = 0) { checker.commit(by(host), std::vector{slot(index)}); }
  void abort(std::size_t index, std::uint32_t host = 0) { checker.abort(by(host), std::vector{slot(index)}); }
  void transfer(std::size_t index, std::uint32_t host = 0) {
    checker.transfer(by(host), std::vector{read_slot(index)});
  }
  void release(std::size_t index, std::uint32_t host = 0) { checker.release(by(host), std::vector{read_slot(index)}); }

  HazardChecker checker;
  Nanos now_ns = 0;
};

}  // namespace holdfast::sim
