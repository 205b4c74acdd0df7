// The metrics' text, read back by a strict reader of its own: what it says is what the counters were.
#include "holdfast/core/prometheus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "stats_words.hpp"

namespace holdfast {
namespace {

using testing::HasSubstr;

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string value;
};
struct Scrape {
  std::map<std::string, std::string> types;
  std::vector<std::string> metrics;  // in order
  std::vector<Sample> samples;
  std::string complaint;  // empty = well-formed

  [[nodiscard]] std::string value(const std::string& name,
                                  const std::map<std::string, std::string>& labels = {}) const {
    std::string found;
    for (const Sample& sample : samples) {
      if (sample.name == name && sample.labels == labels) found += sample.value;
    }
    return found.empty() ? "none" : found;
  }
};

bool is_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
                              std::string_view::npos;
}

// Reads `{name="value",...}` off the front of `rest`.
bool read_labels(std::string_view& rest, std::map<std::string, std::string>& labels) {
  rest.remove_prefix(1);
  while (true) {
    const std::size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos || !is_name(rest.substr(0, equals))) return false;
    const std::string name(rest.substr(0, equals));
    rest.remove_prefix(equals + 2);
    std::string value;
    while (!rest.empty() && rest.front() != '"') {
      char c = rest.front();
      rest.remove_prefix(1);
      if (c == '\\') {
        if (rest.empty()) return false;
        if (rest.front() != 'n' && rest.front() != '\\' && rest.front() != '"') return false;
        c = rest.front() == 'n' ? '\n' : rest.front();
        rest.remove_prefix(1);
      }
      value += c;
    }
    if (rest.empty() || !labels.emplace(name, value).second) return false;
    rest.remove_prefix(1);
    if (rest.starts_with("} ")) {
      rest.remove_prefix(2);
      return true;
    }
    if (!rest.starts_with(",")) return false;
    rest.remove_prefix(1);
  }
}

// Of a summary or counter: the metric that a sample belongs to.
bool belongs(const Sample& sample, const std::string& metric, const std::string& type) {
  if (type == "summary") return sample.name == metric + "_sum" || sample.name == metric + "_count";
  return sample.name == metric;
}

Scrape scrape(const std::string& text) {
  Scrape result;
  if (!text.ends_with("\n")) result.complaint = "no newline at the end";
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  std::istringstream lines(text);
  std::string helped;
  for (std::string line; std::getline(lines, line) && result.complaint.empty();) {
    if (line.starts_with("# HELP ")) {
      helped = line.substr(7, line.find(' ', 7) - 7);
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      const std::size_t space = line.find(' ', 7);
      const std::string metric = line.substr(7, space - 7);
      if (metric != helped || !result.types.emplace(metric, line.substr(space + 1)).second) result.complaint = line;
      result.metrics.push_back(metric);
      continue;
    }
    Sample sample;
    std::string_view rest = line;
    const std::size_t end = rest.find_first_of("{ ");
    sample.name = std::string(rest.substr(0, end));
    rest.remove_prefix(end);
    if (rest.starts_with("{")) {
      if (!read_labels(rest, sample.labels)) result.complaint = line;
    } else {
      rest.remove_prefix(1);
    }
    sample.value = std::string(rest);
    const bool number =
        !rest.empty() && rest.find_first_not_of("0123456789.") == std::string_view::npos && rest.front() != '.';
    const bool placed =
        !result.metrics.empty() && belongs(sample, result.metrics.back(), result.types[result.metrics.back()]);
    const bool counter = result.metrics.empty() || result.types[result.metrics.back()] != "counter" ||
                         result.metrics.back().ends_with("_total");
    if (!number || !placed || !counter || !seen.emplace(sample.name, sample.labels).second) result.complaint = line;
    result.samples.push_back(sample);
  }
  return result;
}

Stats numbered() {
  Stats stats;
  std::uint64_t next = 1;
  for (StageStats& stage : stats.stages) {
    stage.operations = next++;
    stage.failures = next++;
    stage.time_ns = static_cast<Nanos>(next++) * 1'000'000'001;
  }
  for (TransferStats* transfers : {&stats.to_host, &stats.to_device}) {
    transfers->operations = next++;
    transfers->bytes = next++;
    transfers->time_ns = static_cast<Nanos>(next++);
  }
  for (const Counter& counter : counters()) stats.*counter.value = next++;
  stats.unsettled_keys = {next, next + 1};
  stats.quarantined_plans = {next + 2, next + 3};
  stats.accounted_bytes = 0xFFFF'FFFF'FFFF'FFFF;
  return stats;
}

std::string text_of(const Stats& stats, const std::vector<MetricLabel>& labels = {}) {
  const Result<std::string> text = prometheus_text(stats, labels);
  EXPECT_TRUE(text.has_value()) << to_string(text.error());
  return text.value_or("");
}

std::string digits(std::uint64_t value) { return std::to_string(value); }
std::string digits_of_seconds(Nanos time_ns) {
  std::string text = std::to_string(time_ns);
  if (text.size() < 10) text.insert(0, 10 - text.size(), '0');
  return text.insert(text.size() - 9, ".");
}

TEST(Prometheus, TheTextReadBackSaysWhatTheCountersWere) {
  const Stats stats = numbered();
  const Scrape read = scrape(text_of(stats));
  ASSERT_EQ(read.complaint, "");
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const std::map<std::string, std::string> stage{{"stage", std::string(name_of(static_cast<Stage>(i)))}};
    EXPECT_EQ(read.value("holdfast_stage_seconds_sum", stage), digits_of_seconds(stats.stages[i].time_ns));
    EXPECT_EQ(read.value("holdfast_stage_seconds_count", stage), digits(stats.stages[i].operations));
    EXPECT_EQ(read.value("holdfast_stage_failures_total", stage), digits(stats.stages[i].failures));
  }
  for (const auto& [direction, transfers] :
       {std::pair("to_host", stats.to_host), std::pair("to_device", stats.to_device)}) {
    const std::map<std::string, std::string> label{{"direction", direction}};
    EXPECT_EQ(read.value("holdfast_transfer_seconds_sum", label), digits_of_seconds(transfers.time_ns));
    EXPECT_EQ(read.value("holdfast_transfer_seconds_count", label), digits(transfers.operations));
    EXPECT_EQ(read.value("holdfast_transferred_bytes_total", label), digits(transfers.bytes));
  }
  EXPECT_EQ(read.value("holdfast_puts_total", {{"outcome", "stored"}}), digits(stats.puts_stored));
  EXPECT_EQ(read.value("holdfast_puts_total", {{"outcome", "adopted"}}), digits(stats.puts_adopted));
  EXPECT_EQ(read.value("holdfast_puts_total", {{"outcome", "elsewhere"}}), digits(stats.puts_elsewhere));
  EXPECT_EQ(read.value("holdfast_puts_total", {{"outcome", "failed"}}), digits(stats.puts_failed));
  EXPECT_EQ(read.value("holdfast_puts_total", {{"outcome", "without_room"}}), digits(stats.puts_without_room));
  EXPECT_EQ(read.value("holdfast_reads_total", {{"outcome", "restored"}}), digits(stats.reads_restored));
  EXPECT_EQ(read.value("holdfast_reads_total", {{"outcome", "incomplete"}}), digits(stats.reads_incomplete));
  EXPECT_EQ(read.value("holdfast_reads_total", {{"outcome", "corrupt"}}), digits(stats.reads_corrupt));
  EXPECT_EQ(read.value("holdfast_reads_total", {{"outcome", "failed"}}), digits(stats.reads_failed));
  EXPECT_EQ(read.value("holdfast_hit_chunks_total"), digits(stats.hit_chunks));
  EXPECT_EQ(read.value("holdfast_evicted_blobs_total"), digits(stats.evicted_blobs));
  EXPECT_EQ(read.value("holdfast_evicted_bytes_total"), digits(stats.evicted_bytes));
  EXPECT_EQ(read.value("holdfast_withdrawn_blobs_total"), digits(stats.withdrawn_blobs));
  EXPECT_EQ(read.value("holdfast_withdrawn_latents_total"), digits(stats.withdrawn_latents));
  EXPECT_EQ(read.value("holdfast_settled_keys_total"), digits(stats.settled_keys));
  EXPECT_EQ(read.value("holdfast_unsettled_keys"), digits(stats.unsettled_keys.now));
  EXPECT_EQ(read.value("holdfast_unsettled_keys_peak"), digits(stats.unsettled_keys.peak));
  EXPECT_EQ(read.value("holdfast_quarantined_plans"), digits(stats.quarantined_plans.now));
  EXPECT_EQ(read.value("holdfast_quarantined_plans_peak"), digits(stats.quarantined_plans.peak));
  EXPECT_EQ(read.value("holdfast_accounted_bytes"), "18446744073709551615");
  EXPECT_EQ(read.samples.size(), 3 * kStageCount + 6 + counters().size() + 5) << "and nothing else";
}

TEST(Prometheus, EveryMetricHasATypeThatFitsIt) {
  const Scrape read = scrape(text_of(numbered()));
  for (const auto& [metric, type] : read.types) {
    EXPECT_TRUE(metric.starts_with("holdfast_")) << metric;
    const bool total = metric.ends_with("_total");
    const bool seconds = metric.ends_with("_seconds");
    EXPECT_EQ(type, total ? "counter" : seconds ? "summary" : "gauge") << metric;
  }
}

TEST(Prometheus, WhatIsZeroIsThereToo) {
  const Scrape read = scrape(text_of({}));
  ASSERT_EQ(read.complaint, "");
  EXPECT_EQ(read.samples.size(), scrape(text_of(numbered())).samples.size());
  EXPECT_EQ(read.value("holdfast_stage_seconds_sum", {{"stage", "settle"}}), "0.000000000");
}

TEST(Prometheus, LabelsAreOnEverySampleAndEscaped) {
  const std::string hostile = "a\\b\"c\nd{},= e";
  const Scrape read = scrape(text_of(numbered(), {{"instance", hostile}, {"world_2", "x"}}));
  ASSERT_EQ(read.complaint, "");
  for (const Sample& sample : read.samples) {
    ASSERT_TRUE(sample.labels.contains("instance")) << sample.name;
    EXPECT_EQ(sample.labels.at("instance"), hostile);
    EXPECT_EQ(sample.labels.at("world_2"), "x");
  }
  EXPECT_THAT(text_of({}, {{"instance", hostile}}), HasSubstr(R"(instance="a\\b\"c\nd{},= e")"));
}

TEST(Prometheus, ALabelThatCannotBeOneIsRefusedByName) {
  const auto refusal = [](const std::vector<MetricLabel>& labels) {
    const Result<std::string> text = prometheus_text({}, labels);
    return text ? "accepted" : to_string(text.error());
  };
  for (const std::string name : {"", "9x", "a-b", "a b", "\xC3\xA4", "__name__"}) {
    EXPECT_THAT(refusal({{"fine", ""}, {name, ""}}), HasSubstr("label 2, '" + name + "', is no name")) << name;
  }
  for (const std::string name : {"stage", "direction", "outcome", "quantile"}) {
    EXPECT_THAT(refusal({{name, ""}}), HasSubstr("of the metrics' own")) << name;
  }
  EXPECT_THAT(refusal({{"x", "1"}, {"x", "2"}}), HasSubstr("twice"));
  EXPECT_EQ(refusal({{"_", ""}, {"a9_", ""}}), "accepted");
}

}  // namespace
}  // namespace holdfast
