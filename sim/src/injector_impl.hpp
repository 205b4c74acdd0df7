// The injector's inside: which fault or choice is due at a call, and what all its seams do alike.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/sim/injector.hpp"

namespace holdfast::sim {

struct Injector::Impl {
  struct Fluxon;
  struct Pending;
  struct Liar;
  struct Cuda;
  struct Files;

  // What a call finds due on its arrival. Events (gone, evict, time) have happened by then.
  struct Arrival {
    const FaultPoint* fault = nullptr;  // before, lost or part
    Nanos after_ns = 0;                 // time that passes before the answer is given
    bool dead = false;                  // the call has no effect
  };
  // What is due at one future.
  struct FutureFaults {
    const FaultPoint* fate = nullptr;  // before, lost or part
    const FaultPoint* late = nullptr;
    const FaultPoint* gone = nullptr;
    const FaultPoint* evict = nullptr;
    const FaultPoint* time = nullptr;
    const FaultPoint* death = nullptr;
    const FaultPoint* lie = nullptr;
  };
  // What a call is about: as much of it as its state is told by.
  struct Subject {
    Keys keys{};  // those that an eviction takes first
    std::uint64_t value_bytes = 0;
    GetHandle handle{};
    std::uint64_t prefix_len = 0;
    std::uintptr_t host = 0;
    std::span<const Copy> copies{};
  };

  RunContext& context;
  FluxonBackend& below_fluxon;
  CudaBackend& below_cuda;
  FileBackend& below_files;
  fakes::Owner& owner;
  fakes::FakeCuda& device;
  std::unique_ptr<FluxonBackend> liar;  // between the owner and the faults
  std::unique_ptr<FluxonBackend> fluxon;
  std::unique_ptr<CudaBackend> cuda;
  std::unique_ptr<FileBackend> files;

  StepFaults in_step;
  std::vector<FiredFault>& fired = in_step.fired;
  const FaultPoint* due_lie = nullptr;  // at the call that has just arrived
  bool dead = false;
  bool context_dead = false;
  std::vector<Segment> mappings;
  // Registrations that somebody else made, which nobody but their maker ends.
  struct Stranger {
    std::uintptr_t base = 0;
    bool whole = false;             // the store may rely on it, as long as its mapping lives
    std::uint64_t incarnation = 0;  // of the owner, when it was made
  };
  std::vector<Stranger> strangers;
  // Where one of a whole range has been. The store cannot tell a second one there, of another mapping, from the first.
  std::set<std::uintptr_t> strangers_seen;
  [[nodiscard]] const Segment* mapping_of(std::uintptr_t address) const;

  Impl(RunContext& run, FluxonBackend& fluxon_below, CudaBackend& cuda_below, FileBackend& files_below,
       fakes::Owner& fake_owner, fakes::FakeCuda& fake_device);

  std::unique_ptr<FluxonBackend> make_liar(FluxonBackend& honest);
  std::unique_ptr<FluxonBackend> make_fluxon();
  std::unique_ptr<CudaBackend> make_cuda();
  std::unique_ptr<FileBackend> make_files();

  void load(const Trace& trace);
  void begin_step() {
    fired.clear();
    in_step.owner_restarts = 0;
    due_lie = nullptr;
    entered_ = false;
  }
  void reset();

  // Counts the call and lets its events happen.
  Arrival arrive(Call call) { return arrive(call, Subject{}); }
  Arrival arrive(Call call, const Subject& subject) {
    const std::uint32_t nth = context.calls_in_step[static_cast<std::size_t>(call)]++;
    if (context.keep_calls) [[unlikely]]
      keep(call, nth);
    if (dead) return {nullptr, 0, true};
    if (!may_be_faulty(call)) [[likely]]
      return {};
    return arrive_at_fault(call, nth, subject);
  }
  void keep(Call call, std::uint32_t nth) {
    if (context.faults_on) context.calls.push_back({context.step, call, nth});
  }
  void leave(const Arrival& arrival) {
    if (arrival.after_ns != 0) context.inject_time(arrival.after_ns);
  }

  // False: the step has no fault for the call.
  bool may_be_faulty(Call call) {
    enter_step();
    return (fault_mask_ >> static_cast<unsigned>(call) & 1U) != 0;
  }
  FutureFaults faults_of_future(std::uint32_t nth);
  const Choice* choice_at(Call call, std::uint32_t nth, std::span<const ChoiceKind> kinds);
  bool has_choices(Call call) {
    enter_step();
    return (choice_mask_ >> static_cast<unsigned>(call) & 1U) != 0;
  }
  // The number of the call that has just arrived.
  [[nodiscard]] std::uint32_t current_nth(Call call) const {
    return context.calls_in_step[static_cast<std::size_t>(call)] - 1;
  }

  // The fault shows to the caller as `code` of `origin`.
  void fire(const FaultPoint& point, Origin origin, std::int32_t code, std::string subject = {});
  // The state that the fault of the last call with one has struck in.
  void struck_in(CallState state) { struck_ = state; }
  void mark_combination(const FaultPoint& point, std::int32_t code);
  // Another call of the step has failed before.
  [[nodiscard]] bool failed_in_step(const FaultPoint& besides) const;
  void count_cell(const FaultPoint& point, CallState state);
  void fire_lie(const FaultPoint& point);
  Result<std::vector<std::int32_t>> lie_about(const FaultPoint& point, Result<std::vector<std::int32_t>> answer);
  void die(const FaultPoint& point);
  void end_client();
  void restart_owner(std::string_view because);
  // False when nothing could be evicted.
  bool evict(std::uint64_t seed, Keys keys);

  // The errors of backends, worded as theirs.
  [[nodiscard]] static Error fluxon_failure(Call call, std::int32_t code, std::string_view detail);
  [[nodiscard]] static Error cuda_failure(Call call, std::int32_t code, std::string_view detail);
  [[nodiscard]] static Error file_failure(Call call, std::int32_t code, const std::string& path);
  [[nodiscard]] static Error dead_fluxon(Call call);
  [[nodiscard]] static Error dead_cuda(Call call);
  [[nodiscard]] static Error dead_file(Call call, const std::string& path);

 private:
  // Indices into the trace, ordered by (step, call, nth); found anew when the step changed.
  template <class Point>
  struct ByStep {
    const std::vector<Point>* points = nullptr;
    std::vector<std::uint32_t> order;
    std::span<const std::uint32_t> here;
    void load(const std::vector<Point>& from);
    std::uint32_t enter(std::uint32_t step);  // the mask of calls that it names
  };

  void enter_step() {
    if (!entered_ || context.step != entered_step_ || context.faults_on != entered_faults_on_) find_step();
  }
  void find_step();
  Arrival arrive_at_fault(Call call, std::uint32_t nth, const Subject& subject);
  [[nodiscard]] CallState state_of(Call call, const Subject& subject) const;
  [[nodiscard]] CallState state_of_keys(Keys keys) const;
  static bool matches(const FaultPoint& point, Call call, std::uint32_t nth) {
    return point.call == call && (point.nth == nth || (point.persistent && nth > point.nth));
  }

  ByStep<FaultPoint> faults_;
  ByStep<Choice> choices_;
  CallState struck_ = CallState::any;
  std::uint32_t fault_mask_ = 0;
  std::uint32_t choice_mask_ = 0;
  std::uint32_t entered_step_ = 0;
  bool entered_faults_on_ = false;
  bool entered_ = false;
};

}  // namespace holdfast::sim
