#include "holdfast/core/stats.hpp"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::array<std::string_view, kStageCount> kStageNames{
    "lookup",    "segments",  "put_start", "put_copy", "put_wait", "put_commit", "put_undo", "read_start",
    "read_copy", "read_wait", "read_end",  "probe",    "publish",  "evict",      "settle"};

constexpr std::string_view kPuts = "puts";
constexpr std::string_view kPutsHelp = "Puts by what became of them.";
constexpr std::string_view kReads = "reads";
constexpr std::string_view kReadsHelp = "Reads by what became of them.";

constexpr std::array kCounters{
    Counter{"puts_stored", &Stats::puts_stored, kPuts, "stored", kPutsHelp},
    Counter{"puts_adopted", &Stats::puts_adopted, kPuts, "adopted", kPutsHelp},
    Counter{"puts_elsewhere", &Stats::puts_elsewhere, kPuts, "elsewhere", kPutsHelp},
    Counter{"puts_failed", &Stats::puts_failed, kPuts, "failed", kPutsHelp},
    Counter{"puts_without_room", &Stats::puts_without_room, kPuts, "without_room", kPutsHelp},
    Counter{"reads_restored", &Stats::reads_restored, kReads, "restored", kReadsHelp},
    Counter{"reads_incomplete", &Stats::reads_incomplete, kReads, "incomplete", kReadsHelp},
    Counter{"reads_corrupt", &Stats::reads_corrupt, kReads, "corrupt", kReadsHelp},
    Counter{"reads_failed", &Stats::reads_failed, kReads, "failed", kReadsHelp},
    Counter{"hit_chunks", &Stats::hit_chunks, "hit_chunks", {}, "Chunks that sessions resumed behind."},
    Counter{"evicted_blobs", &Stats::evicted_blobs, "evicted_blobs", {}, "Blobs whose values were removed."},
    Counter{"evicted_bytes", &Stats::evicted_bytes, "evicted_bytes", {}, "Slot bytes of evicted blobs."},
    Counter{"withdrawn_blobs",
            &Stats::withdrawn_blobs,
            "withdrawn_blobs",
            {},
            "Blobs found absent from the store, or corrupt."},
    Counter{"withdrawn_latents",
            &Stats::withdrawn_latents,
            "withdrawn_latents",
            {},
            "Latents found absent from the store, or corrupt."},
    Counter{"settled_keys", &Stats::settled_keys, "settled_keys", {}, "Keys whose outcome was open and was decided."},
};

}  // namespace

std::string_view name_of(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }

std::span<const Counter> counters() { return kCounters; }

TransferStats& TransferStats::operator+=(const TransferStats& other) {
  operations += other.operations;
  bytes += other.bytes;
  time_ns += other.time_ns;
  return *this;
}

ListLength& ListLength::operator+=(const ListLength& other) {
  now += other.now;
  peak = std::max(peak, other.peak);
  return *this;
}

Stats& Stats::operator+=(const Stats& other) {
  for (std::size_t i = 0; i < kStageCount; ++i) stages[i] += other.stages[i];
  to_host += other.to_host;
  to_device += other.to_device;
  for (const Counter& counter : kCounters) this->*counter.value += other.*counter.value;
  unsettled_keys += other.unsettled_keys;
  quarantined_plans += other.quarantined_plans;
  accounted_bytes += other.accounted_bytes;
  return *this;
}

std::optional<double> gib_per_second(const TransferStats& transfers) {
  if (transfers.time_ns <= 0) return std::nullopt;
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  return static_cast<double>(transfers.bytes) / kGib / (static_cast<double>(transfers.time_ns) / kSecond);
}

void TransferMeter::arrived(std::uint64_t bytes, Nanos submitted_ns, Nanos landed_ns) {
  if (bytes == 0) return;
  first_submitted_ns_ = bytes_ == 0 ? submitted_ns : std::min(first_submitted_ns_, submitted_ns);
  last_landed_ns_ = bytes_ == 0 ? landed_ns : std::max(last_landed_ns_, landed_ns);
  bytes_ += bytes;
}

TransferStats TransferMeter::total() const {
  if (bytes_ == 0) return {};
  return {1, bytes_, last_landed_ns_ - first_submitted_ns_};
}

}  // namespace holdfast
