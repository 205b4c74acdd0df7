#include "holdfast/core/prometheus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

constexpr std::string_view kPrefix = "holdfast_";
// A summary's reader takes "quantile" for its own, wherever it stands.
constexpr std::array<std::string_view, 4> kOwnLabels{"stage", "direction", "outcome", "quantile"};

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Names that begin with two underscores are Prometheus's own.
bool is_label_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) && !name.starts_with("__") &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c); });
}

Status check_labels(std::span<const MetricLabel> labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string& name = labels[i].name;
    const char* why = nullptr;
    if (!is_label_name(name)) {
      why = "is no name of a label";
    } else if (std::ranges::find(kOwnLabels, name) != kOwnLabels.end()) {
      why = "is a label of the metrics' own";
    } else if (std::ranges::find(labels.first(i), name, &MetricLabel::name) != labels.first(i).end()) {
      why = "is there twice";
    }
    if (why != nullptr) {
      return make_error(Errc::invalid_argument, "prometheus_text", fmt::format("label {}, '{}', {}", i + 1, name, why));
    }
  }
  return {};
}

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string assigned(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escaped(value));
}

// Exact, whatever the locale.
std::string seconds(Nanos length_ns) { return fmt::format("{}.{:09}", length_ns / kSecond, length_ns % kSecond); }

class Writer {
 public:
  explicit Writer(std::span<const MetricLabel> labels) {
    for (const MetricLabel& label : labels) common_.push_back(assigned(label.name, label.value));
  }

  // Before the samples of a metric.
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {0}{1} {2}\n# TYPE {0}{1} {3}\n", kPrefix, name, help, type);
  }
  // `label` is "", or the metric's own.
  void sample(std::string_view name, const std::string& label, std::string_view value) {
    std::string all = label;
    for (const std::string& one : common_) all += (all.empty() ? "" : ",") + one;
    text_ += fmt::format("{}{}{} {}\n", kPrefix, name, all.empty() ? all : "{" + all + "}", value);
  }
  void sample(std::string_view name, const std::string& label, std::uint64_t value) {
    sample(name, label, fmt::to_string(value));
  }
  void single(std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
    metric(name, type, help);
    sample(name, {}, value);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::vector<std::string> common_;
  std::string text_;
};

void write_stages(const Stats& stats, Writer& writer) {
  writer.metric("stage_seconds", "summary", "Time of operations in a stage, and how many came to it.");
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const std::string stage = assigned("stage", name_of(static_cast<Stage>(i)));
    writer.sample("stage_seconds_sum", stage, seconds(stats.stages[i].time_ns));
    writer.sample("stage_seconds_count", stage, stats.stages[i].operations);
  }
  writer.metric("stage_failures_total", "counter", "Operations that failed in a stage.");
  for (std::size_t i = 0; i < kStageCount; ++i) {
    writer.sample("stage_failures_total", assigned("stage", name_of(static_cast<Stage>(i))), stats.stages[i].failures);
  }
}

void write_transfers(const Stats& stats, Writer& writer) {
  struct Direction {
    std::string label;
    const TransferStats& transfers;
  };
  const std::array directions{Direction{assigned("direction", "to_host"), stats.to_host},
                              Direction{assigned("direction", "to_device"), stats.to_device}};
  writer.metric("transfer_seconds", "summary", "Time from an operation's first copy to the end of its last wait.");
  for (const Direction& direction : directions) {
    writer.sample("transfer_seconds_sum", direction.label, seconds(direction.transfers.time_ns));
    writer.sample("transfer_seconds_count", direction.label, direction.transfers.operations);
  }
  writer.metric("transferred_bytes_total", "counter", "Bytes copied and waited for.");
  for (const Direction& direction : directions) {
    writer.sample("transferred_bytes_total", direction.label, direction.transfers.bytes);
  }
}

void write_counters(const Stats& stats, Writer& writer) {
  std::string_view metric;
  for (const Counter& counter : counters()) {
    const std::string name = fmt::format("{}_total", counter.metric);
    if (counter.metric != metric) writer.metric(name, "counter", counter.help);
    metric = counter.metric;
    writer.sample(name, counter.outcome.empty() ? std::string() : assigned("outcome", counter.outcome),
                  stats.*counter.value);
  }
}

void write_lengths(const Stats& stats, Writer& writer) {
  writer.single("unsettled_keys", "gauge", "Keys whose presence in the store is not decided.",
                stats.unsettled_keys.now);
  writer.single("unsettled_keys_peak", "gauge", "The highest value of holdfast_unsettled_keys so far.",
                stats.unsettled_keys.peak);
  writer.single("quarantined_plans", "gauge", "Plans that a copy may still be using.", stats.quarantined_plans.now);
  writer.single("quarantined_plans_peak", "gauge", "The highest value of holdfast_quarantined_plans so far.",
                stats.quarantined_plans.peak);
  writer.single("accounted_bytes", "gauge", "Slot bytes that count against the capacity.", stats.accounted_bytes);
}

}  // namespace

Result<std::string> prometheus_text(const Stats& stats, std::span<const MetricLabel> labels) {
  if (Status checked = check_labels(labels); !checked) return std::move(checked.error());
  Writer writer(labels);
  write_stages(stats, writer);
  write_transfers(stats, writer);
  write_counters(stats, writer);
  write_lengths(stats, writer);
  return writer.take();
}

}  // namespace holdfast
