// How a worker's results cross the pipe: numbers of variable length, in one fixed order, both ways by the same list.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "campaign_worker.hpp"

namespace holdfast::sim {
namespace {

class Writer {
 public:
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void field(const T& value) {
    number(static_cast<std::uint64_t>(value));
  }
  void field(const std::string& text) {
    number(text.size());
    bytes_ += text;
  }
  template <class T>
  void list(const std::vector<T>& values) {
    number(values.size());
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    good_ = false;
    return 0;
  }
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void field(T& value) {
    value = static_cast<T>(number());
  }
  void field(std::string& text) {
    const std::uint64_t bytes = number();
    if (bytes > bytes_.size()) {
      good_ = false;
      return;
    }
    text = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
  }
  template <class T>
  void list(std::vector<T>& values) {
    const std::uint64_t count = number();
    if (count > bytes_.size()) {
      good_ = false;
      return;
    }
    values.resize(count);
  }
  [[nodiscard]] bool whole() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

template <class Wire, class Violation_>
void cross_violation(Wire& wire, Violation_& violation) {
  wire.field(violation.invariant);
  wire.field(violation.step);
  wire.field(violation.call);
  wire.field(violation.message);
  wire.field(violation.at_ns);
  wire.field(violation.culprits);
}

template <class Wire, class Transfers>
void cross_transfers(Wire& wire, Transfers& transfers) {
  wire.field(transfers.operations);
  wire.field(transfers.bytes);
  wire.field(transfers.time_ns);
}

template <class Wire, class Stats_>
void cross_stats(Wire& wire, Stats_& stats) {
  for (auto& stage : stats.stages) {
    wire.field(stage.operations);
    wire.field(stage.failures);
    wire.field(stage.time_ns);
  }
  cross_transfers(wire, stats.to_host);
  cross_transfers(wire, stats.to_device);
  for (const Counter& counter : counters()) wire.field(stats.*counter.value);
  for (auto* length : {&stats.unsettled_keys, &stats.quarantined_plans}) {
    wire.field(length->now);
    wire.field(length->peak);
  }
  wire.field(stats.accounted_bytes);
}

template <class Wire, class Run>
void cross_run(Wire& wire, Run& run) {
  wire.list(run.violations);
  for (auto& violation : run.violations) cross_violation(wire, violation);
  for (auto& count : run.checked) wire.field(count);
  for (auto& count : run.marks.counts) wire.field(count);
  for (auto& kinds : run.faults.fired) {
    for (auto& count : kinds) wire.field(count);
  }
  for (auto& count : run.faults.cells) wire.field(count);
  wire.field(run.faults.total);
  wire.field(run.log_hash);
  wire.field(run.log_events);
  wire.list(run.log);
  for (auto& line : run.log) wire.field(line);
  wire.list(run.calls);
  for (auto& record : run.calls) {
    wire.field(record.step);
    wire.field(record.call);
    wire.field(record.nth);
  }
  wire.field(run.runtime_calls);
  wire.field(run.steps);
  wire.field(run.steps_skipped);
  wire.field(run.virtual_ns);
  wire.field(run.chunks_hit);
  wire.field(run.chunks_generated);
  wire.field(run.evictions);
  wire.field(run.bytes_to_host);
  wire.field(run.bytes_to_device);
  cross_stats(wire, run.stats);
  wire.field(run.exempt_keys);
  wire.list(run.frame_hashes);
  for (auto& session : run.frame_hashes) {
    wire.list(session);
    for (auto& hash : session) wire.field(hash);
  }
  wire.list(run.session_chunks_hit);
  for (auto& hit : run.session_chunks_hit) wire.field(hit);
}

template <class Wire, class Result_>
void cross_result(Wire& wire, Result_& result) {
  wire.field(result.seed);
  cross_run(wire, result.run);
  wire.field(result.rechecked);
  wire.field(result.divergence);
  wire.field(result.peak_rss_bytes);
  wire.field(result.wall_ns);
}

template <class Wire, class Moment_>
void cross_moment(Wire& wire, Moment_& moment) {
  wire.field(moment.kind);
  wire.field(moment.at_ns);
  wire.field(moment.step);
  wire.field(moment.of_call);
  wire.field(moment.call);
  wire.field(moment.fault);
  wire.field(moment.code);
  wire.field(moment.thing.kind);
  wire.field(moment.thing.number);
  wire.list(moment.places);
  for (auto& place : moment.places) {
    wire.field(place.copy);
    wire.field(place.plan);
    wire.field(place.slot);
  }
  wire.list(moment.culprits);
  for (auto& culprit : moment.culprits) {
    wire.field(culprit.kind);
    wire.field(culprit.number);
  }
  wire.field(moment.text);
}

constexpr std::size_t kHeadBytes = 9;

}  // namespace

std::string encode_result(const SeedResult& result) {
  Writer writer;
  cross_result(writer, result);
  return writer.take();
}

std::optional<SeedResult> decode_result(std::string_view body) {
  Reader reader(body);
  SeedResult result;
  cross_result(reader, result);
  if (!reader.whole()) return std::nullopt;
  return result;
}

std::string encode_moment(const Moment& moment) {
  Writer writer;
  cross_moment(writer, moment);
  return writer.take();
}

std::optional<Moment> decode_moment(std::string_view body) {
  Reader reader(body);
  Moment moment;
  cross_moment(reader, moment);
  if (!reader.whole()) return std::nullopt;
  return moment;
}

std::string encode_message(WorkerMessage kind, std::string_view body) {
  std::string message(1, static_cast<char>(kind));
  for (unsigned i = 0; i < 8; ++i) message += static_cast<char>(body.size() >> (8 * i));
  return message.append(body);
}

std::optional<ReceivedMessage> take_message_at(std::string_view stream, std::size_t& at) {
  const std::string_view rest = stream.substr(at);
  if (rest.size() < kHeadBytes) return std::nullopt;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest[1 + i])) << (8 * i);
  }
  if (rest.size() - kHeadBytes < bytes) return std::nullopt;
  at += kHeadBytes + bytes;
  return ReceivedMessage{static_cast<WorkerMessage>(rest[0]), std::string(rest.substr(kHeadBytes, bytes))};
}

std::optional<ReceivedMessage> take_message(std::string& stream) {
  std::size_t taken = 0;
  auto message = take_message_at(stream, taken);
  stream.erase(0, taken);
  return message;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<ReceivedMessage> receive_message(int socket, std::string& stream) {
  char piece[1 << 16];
  for (;;) {
    if (auto message = take_message(stream)) return message;
    const ssize_t bytes = read(socket, piece, sizeof piece);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return std::nullopt;
    stream.append(piece, static_cast<std::size_t>(bytes));
  }
}

}  // namespace holdfast::sim
