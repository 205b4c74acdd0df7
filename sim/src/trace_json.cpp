// A trace as a file: one step, fault, choice or switch a line, what is default left out, so that two traces compare
// well.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "holdfast/sim/strict_json.hpp"
#include "holdfast/sim/trace.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kNameBytesMax = 256;
constexpr std::size_t kActionBytesMax = 4096;
constexpr std::size_t kGeometriesMax = 1024;
constexpr std::uint64_t kU32Max = 0xFFFF'FFFF;
constexpr std::uint64_t kU64Max = ~0ULL;

// One object on one line.
class Line {
 public:
  void text(std::string_view name, std::string_view value) { raw(name, quoted_json(value)); }
  void number(std::string_view name, std::int64_t value) { raw(name, fmt::format("{}", value)); }
  void number(std::string_view name, std::uint64_t value) { raw(name, fmt::format("{}", value)); }
  void number_unless(std::string_view name, std::uint64_t value, std::uint64_t silent) {
    if (value != silent) number(name, value);
  }
  void flag_unless(std::string_view name, bool value, bool silent) {
    if (value != silent) raw(name, value ? "true" : "false");
  }
  template <class Items, class Print>
  void list(std::string_view name, const Items& items, Print&& print) {
    std::string out = "[";
    for (const auto& item : items) {
      if (out.size() > 1) out += ", ";
      out += print(item);
    }
    raw(name, out + "]");
  }
  void raw(std::string_view name, std::string_view value) {
    out_ += fmt::format("{}\"{}\": {}", out_.empty() ? "" : ", ", name, value);
  }
  [[nodiscard]] std::string finish() const { return "{" + out_ + "}"; }

 private:
  std::string out_;
};

std::string write_geometry(const Geometry& geometry) {
  Line line;
  line.number("n_layers", std::uint64_t{geometry.n_layers});
  line.number("frames_per_chunk", std::uint64_t{geometry.frames_per_chunk});
  line.number("frame_tokens", std::uint64_t{geometry.frame_tokens});
  line.number("ring_frames", std::uint64_t{geometry.ring_frames});
  line.number_unless("sink_frames", geometry.sink_frames, 0);
  line.flag_unless("full_length", geometry.full_length, true);
  line.list("kv_token_bytes", geometry.kv_token_bytes, [](std::uint32_t bytes) { return fmt::format("{}", bytes); });
  line.number_unless("scale_token_bytes", geometry.scale_token_bytes, 0);
  line.number_unless("latent_bytes", geometry.latent_bytes, 0);
  line.number_unless("timesteps", geometry.timesteps, 1);
  line.number_unless("break_even_k", geometry.break_even_k, 1);
  return line.finish();
}

std::string write_step(const Step& step) {
  Line line;
  line.number("id", std::uint64_t{step.id});
  line.text("kind", name_of(step.kind));
  line.number_unless("of", step.of, 0);
  line.number_unless("depth", step.depth, 0);
  line.number_unless("amount", step.amount, 0);
  line.flag_unless("join", step.join, false);
  line.number_unless("world", step.world, 0);
  line.number_unless("geometry", step.geometry, 0);
  line.number_unless("declared_geometry", step.declared_geometry, step.geometry);
  if (!step.actions.empty())
    line.list("actions", step.actions, [](const std::string& text) { return quoted_json(text); });
  return line.finish();
}

std::string write_fault(const FaultPoint& fault) {
  Line line;
  line.number("step", std::uint64_t{fault.step});
  line.text("call", name_of(fault.call));
  line.number_unless("nth", fault.nth, 0);
  line.text("kind", name_of(fault.kind));
  if (fault.code != 0) line.number("code", std::int64_t{fault.code});
  line.number_unless("arg", fault.arg, 0);
  line.flag_unless("persistent", fault.persistent, false);
  return line.finish();
}

std::string write_choice(const Choice& choice) {
  Line line;
  line.number("step", std::uint64_t{choice.step});
  line.text("call", name_of(choice.call));
  line.number_unless("nth", choice.nth, 0);
  line.text("kind", name_of(choice.kind));
  line.number_unless("arg", choice.arg, 0);
  return line.finish();
}

std::string write_switch(const StepSwitch& change) {
  Line line;
  line.number_unless("step", change.step, 0);
  line.number_unless("nth", change.nth, 0);
  line.number("to", std::uint64_t{change.to});
  return line.finish();
}

template <class Item, class Write>
void write_section(std::string& out, std::string_view name, const std::vector<Item>& items, Write&& write) {
  out += fmt::format(",\n  \"{}\": [", name);
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += i == 0 ? "\n    " : ",\n    ";
    out += write(items[i]);
  }
  out += items.empty() ? "]" : "\n  ]";
}

// ---- Reading. Every reader leaves the first refusal to `JsonFields::finish`.

template <class Enum, std::size_t kCount>
void named_field(JsonFields& fields, std::string_view name, Enum& into, bool required = true) {
  std::string text(required ? std::string_view() : name_of(into));
  fields.string_field(name, text, kNameBytesMax, required);
  if (!fields.ok()) return;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (name_of(static_cast<Enum>(i)) != text) continue;
    into = static_cast<Enum>(i);
    return;
  }
  fields.refuse(name, fmt::format("unknown name {}", quoted_json(text)));
}

Status read_geometry(const Json& json, std::string where, Geometry& geometry) {
  JsonFields fields(json, std::move(where));
  fields.unsigned_field("n_layers", geometry.n_layers, kU32Max, true);
  fields.unsigned_field("frames_per_chunk", geometry.frames_per_chunk, kU32Max, true);
  fields.unsigned_field("frame_tokens", geometry.frame_tokens, kU32Max, true);
  fields.unsigned_field("ring_frames", geometry.ring_frames, kU32Max, true);
  fields.unsigned_field("sink_frames", geometry.sink_frames, kU32Max);
  fields.bool_field("full_length", geometry.full_length);
  if (const Json* sizes = fields.array_field("kv_token_bytes", 3, true); sizes != nullptr) {
    geometry.kv_token_bytes.clear();
    for (std::size_t i = 0; i < sizes->items.size(); ++i) {
      const auto bytes =
          unsigned_item(sizes->items[i], kU32Max, fmt::format("{}.kv_token_bytes[{}]", fields.where(), i));
      if (!bytes) return bytes.error();
      geometry.kv_token_bytes.push_back(static_cast<std::uint32_t>(*bytes));
    }
  }
  fields.unsigned_field("scale_token_bytes", geometry.scale_token_bytes, kU32Max);
  fields.unsigned_field("latent_bytes", geometry.latent_bytes, kU32Max);
  fields.unsigned_field("timesteps", geometry.timesteps, kU32Max);
  fields.unsigned_field("break_even_k", geometry.break_even_k, kU32Max);
  return fields.finish();
}

Status read_step(const Json& json, std::string where, const TraceLimits& limits, Step& step) {
  JsonFields fields(json, std::move(where));
  fields.unsigned_field("id", step.id, kU32Max, true);
  named_field<StepKind, kStepKindCount>(fields, "kind", step.kind);
  fields.unsigned_field("of", step.of, kU32Max);
  fields.unsigned_field("depth", step.depth, kU32Max);
  fields.unsigned_field("amount", step.amount, kU64Max);
  fields.bool_field("join", step.join);
  fields.unsigned_field("world", step.world, kU32Max);
  fields.unsigned_field("geometry", step.geometry, kU32Max);
  step.declared_geometry = step.geometry;
  fields.unsigned_field("declared_geometry", step.declared_geometry, kU32Max);
  if (const Json* actions = fields.array_field("actions", limits.actions_max); actions != nullptr) {
    for (std::size_t i = 0; i < actions->items.size(); ++i) {
      const Json& action = actions->items[i];
      const bool text = action.kind == Json::Kind::string && action.text.size() <= kActionBytesMax;
      if (!text)
        fields.refuse(fmt::format("actions[{}]", i),
                      fmt::format("is no string of at most {} bytes that holds JSON", kActionBytesMax));
      else
        step.actions.push_back(action.text);
    }
  }
  return fields.finish();
}

Status read_fault(const Json& json, std::string where, FaultPoint& fault) {
  JsonFields fields(json, std::move(where));
  fields.unsigned_field("step", fault.step, kU32Max, true);
  named_field<Call, kCallCount>(fields, "call", fault.call);
  fields.unsigned_field("nth", fault.nth, kU32Max);
  named_field<FaultKind, kFaultKindCount>(fields, "kind", fault.kind);
  fields.int32_field("code", fault.code);
  fields.unsigned_field("arg", fault.arg, kU64Max);
  fields.bool_field("persistent", fault.persistent);
  return fields.finish();
}

Status read_choice(const Json& json, std::string where, Choice& choice) {
  JsonFields fields(json, std::move(where));
  fields.unsigned_field("step", choice.step, kU32Max, true);
  named_field<Call, kCallCount>(fields, "call", choice.call);
  fields.unsigned_field("nth", choice.nth, kU32Max);
  named_field<ChoiceKind, kChoiceKindCount>(fields, "kind", choice.kind);
  fields.unsigned_field("arg", choice.arg, kU64Max);
  return fields.finish();
}

Status read_switch(const Json& json, std::string where, StepSwitch& change) {
  JsonFields fields(json, std::move(where));
  fields.unsigned_field("step", change.step, kU32Max);
  fields.unsigned_field("nth", change.nth, kU32Max);
  fields.unsigned_field("to", change.to, kU32Max, true);
  return fields.finish();
}

template <class Item, class Read>
Status read_section(JsonFields& fields, std::string_view name, std::size_t items_max, bool required,
                    std::vector<Item>& into, Read&& read) {
  const Json* json = fields.array_field(name, items_max, required);
  if (json == nullptr) return {};
  into.resize(json->items.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    if (Status status = read(json->items[i], fmt::format("$.{}[{}]", name, i), into[i]); !status) return status;
  }
  return {};
}

// Another schema is told before anything else: its fields mean other things.
Status check_schema(JsonFields& fields) {
  std::string schema;
  fields.string_field("schema", schema, kNameBytesMax, true);
  if (!fields.ok() || schema == kTraceSchema) return {};
  constexpr std::string_view kFamily = "holdfast-trace/";
  const std::string_view reason =
      schema.starts_with(kFamily) ? "is a version that this program cannot read" : "is not a trace";
  return make_error(Errc::invalid_argument, "read",
                    fmt::format("$.schema: {} {}; expected \"{}\"", quoted_json(schema), reason, kTraceSchema));
}

Result<Trace> read_fields(const Json& root, const TraceLimits& limits) {
  Trace trace;
  JsonFields fields(root, "$");
  if (Status status = check_schema(fields); !status) return status.error();
  fields.string_field("name", trace.name, kNameBytesMax);
  fields.unsigned_field("seed", trace.seed, kU64Max);
  fields.unsigned_field("segment_bytes", trace.segment_bytes, limits.segment_bytes_max, true);
  fields.unsigned_field("grant_bytes", trace.grant_bytes, kU64Max, true);
  fields.unsigned_field("capacity_bytes", trace.capacity_bytes, kU64Max);
  fields.unsigned_field("lower_mark_bytes", trace.lower_mark_bytes, kU64Max);
  named_field<Eviction, kEvictionCount>(fields, "eviction", trace.eviction, false);
  fields.bool_field("in_memory_store", trace.in_memory_store);
  fields.unsigned_field("batches_in_flight", trace.batches_in_flight, limits.batches_in_flight_max);
  fields.unsigned_field("pump_probes", trace.pump_probes, limits.pump_probes_max);
  fields.bool_field("checksums", trace.checksums);
  fields.bool_field("copy_stream", trace.copy_stream);
  Status status = read_section(
      fields, "geometries", kGeometriesMax, true, trace.geometries,
      [](const Json& json, std::string where, Geometry& item) { return read_geometry(json, std::move(where), item); });
  if (!status) return status.error();
  status = read_section(
      fields, "steps", limits.steps_max, true, trace.steps,
      [&](const Json& json, std::string where, Step& item) { return read_step(json, std::move(where), limits, item); });
  if (!status) return status.error();
  status = read_section(fields, "faults", limits.faults_max, false, trace.faults, read_fault);
  if (!status) return status.error();
  status = read_section(fields, "choices", limits.faults_max, false, trace.choices, read_choice);
  if (!status) return status.error();
  status = read_section(fields, "switches", limits.faults_max, false, trace.switches, read_switch);
  if (!status) return status.error();
  if (Status rest = fields.finish(); !rest) return rest.error();
  return trace;
}

}  // namespace

std::string write_trace(const Trace& trace) {
  std::string out = fmt::format("{{\n  \"schema\": \"{}\"", kTraceSchema);
  if (!trace.name.empty()) out += fmt::format(",\n  \"name\": {}", quoted_json(trace.name));
  if (trace.seed != 0) out += fmt::format(",\n  \"seed\": {}", trace.seed);
  out += fmt::format(",\n  \"segment_bytes\": {},\n  \"grant_bytes\": {}", trace.segment_bytes, trace.grant_bytes);
  if (trace.capacity_bytes != 0) out += fmt::format(",\n  \"capacity_bytes\": {}", trace.capacity_bytes);
  if (trace.lower_mark_bytes != 0) out += fmt::format(",\n  \"lower_mark_bytes\": {}", trace.lower_mark_bytes);
  if (trace.eviction != Eviction::lru) out += fmt::format(",\n  \"eviction\": \"{}\"", name_of(trace.eviction));
  if (trace.in_memory_store) out += ",\n  \"in_memory_store\": true";
  if (trace.batches_in_flight != 0) out += fmt::format(",\n  \"batches_in_flight\": {}", trace.batches_in_flight);
  if (trace.pump_probes != 0) out += fmt::format(",\n  \"pump_probes\": {}", trace.pump_probes);
  if (trace.checksums) out += ",\n  \"checksums\": true";
  if (trace.copy_stream) out += ",\n  \"copy_stream\": true";
  write_section(out, "geometries", trace.geometries, write_geometry);
  write_section(out, "steps", trace.steps, write_step);
  if (!trace.faults.empty()) write_section(out, "faults", trace.faults, write_fault);
  if (!trace.choices.empty()) write_section(out, "choices", trace.choices, write_choice);
  if (!trace.switches.empty()) write_section(out, "switches", trace.switches, write_switch);
  return out + "\n}\n";
}

Result<Trace> read_trace(std::string_view text, std::string_view file, const TraceLimits& limits) {
  JsonLimits json_limits;
  json_limits.bytes_max = limits.file_bytes_max;
  json_limits.depth_max = limits.depth_max;
  const Result<Json> root = parse_strict_json(text, json_limits);
  if (!root) return bad_input(file, root.error().detail);
  Result<Trace> trace = read_fields(*root, limits);
  if (!trace) return bad_input(file, trace.error().detail);
  if (Status status = validate_trace(*trace, limits); !status) return bad_input(file, status.error().detail);
  return trace;
}

}  // namespace holdfast::sim
