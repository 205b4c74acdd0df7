#include "holdfast/sim/executor.hpp"

#include <algorithm>
#include <cstring>

#include "executor_impl.hpp"
#include "holdfast/sim/lies.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kDeviceSlackBytes = 1ULL << 20;  // the clean session of phase two
constexpr std::size_t kErrorsKeptMax = 4;
// An ingest has two puts, of latent and values, each tried again at most once; a put waits for each of its plans to
// start, and for each future as long as the store's patience is: one plan of the latent, up to four of the values.
constexpr Nanos kPatience = 10 * kSecond;
constexpr Nanos kPlansOfAnIngest = Nanos{2} * (1 + 4);
constexpr Nanos kIngestBound = kPlansOfAnIngest * (kPutStartWaitLimit + kPatience);
constexpr Nanos kOtherBound = kMinute;
constexpr int kStagingFill = 0xA7;
constexpr std::uint64_t kAlignSlackBytes = 512;  // of each allocation

std::uint64_t engine_bytes(const Geometry& geometry, std::size_t chunks) {
  std::uint64_t frame_bytes = 0;
  for (std::size_t tensor = 0; tensor < geometry.tensors(); ++tensor) {
    frame_bytes += geometry.token_bytes(tensor) * geometry.frame_tokens;
  }
  return frame_bytes * geometry.ring_frames + geometry.tensors() * kAlignSlackBytes +
         (chunks + 2) * (geometry.latent_bytes + kAlignSlackBytes);
}

// The longest session's chunks and latents, each in a place of its own.
std::uint64_t staging_bytes_of(const Trace& trace) {
  std::uint64_t most = 0;
  for (const Step& step : trace.steps) {
    if (step.kind != StepKind::open) continue;
    Geometry whole = trace.geometries[step.geometry];
    whole.ring_frames = static_cast<std::uint32_t>(step.actions.size()) * whole.frames_per_chunk;
    most = std::max(most, engine_bytes(whole, step.actions.size()));
  }
  return 2 * most + kDeviceSlackBytes;
}

// Of all sessions that are open at one time, at its most. Fragments of first fit: twice that.
std::uint64_t device_bytes_of(const Trace& trace) {
  std::map<std::uint32_t, std::uint64_t> open;
  std::uint64_t now = 0;
  std::uint64_t most = 0;
  for (const Step& step : trace.steps) {
    if (step.kind == StepKind::open) {
      const std::uint64_t bytes = engine_bytes(trace.geometries[step.geometry], step.actions.size());
      open[step.id] = bytes;
      now += bytes;
      most = std::max(most, now);
    } else if (step.kind == StepKind::close) {
      const auto found = open.find(step.of);
      if (found == open.end()) continue;
      now -= found->second;
      open.erase(found);
    }
  }
  return 2 * most + kDeviceSlackBytes;
}

}  // namespace

Executor::Executor(SystemFactory factory, const Perturbation& perturbation) {
  const PerturbedProcess process(perturbation);
  impl_ = std::make_unique<Impl>(std::move(factory), perturbation);
}
Executor::~Executor() = default;
RunResult Executor::run(const Trace& trace, const RunOptions& options) { return impl_->run(trace, options); }

Executor::Impl::Impl(SystemFactory system_factory, const Perturbation& how)
    : factory(std::move(system_factory)),
      perturbation(how),
      arena({.base_shift_pages = how.arena_shift_pages}),
      made_owner(factory.make_owner ? factory.make_owner(arena, clock)
                                    : std::make_unique<fakes::FakeOwner>(arena, clock)),
      owner(*made_owner),
      made_device(factory.make_device ? factory.make_device(arena, clock, {.device_bytes = kDeviceSlackBytes})
                                      : std::make_unique<fakes::FakeCuda>(
                                            arena, clock, fakes::DeviceOptions{.device_bytes = kDeviceSlackBytes})),
      device(*made_device) {}

RunResult Executor::Impl::run(const Trace& run_trace, const RunOptions& run_options) {
  // Only as long as it runs: a first run in this process must not be perturbed by the second of an earlier trace.
  const PerturbedProcess process(perturbation);
  begin_run(run_trace, run_options);
  if (side_by_side) {
    run_side_by_side();
  } else {
    for (const Step& step : run_trace.steps) run_step(step);
  }
  if (run_options.keep_end_state) result.end_state = end_state();
  drain();
  return take_result();
}

// ---- The beginning and the end of a run.

void Executor::Impl::learn_mappings(const fakes::OwnerOptions& owner_options) {
  mappings.clear();
  // What cannot be restarted has one.
  if (!owner.powers().takes_choices) {
    mappings.push_back(owner.segment());
    return;
  }
  for (std::uint32_t i = 0; i < owner_options.mappings; ++i) {
    mappings.push_back(owner.segment());
    owner.restart();
  }
  mapped_bytes = owner_options.segment_bytes;
  owner.reset(owner_options);
}

void Executor::Impl::begin_run(const Trace& run_trace, const RunOptions& run_options) {
  trace = &run_trace;
  options = &run_options;
  clock.reset();
  context.verdicts = {};
  context.reset();
  context.log.keep_text(run_options.keep_log);
  context.watch(run_options.on_moment);
  context.keep_calls = run_options.keep_calls;
  context.on_endless = run_options.on_endless;
  for (const Invariant invariant : run_options.disabled) context.verdicts.disable(invariant);

  // What the last run left registered ends before its memory is another's.
  spare_engines.clear();  // their streams end with the device's
  device.client_died();
  fakes::OwnerOptions owner_options;
  owner_options.segment_bytes = run_trace.segment_bytes;
  owner_options.grant_bytes = run_trace.grant_bytes;
  owner.reset(owner_options);
  if (mappings.empty() || mapped_bytes < run_trace.segment_bytes || !owner.powers().takes_choices) {
    learn_mappings(owner_options);
  }
  hazards.reset();
  device.reset({.device_bytes = device_bytes_of(run_trace)});
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    device.declare_read_only(mappings[i].read_ptr, run_trace.segment_bytes);
    device.name_host(mappings[i].write_ptr, run_trace.segment_bytes, "map" + std::to_string(i));
    device.name_host(mappings[i].read_ptr, run_trace.segment_bytes, "map" + std::to_string(i) + " read");
  }
  files.reset();
  tap.reset();
  injector.reset();
  injector.expect_mappings(mappings);
  injector.load(run_trace);
  monitor.reset();
  if (run_trace.in_memory_store) monitor.expect_memory_store();
  side_by_side = run_options.strategy != nullptr || !run_trace.switches.empty();
  if (side_by_side) monitor.expect_side_by_side();
  oracle.reset(perturbation.hash_seed);
  const auto has_step = [&](StepKind kind) {
    return std::any_of(run_trace.steps.begin(), run_trace.steps.end(),
                       [&](const Step& step) { return step.kind == kind; });
  };
  book.reset(has_step(StepKind::store_evict), perturbation.hash_seed);
  steps_with_registration_faults.clear();
  for (const FaultPoint& fault : run_trace.faults) {
    if (fault.call == Call::host_register) steps_with_registration_faults.insert(fault.step);
  }
  old_keys.clear();
  doing.told.clear();
  last_errors.clear();
  undecided_at_death = false;
  hostile = is_hostile(run_trace);
  result = {};

  system_options = {};
  system_options.capacity_bytes = run_trace.capacity_bytes;
  system_options.lower_mark_bytes = run_trace.lower_mark_bytes;
  system_options.eviction = run_trace.eviction;
  system_options.grant_bytes = run_trace.grant_bytes;
  system_options.hash_seed = perturbation.hash_seed;
  system_options.in_memory_store = run_trace.in_memory_store;
  system_options.batches_in_flight = run_trace.batches_in_flight;
  system_options.pump_probes = run_trace.pump_probes;
  system_options.checksums = run_trace.checksums;
  if (run_trace.in_memory_store) lend_staging(staging_bytes_of(run_trace));
  sync.attach(side_by_side ? &scheduler : nullptr, side_by_side ? &turn_taker : nullptr);
  times_switched = rounds = 0;
  hosts.clear();
  endings.clear();
  if (run_trace.capacity_bytes != 0 && !run_trace.in_memory_store) {
    monitor.watch_puts([this](std::uint64_t slots) { check_put_fits(slots); });
  }
  system = factory(side_by_side ? turn_ports : ports, book, system_options);
  // Before the first step nothing is injected.
  context.faults_on = false;
  context.begin_step(kDrainStep, StepKind::restart);
  injector.begin_step();
  Ending ending;
  static_cast<void>(operate(Operation::restore, ending, [&] { return system->restore(); }));
  context.faults_on = true;
}

void Executor::Impl::lend_staging(std::uint64_t bytes) {
  if (bytes > staging_bytes) {
    staging_base = arena.map_private(bytes);
    staging_bytes = bytes;
  }
  std::memset(reinterpret_cast<void*>(staging_base), kStagingFill, bytes);
  device.name_host(staging_base, bytes, "staging");
  system_options.staging_base = staging_base;
  system_options.staging_bytes = bytes;
}

RunResult Executor::Impl::take_result() {
  system.reset();
  for (Session& session : sessions) {
    if (session.engine) spare_engines.push_back(std::move(session.engine));
  }
  sessions.clear();
  sessions_by_id.clear();
  holds.clear();
  result.violations = context.verdicts.violations();
  result.checked = context.verdicts.checks();
  result.marks = context.marks;
  result.faults = context.faults;
  result.log_hash = context.log.hash();
  result.log_events = context.log.events();
  result.log = context.log.lines();
  result.calls = std::move(context.calls);
  result.runtime_calls = context.runtime_calls;
  result.virtual_ns = clock.now_ns();
  trace = nullptr;
  options = nullptr;
  return std::move(result);
}

// ---- One step.

void Executor::Impl::run_step(const Step& step) {
  Ending ending = perform(step);
  if (injector.client_dead()) after_death(step, ending);
  check_accounts();
  end_step(step, ending);
}

Executor::Impl::Ending Executor::Impl::perform(const Step& step) {
  context.begin_step(step.id, step.kind);
  injector.begin_step();
  doing.told.clear();
  doing.absorptions = {};
  doing.faults_checked = 0;
  context.log.event(clock.now_ns(), "step",
                    std::array{static_cast<std::uint64_t>(step.id), static_cast<std::uint64_t>(step.kind)},
                    [&] { return std::to_string(step.id) + " " + std::string(name_of(step.kind)); });
  const bool inspected = steps_with_registration_faults.contains(step.id);
  const Inspection before = inspected ? system->inspect() : Inspection{};
  Ending ending = execute(step);
  tap.collect();
  check_told(step, before, inspected);
  return ending;
}

void Executor::Impl::after_death(const Step& step, Ending& ending) {
  doing.told.clear();
  doing.absorptions = {};
  survive_death(ending);
  check_told(step, {}, false);
}

void Executor::Impl::end_step(const Step& step, const Ending& ending) {
  ++(ending.skipped ? result.steps_skipped : result.steps);
  if (options->keep_end_state) {
    endings[step.id] = {ending.skipped ? 1U : 0U, static_cast<std::uint64_t>(static_cast<std::int64_t>(ending.code)),
                        ending.first, ending.second};
  }
  const auto words = [&] {
    std::string text = std::to_string(step.id) + " " + std::string(name_of(step.kind));
    if (step.of != 0) text += " of " + std::to_string(step.of);
    if (ending.skipped) return text + ": skipped" + (ending.text.empty() ? "" : ", " + ending.text);
    return text + ": " + (ending.text.empty() ? "ok" : ending.text);
  };
  context.log.event(
      clock.now_ns(), "step end",
      std::array{static_cast<std::uint64_t>(step.id), static_cast<std::uint64_t>(ending.skipped ? 1 : 0),
                 static_cast<std::uint64_t>(static_cast<std::int64_t>(ending.code)), ending.first, ending.second},
      words);
  if (options->on_step) options->on_step(words());
}

void Executor::Impl::check_told(const Step& step, const Inspection& before, bool inspected) {
  if (injector.fired().size() == doing.faults_checked) return;
  const std::span<const FiredFault> fired = std::span(injector.fired()).subspan(doing.faults_checked);
  doing.faults_checked = injector.fired().size();
  const auto due = static_cast<std::uint64_t>(std::count_if(fired.begin(), fired.end(), needs_disposition));
  const Inspection after = system->inspect();
  if (after.quarantined > 0) context.marks.reach(Mark::plan_quarantined);
  if (due == 0) return;
  context.verdicts.checked(Invariant::error_told, due);
  if (inspected) {
    doing.absorptions.read_only_fallbacks = after.read_only_fallbacks - before.read_only_fallbacks;
    doing.absorptions.translated_mappings = after.translated_mappings - before.translated_mappings;
  }
  const std::string all_told = doing.told.to_string();
  for (const FiredFault& fault : untold(fired, doing.told, doing.absorptions)) {
    context.violate(
        Invariant::error_told, name_of(fault.point.call),
        "nobody told of the fault " + describe(fault) + "; step " + std::to_string(step.id) + " told of: " + all_told,
        std::string(name_of(fault.point.kind)) + " of " + std::string(name_of(fault.point.call)));
  }
}

// ---- What the steps share.

void Executor::Impl::begin_clock(Operation operation) {
  doing.operation = operation;
  doing.began_ns = own_time();
  doing.others_ns = 0;
}

void Executor::Impl::check_clock() {
  context.verdicts.checked(Invariant::progress);
  const Nanos spent = own_time() - doing.began_ns - doing.others_ns;
  const Nanos bound = doing.operation == Operation::ingest ? kIngestBound : kOtherBound;
  if (spent <= bound) return;
  context.violate(Invariant::progress, {},
                  "an operation took " + std::to_string(spent / kMillisecond) + " ms of virtual time, at most " +
                      std::to_string(bound / kMillisecond) + " ms are its own",
                  "an operation past its bound");
}

Executor::Impl::Session* Executor::Impl::find(SessionId id, bool open_only) {
  const auto found = sessions_by_id.find(id);
  if (found == sessions_by_id.end() || (open_only && !found->second->open)) return nullptr;
  return found->second;
}

void Executor::Impl::note_error(Ending& ending, const Error& error) {
  doing.told.add(error);
  if (context.step == kDrainStep && last_errors.size() < kErrorsKeptMax) last_errors.push_back(error);
  if (ending.code == 0) ending.code = error.code == 0 ? -1 : error.code;
  if (wants_text()) ending.text += (ending.text.empty() ? "" : "; ") + to_string(error);
}

std::unique_ptr<StandInEngine> Executor::Impl::take_engine() {
  if (spare_engines.empty()) return std::make_unique<StandInEngine>(device, oracle, tensors);
  std::unique_ptr<StandInEngine> engine = std::move(spare_engines.back());
  spare_engines.pop_back();
  return engine;
}

void Executor::Impl::keep_output(Session& session) {
  if (session.output < result.frame_hashes.size()) {
    result.frame_hashes[session.output] = session.engine->frame_hashes();
  }
}

}  // namespace holdfast::sim
