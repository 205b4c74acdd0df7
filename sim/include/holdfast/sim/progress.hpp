// How far a campaign is: one line redrawn on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <cstdio>

#include "holdfast/sim/campaign.hpp"

namespace holdfast::sim {

enum class ProgressStyle : std::uint8_t { none, redrawn, lines };
// Redrawn where `stream` is a terminal that can, and `quiet` says none.
ProgressStyle progress_style(std::FILE* stream, bool quiet);
// Colour where `stream` is a terminal that can and NO_COLOR is not set.
bool may_colour(std::FILE* stream);

// "1,200 of 20,000 seeds, 480 seeds/s, 190,000 calls/s, 0 violated, 39.1 s left"; of a single one "running for 5.00 s".
std::string progress_line(const CampaignProgress& progress);

class Progress {
 public:
  Progress(std::FILE* stream, ProgressStyle style) : stream_(stream), style_(style) {}
  void update(const CampaignProgress& progress) { show(progress_line(progress), progress.elapsed_ns); }
  void show(const std::string& line, Nanos elapsed_ns);
  // Takes the redrawn line away.
  void finish();

 private:
  std::FILE* stream_;
  ProgressStyle style_;
  Nanos shown_ns_ = 0;
  bool drawn_ = false;
};

}  // namespace holdfast::sim
