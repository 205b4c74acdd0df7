// The fault injector: the only place where faults live. It offers exactly what the fault table allows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "holdfast/fakes/owner.hpp"
#include "holdfast/sim/run_context.hpp"

namespace holdfast::sim {

// How a fault plays, where the fault table leaves it open:
// - The nth commit_wait of a step is the future of the nth commit accepted in it, since what becomes of the keys is
//   decided at the commit. It fires when that future is waited for, perhaps in a later step.
// - part of a commit: each key drawn from `arg`, at least one not code 0. lost: all stored; with an odd `arg` some of
//   them only later, within the settle bound.
// - late: virtual time passes before the call, with an odd `arg` after it; of a future: until it answers.
// - before of host_register with 712: `arg` 0 = somebody registered the whole range, 1 = its first half, 2 = its
//   second half; nobody adds to what somebody holds of the range.
// - evict: the keys of the call, as far as they may go, and with `arg` other than 0 some others drawn from it; of a
//   call without keys at least one.
// - death at a file_write leaves a prefix of `arg` bytes if that is not 0, at a file_rename with an odd `arg` the
//   renamed file.
// - persistent: at every later such call of the step too.

// A fault that fired. The error that the caller saw is marked only here; to the core it looks real.
struct FiredFault {
  std::uint32_t ordinal = 0;
  FaultPoint point;
  Origin origin = Origin::fluxon;
  std::int32_t code = 0;          // as the caller sees it; 0 when it sees no error (late, gone, evict)
  std::string subject;            // the key, plan ordinal or range it struck
  std::string_view told_as = {};  // the call that its error names, when not its own
};

// What the injector keeps of the step that runs; steps that run side by side take turns with it.
struct StepFaults {
  std::vector<FiredFault> fired;
  std::uint32_t owner_restarts = 0;
};

class Injector {
 public:
  // The layers below are the tap's; the fakes themselves serve for the environment's choices and events.
  Injector(RunContext& context, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files, fakes::Owner& owner,
           fakes::FakeCuda& device);
  ~Injector();

  // Takes the faults and choices of `trace`, which outlives the run.
  void load(const Trace& trace);

  FluxonBackend& fluxon();
  CudaBackend& cuda();
  FileBackend& files();

  // All faults fired in the current step, in order. Cleared by `begin_step`.
  [[nodiscard]] const std::vector<FiredFault>& fired() const;
  void begin_step();
  // Another step's turn: its own come back.
  void swap_step(StepFaults& others);
  // The client is dead: every call answers StoreClosed (or its like) without effect, until `new_incarnation`.
  [[nodiscard]] bool client_dead() const;
  // Ends the client if it lives, in the owner and on the device, and lets a new one begin.
  void new_incarnation();
  // A sticky error was injected: every CUDA call fails until `tear_down`.
  [[nodiscard]] bool context_dead() const;
  // The dead context is replaced; the device itself is torn down by whoever owns its tensors.
  void tear_down();
  // What lasts of the faults ends: whoever registered a part of a range lets it go, and so does whoever registered an
  // older mapping, once no copy is in flight there.
  void end_faults();
  // Where the owner's generations are mapped, in turn: a mapping that is used again hides its old pages, and the device
  // goes on with those.
  void expect_mappings(std::vector<Segment> mappings);
  // The owner restarts, as at a fault of kind gone.
  void restart_owner();
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::sim
