#include <fmt/format.h>

#include "holdfast/sim/report.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

// Of a direction: how many bytes, and how fast, where time passed.
std::string moved_text(const TransferStats& transfers) {
  std::string text = bytes_text(transfers.bytes);
  if (const auto rate = gib_per_second(transfers)) {
    text += fmt::format(", {}/s", bytes_text(static_cast<std::uint64_t>(*rate * (1ULL << 30))));
  }
  return text;
}

// Stages that nothing came to are left out.
std::string stages_text(const Stats& stats) {
  using Align = Table::Align;
  Table table({Align::left, Align::right, Align::right, Align::right, Align::left});
  table.add({"stage", "operations", "failed", "virtual time", "copied"});
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const auto stage = static_cast<Stage>(i);
    const StageStats& spent = stats.at(stage);
    if (spent.operations == 0) continue;
    std::string moved;
    if (stage == Stage::put_copy) moved = moved_text(stats.to_host);
    if (stage == Stage::read_copy) moved = moved_text(stats.to_device);
    table.add({std::string(name_of(stage)), with_thousands(spent.operations), with_thousands(spent.failures),
               seconds_text(spent.time_ns), moved});
  }
  return table.text();
}

std::string length_text(const ListLength& length) {
  return fmt::format("{} at most, {} at the end", with_thousands(length.peak), with_thousands(length.now));
}

std::string counts_text(const Stats& stats) {
  using Align = Table::Align;
  Table table({Align::left, Align::left});
  table.add({"puts", fmt::format("{} stored, {} adopted, {} elsewhere, {} failed, {} without room",
                                 with_thousands(stats.puts_stored), with_thousands(stats.puts_adopted),
                                 with_thousands(stats.puts_elsewhere), with_thousands(stats.puts_failed),
                                 with_thousands(stats.puts_without_room))});
  table.add({"reads", fmt::format("{} restored, {} incomplete, {} corrupt, {} failed",
                                  with_thousands(stats.reads_restored), with_thousands(stats.reads_incomplete),
                                  with_thousands(stats.reads_corrupt), with_thousands(stats.reads_failed))});
  table.add({"chunks hit", with_thousands(stats.hit_chunks)});
  table.add(
      {"blobs evicted", fmt::format("{}, {}", with_thousands(stats.evicted_blobs), bytes_text(stats.evicted_bytes))});
  table.add({"withdrawn", fmt::format("{} blobs, {} latents", with_thousands(stats.withdrawn_blobs),
                                      with_thousands(stats.withdrawn_latents))});
  table.add({"unsettled keys",
             fmt::format("{}; {} settled", length_text(stats.unsettled_keys), with_thousands(stats.settled_keys))});
  table.add({"quarantined plans", length_text(stats.quarantined_plans)});
  return table.text();
}

}  // namespace

std::string store_text(const Report& report) {
  if (report.sweep || report.result.stats == Stats{}) return {};
  return stages_text(report.result.stats) + '\n' + counts_text(report.result.stats);
}

}  // namespace holdfast::sim
