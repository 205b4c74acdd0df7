#include <fmt/format.h>

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "holdfast/sim/report.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

using kainjow::mustache::data;

constexpr const char* kPage = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Holdfast: {{verdict}}</title>
<style>
:root { --fg: #1b1f24; --bg: #ffffff; --soft: #57606a; --line: #d0d7de; --good: #116329; --bad: #a40e26;
        --box: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e6edf3; --bg: #0d1117; --soft: #9aa4af; --line: #30363d; --good: #56d364; --bad: #ff7b72;
          --box: #161b22; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); max-width: 64rem;
       margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.held { color: var(--good); } .broken { color: var(--bad); font-weight: 600; } .soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { background: var(--box); padding: .6rem; margin: .4rem 0; overflow-x: auto; white-space: pre-wrap;
      overflow-wrap: anywhere; }
section.violation { border-left: 4px solid var(--bad); padding-left: 1rem; margin: 1rem 0; }
h3 { font-size: 1rem; margin: 0; } p { margin: .3rem 0; }
ul.marks { columns: 2; padding-left: 1.2rem; margin: 0; }
@media print { body { max-width: none; } section.violation { break-inside: avoid; } }
@media (max-width: 40rem) { ul.marks { columns: 1; } }
</style>
</head>
<body>
<main>
<h1 class="{{class}}">{{verdict}}</h1>
<p class="soft">holdfast {{version}} &middot; backend {{backend}} &middot; {{profile}}{{#runtimes}} &middot;
{{role}}: {{name}} {{version}}{{/runtimes}}</p>
<pre aria-label="Command that runs this again">{{command}}</pre>
{{#notes}}<p class="broken">{{note}}</p>{{/notes}}
<div class="wide"><table><caption hidden>Figures</caption><tbody>
{{#figures}}<tr><th scope="row">{{name}}</th><td>{{value}}</td></tr>
{{/figures}}</tbody></table></div>
{{#has_violations}}<h2>Violations</h2>{{/has_violations}}
{{#violations}}<section class="violation"><h3>{{what}}: seed {{seed}}{{where}}</h3>
{{#promise}}<p class="soft">{{promise}}</p>{{/promise}}
<pre>{{message}}</pre>
<p>Reproduce:</p><pre>{{reproduce}}</pre>
{{#has_shrunk}}<p>Shrunk to {{shrunk}}:</p><pre>{{reproduce_shrunk}}</pre>{{/has_shrunk}}</section>
{{/violations}}
<h2>Invariants</h2>
<div class="wide"><table><thead><tr><th scope="col">Name</th><th scope="col">Promise</th>
<th scope="col" class="n">Checked</th><th scope="col" class="n">Violated</th></tr></thead><tbody>
{{#invariants}}<tr><th scope="row"><code>{{name}}</code></th><td>{{promise}}</td><td class="n">{{checked}}</td>
<td class="n {{class}}">{{violated}}</td></tr>
{{/invariants}}</tbody></table></div>
<h2>Faults fired</h2>
{{^faults}}<p class="soft">None.</p>{{/faults}}
{{#has_faults}}<div class="wide"><table><thead><tr><th scope="col">Call</th>
{{#kinds}}<th scope="col" class="n">{{kind}}</th>{{/kinds}}</tr></thead><tbody>
{{#faults}}<tr><th scope="row"><code>{{call}}</code></th>
{{#counts}}<td class="n">{{count}}</td>{{/counts}}</tr>
{{/faults}}</tbody></table></div>{{/has_faults}}
{{#has_sweep}}<h2>Sweep</h2><div class="wide"><pre>{{sweep}}</pre></div>{{/has_sweep}}
{{#has_store}}<h2>Store</h2><div class="wide"><pre>{{store}}</pre></div>{{/has_store}}
<h2>Marks</h2>
<p class="soft">{{marks_reached}}</p>
<ul class="marks">
{{#marks}}<li class="{{class}}">{{name}}: {{count}}{{#rare}} <span class="soft">(rare)</span>{{/rare}}</li>
{{/marks}}</ul>
</main>
</body>
</html>
)";

data figure(const char* name, const std::string& value) {
  data entry;
  entry.set("name", name);
  entry.set("value", value);
  return entry;
}

data figures_of(const Report& report) {
  const CampaignResult& result = report.result;
  data list{data::type::list};
  list << figure("Cases", fmt::format("{} run of {}-{}, shard {} of {}", with_thousands(result.seeds_run),
                                      report.seeds.first, report.seeds.last, report.shard.index, report.shard.count));
  if (!result.stopped.empty()) list << figure("Stopped", result.stopped);
  if (report.workload) {
    const WorkloadFigures& figures = *report.workload;
    list << figure("Requests", with_thousands(figures.requests));
    list << figure("Blocks", fmt::format("{}, {} of them hit", with_thousands(figures.blocks),
                                         with_thousands(figures.hit_blocks)));
    list << figure("Capacity", figures.capacity_bytes == 0 ? "no limit" : bytes_text(figures.capacity_bytes));
    list << figure("Footprint", bytes_text(figures.footprint_bytes));
  }
  if (report.sweep) {
    const SweepFigures& figures = *report.sweep;
    list << figure("Sweep", fmt::format("{} scenarios, {} cases, {} of them pairs; faults fired in {}",
                                        figures.scenarios.size(), with_thousands(figures.cases),
                                        with_thousands(figures.pairs), with_thousands(figures.fired)));
    list << figure("Cells", fmt::format("{} of {} reached, {} never made by this store, {} left", figures.cells_reached,
                                        kLegalCellCount, figures.never_made.size(), figures.gaps.size()));
  }
  list << figure("Runtime calls", with_thousands(result.runtime_calls));
  list << figure("Faults fired", with_thousands(result.faults.total));
  list << figure("Fault cells", fmt::format("{} of {} reached", result.faults.cells_reached(), kLegalCellCount));
  list << figure("Chunks", fmt::format("{} generated, {} hit, {} evicted", with_thousands(result.chunks_generated),
                                       with_thousands(result.chunks_hit), with_thousands(result.evictions)));
  list << figure("Moved", fmt::format("{} to the host, {} to the device", bytes_text(result.bytes_to_host),
                                      bytes_text(result.bytes_to_device)));
  list << figure("Determinism", fmt::format("{} cases run again, perturbed; {} differed",
                                            with_thousands(result.rechecked), result.diverged));
  list << figure("Time",
                 fmt::format("{}; {} of virtual time", seconds_text(result.wall_ns), seconds_text(result.virtual_ns)));
  list << figure("Log hash", hex_text(result.log_hash));
  return list;
}

data violations_of(const Report& report) {
  data list{data::type::list};
  for (const ReportViolation& violation : report.violations) {
    data entry;
    entry.set("what", std::string(what_broke(violation)));
    entry.set("seed", std::to_string(violation.seed));
    std::string where;
    if (violation.step) {
      where = *violation.step == kDrainStep ? std::string(", in the drain") : fmt::format(", step {}", *violation.step);
    }
    if (!violation.call.empty()) where += ", " + violation.call;
    entry.set("where", printable(where));
    if (violation.invariant) entry.set("promise", std::string(promise_of(*violation.invariant)));
    entry.set("message", printable(violation.message));
    entry.set("reproduce", printable(violation.reproduce));
    entry.set("has_shrunk", violation.shrunk.has_value());
    if (violation.shrunk) {
      entry.set("shrunk", printable(describe(*violation.shrunk)));
      entry.set("reproduce_shrunk", printable(violation.shrunk->reproduce));
    }
    list << entry;
  }
  return list;
}

data invariants_of(const Report& report) {
  data list{data::type::list};
  for (std::size_t i = 0; i < kInvariantCount; ++i) {
    const auto invariant = static_cast<Invariant>(i);
    const NotMade why = not_made(report, invariant);
    data entry;
    entry.set("name", std::string(name_of(invariant)));
    entry.set("promise", std::string(promise_of(invariant)));
    entry.set("checked", why == NotMade::switched_off    ? "switched off"
                         : why == NotMade::not_decidable ? "not decidable"
                                                         : with_thousands(report.result.checked[i]));
    entry.set("violated", with_thousands(report.result.violated[i]));
    entry.set("class", report.result.violated[i] > 0 ? "broken" : "");
    list << entry;
  }
  return list;
}

data kinds_list() {
  data list{data::type::list};
  for (std::size_t kind = 0; kind < kFaultKindCount; ++kind) {
    list << data{"kind", std::string(name_of(static_cast<FaultKind>(kind)))};
  }
  return list;
}

data faults_of(const FaultTally& faults) {
  data list{data::type::list};
  for (std::size_t call = 0; call < kCallCount; ++call) {
    const auto& kinds = faults.fired[call];
    if (std::all_of(kinds.begin(), kinds.end(), [](std::uint64_t count) { return count == 0; })) continue;
    data counts{data::type::list};
    for (const std::uint64_t count : kinds) counts << data{"count", count == 0 ? "" : with_thousands(count)};
    data entry;
    entry.set("call", std::string(name_of(static_cast<Call>(call))));
    entry.set("counts", counts);
    list << entry;
  }
  return list;
}

data marks_of(const MarkCounts& marks) {
  data list{data::type::list};
  for (std::size_t i = 0; i < kMarkCount; ++i) {
    const auto mark = static_cast<Mark>(i);
    data entry;
    entry.set("name", std::string(name_of(mark)));
    entry.set("count", marks.counts[i] == 0 ? "never" : with_thousands(marks.counts[i]));
    entry.set("class", marks.counts[i] == 0 ? "soft" : "");
    entry.set("rare", is_rare(mark));
    list << entry;
  }
  return list;
}

}  // namespace

std::string report_html(const Report& report) {
  const CampaignResult& result = report.result;
  data page;
  page.set("verdict", verdict_line(report));
  page.set("class", verdict_of(report) == ExitStatus::held ? "held" : "broken");
  page.set("version", std::string(program_version()));
  page.set("backend", printable(report.backend));
  page.set("profile", printable(report.profile));
  page.set("command", printable(report.command));
  data runtimes{data::type::list};
  for (const RuntimeInfo& runtime : report.runtimes) {
    data entry;
    entry.set("role", printable(runtime.role));
    entry.set("name", printable(runtime.name));
    entry.set("version", printable(runtime.version));
    runtimes << entry;
  }
  page.set("runtimes", runtimes);
  data notes{data::type::list};
  for (const Invariant invariant : report.disabled) {
    notes << data{"note", fmt::format("{} was switched off: this run says nothing of it.", name_of(invariant))};
  }
  page.set("notes", notes);
  page.set("figures", figures_of(report));
  page.set("has_violations", !report.violations.empty());
  page.set("violations", violations_of(report));
  page.set("invariants", invariants_of(report));
  page.set("has_faults", result.faults.total > 0);
  page.set("has_sweep", report.sweep.has_value());
  if (report.sweep) page.set("sweep", sweep_tables(*report.sweep));
  const std::string store = store_text(report);
  page.set("has_store", !store.empty());
  page.set("store", store);
  page.set("kinds", kinds_list());
  page.set("faults", faults_of(result.faults));
  const auto reached = std::count_if(result.marks.counts.begin(), result.marks.counts.end(),
                                     [](std::uint64_t count) { return count > 0; });
  page.set("marks_reached", fmt::format("{} of {} situations were met.", reached, kMarkCount));
  page.set("marks", marks_of(result.marks));

  kainjow::mustache::mustache page_template(kPage);
  return page_template.render(page);
}

}  // namespace holdfast::sim
