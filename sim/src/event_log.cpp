#include "holdfast/sim/event_log.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <new>

namespace holdfast::sim {
namespace {

static_assert(std::endian::native == std::endian::little, "the log's hash is over little-endian words");

// Kinds and calls share one space of first words; a kind's has the top bit.
constexpr std::uint64_t kKindBit = 1ULL << 63;

XXH3_state_t* as_state(void* state) { return static_cast<XXH3_state_t*>(state); }

}  // namespace

EventLog::EventLog() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  reset();
}

EventLog::~EventLog() { XXH3_freeState(as_state(state_)); }

void EventLog::reset() {
  XXH3_64bits_reset(as_state(state_));
  events_ = 0;
  lines_.clear();
}

std::uint64_t EventLog::hash() const { return XXH3_64bits_digest(as_state(state_)); }

void EventLog::add(Nanos at_ns, std::uint64_t what, std::int32_t code, std::span<const std::uint64_t> fields) {
  ++events_;
  const std::uint64_t head[4] = {static_cast<std::uint64_t>(at_ns), what,
                                 static_cast<std::uint64_t>(static_cast<std::int64_t>(code)), fields.size()};
  XXH3_64bits_update(as_state(state_), head, sizeof(head));
  if (!fields.empty()) XXH3_64bits_update(as_state(state_), fields.data(), fields.size_bytes());
}

void EventLog::add_kind(Nanos at_ns, std::string_view kind, std::span<const std::uint64_t> fields) {
  add(at_ns, XXH3_64bits(kind.data(), kind.size()) | kKindBit, 0, fields);
}

void EventLog::tell(Nanos at_ns, const Call* call, std::string_view what, std::int32_t code, std::string text) {
  if (keep_lines_) {
    std::string line = fmt::format("{:>10}.{:06} ms  {}", at_ns / kMillisecond, at_ns % kMillisecond, what);
    if (!text.empty()) {
      line += ' ';
      line += text;
    }
    if (code != 0) line += fmt::format(" -> {}", code);
    lines_.push_back(std::move(line));
  }
  if (watch_) watch_(at_ns, call, what, code, std::move(text));
}

}  // namespace holdfast::sim
