// The executor's inside: the world of one run, and what its steps have in common.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/fakes/arena.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/fakes/fluxon_owner.hpp"
#include "holdfast/fakes/memory_files.hpp"
#include "holdfast/fakes/virtual_clock.hpp"
#include "holdfast/sim/claim_book.hpp"
#include "holdfast/sim/dispositions.hpp"
#include "holdfast/sim/executor.hpp"
#include "holdfast/sim/hazard_watch.hpp"
#include "holdfast/sim/injector.hpp"
#include "holdfast/sim/monitor.hpp"
#include "holdfast/sim/oracle.hpp"
#include "holdfast/sim/scheduler.hpp"
#include "holdfast/sim/stand_in_engine.hpp"
#include "holdfast/sim/tap.hpp"
#include "holdfast/sim/turnstile.hpp"
#include "operation_record.hpp"
#include "perturbed_process.hpp"

namespace holdfast::sim {

class MemoryFilePort final : public FileBackend {
 public:
  explicit MemoryFilePort(fakes::MemoryFiles& files) : files_(files) {}
  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    return files_.read(path, bytes_max);
  }
  Status write(const std::string& path, const std::string& bytes) override { return files_.write(path, bytes); }
  Status sync(const std::string& path) override { return files_.sync(path); }
  Status rename(const std::string& from, const std::string& to) override { return files_.rename(from, to); }
  Status remove(const std::string& path) override { return files_.remove(path); }

 private:
  fakes::MemoryFiles& files_;
};

class WatchedTensors final : public TensorListener {
 public:
  WatchedTensors(Monitor& monitor, HazardWatch& hazards) : monitor_(monitor), hazards_(hazards) {}
  void on_tensor(std::uintptr_t base, std::uint64_t bytes) override { monitor_.declare_tensor(base, bytes); }
  void on_tensor_gone(std::uintptr_t base) override { monitor_.forget_tensor(base); }
  void on_kernel(StreamRef stream, std::span<const RangeAccess> accesses) override {
    hazards_.kernel(stream, accesses);
  }
  void on_free(StreamRef stream, const MemoryRange& memory) override { hazards_.free_device(stream, memory); }

 private:
  Monitor& monitor_;
  HazardWatch& hazards_;
};

struct Executor::Impl {
  struct Session {
    SessionId id = 0;
    std::vector<NodeIndex> path;
    std::uint64_t namespace_id = 0;
    std::uint32_t break_even_k = 1;
    bool mistaken = false;   // its engine is not what its namespace was made for
    bool unnoticed = false;  // and its blobs or latents look like right ones: it must not write any
    bool open = false;
    bool generated = false;
    std::unique_ptr<StandInEngine> engine;  // while it is open
    std::size_t output = 0;                 // its place in RunResult::frame_hashes
  };
  struct Hold {
    std::vector<std::uint64_t> identities;
  };
  // How a step ended, for the log and for people.
  struct Ending {
    bool skipped = false;
    std::int32_t code = 0;  // of the outermost error; 0 = success
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::string text;  // only where somebody reads it
  };

  Impl(SystemFactory system_factory, const Perturbation& how);

  RunResult run(const Trace& trace, const RunOptions& options);

  // ---- executor.cpp: the run.
  void begin_run(const Trace& trace, const RunOptions& options);
  void learn_mappings(const fakes::OwnerOptions& options);
  void lend_staging(std::uint64_t bytes);
  void run_step(const Step& step);
  void end_step(const Step& step, const Ending& ending);
  // Of the faults that fired since the last time in this step.
  void check_told(const Step& step, const Inspection& before, bool inspected);
  RunResult take_result();

  // What the step comes to, up to the death of its client.
  Ending perform(const Step& step);
  // The client has died in it.
  void after_death(const Step& step, Ending& ending);

  // ---- executor_side_by_side.cpp: steps that take turns.
  void run_side_by_side();
  // Those that were not begun when the client died.
  [[nodiscard]] std::vector<const Step*> run_together(std::span<const Step* const> steps);
  void run_turn(std::size_t turn);
  // Who runs gives its place to another.
  void swap_turn(std::size_t turn);
  [[nodiscard]] std::uint32_t host_of(const Step& step);
  [[nodiscard]] StepSwitch switch_of(const Decision& decision, FiberId to, std::span<const Step* const> steps) const;
  [[nodiscard]] std::vector<Switch> switches_of(std::span<const Step* const> steps) const;
  [[nodiscard]] std::uint64_t end_state() const;

  // ---- executor_steps.cpp: what the store is asked to do.
  Ending execute(const Step& step);
  Ending open(const Step& step);
  Ending close(const Step& step);
  Ending generate(const Step& step);
  Ending resume(const Step& step);
  Ending hold(const Step& step);
  Ending unhold(const Step& step);
  Ending evict(const Step& step);
  Ending make_room(const Step& step);
  Ending warm_up(const Step& step);
  Ending pump();
  Ending snapshot();
  // The parts that phase two needs as well.
  [[nodiscard]] Session* open_session(SessionId id, const Step& step, const Geometry& real, const Geometry& declared,
                                      Ending& ending);
  void close_session(Session& session, Ending& ending);
  std::optional<IngestOutcome> generate_chunk(Session& session, Ending& ending);
  std::uint32_t resume_session(Session& session, Ending& ending);
  void check_damage_told(const Result<ResumeOutcome>& answer);
  void check_retries(const Session& session, const ResumeOutcome& outcome);
  void mark_ingest(const Session& session, const ClaimBook::Node& node, const IngestOutcome& outcome,
                   bool was_unsettled);
  void mark_resume(const Session& session, const ResumeOutcome& outcome, std::uint32_t ready_before);
  void mark_refused(const ClaimBook::Node& node, const Error& error);
  // The number of leading chunks of which a blob is claimed; of which its latent is too, where the layout has them.
  [[nodiscard]] std::uint32_t claimed_chunks(const Session& session, bool latents_too = false);
  // Those claimed at some instant since the book had counted so many withdrawals.
  [[nodiscard]] std::uint32_t chunks_claimed_since(const Session& session, std::uint64_t withdrawals);

  // ---- executor_environment.cpp: what nobody asked for.
  Ending store_evict(const Step& step);
  Ending damage(const Step& step, NodeIndex index, Claim claim, const std::string& locator);
  Ending owner_restart();
  Ending restart();
  Ending pass_time(const Step& step);
  // The client dies, if it has not yet, and a new one starts from the last snapshot. False: the new one died too.
  bool restart_client(Ending& ending);
  // After a death; bounded, and with no more faults at the last try.
  void survive_death(Ending& ending);
  void tear_down_device();
  void drop_sessions(bool context_gone);
  void note_old_keys();

  // ---- executor_drain.cpp: phase two.
  void drain();
  void settle();
  // What was reused and moved so far; nothing else of a result.
  [[nodiscard]] RunResult totals() const;
  void set_totals(const RunResult& to);
  void close_everything();
  void check_clean_cycle();
  [[nodiscard]] std::string clean_cycle(std::uint32_t attempt);
  struct PathAgain {
    bool wrote = false;
    bool no_room = false;
    std::string why;  // it was not all stored and resumed
  };
  void check_path_again();
  [[nodiscard]] const Step* path_to_try();
  // Resumes clean_step's path, and writes all of it but its last chunk.
  [[nodiscard]] PathAgain path_again(SessionId id, const Geometry& geometry);
  // Once the store has been asked for everything, what is claimed is there.
  void check_index_agrees();
  void check_store_is_accounted(const Inspection& inspection);
  void check_owner_baseline();

  // ---- executor_capacity.cpp: what may be held, and what is accounted.
  // Before a put of so many slot bytes starts.
  void check_put_fits(std::uint64_t slots);
  // While no step is under way.
  void check_accounts();
  // Slot bytes of what is stored and this client knows of; nothing when that cannot be told.
  [[nodiscard]] std::optional<std::uint64_t> held_and_known();
  void check_capacity();

  // ---- What they share.
  [[nodiscard]] Session* find(SessionId id, bool open_only = true);
  [[nodiscard]] ClaimBook::Node& book_node(NodeIndex index) { return *book.find(oracle.node(index).identity); }
  // An operation of the store between the monitor's begin and end; its error is noted.
  template <class Ask>
  auto operate(Operation operation, Ending& ending, Ask&& ask) {
    begin_clock(operation);
    monitor.begin(operation);
    return finish(ending, ask());
  }
  template <class Answer>
  Answer finish(Ending& ending, Answer answer) {
    monitor.end(answer.has_value());
    check_clock();
    if (!answer) note_error(ending, answer.error());
    return answer;
  }
  // An operation may take only so much virtual time of its own.
  [[nodiscard]] Nanos own_time() const { return clock.now_ns() - context.injected_ns; }
  void begin_clock(Operation operation);
  void check_clock();
  void note_error(Ending& ending, const Error& error);
  [[nodiscard]] bool wants_text() const { return context.log.keeps_text() || (options != nullptr && options->on_step); }
  std::unique_ptr<StandInEngine> take_engine();
  void keep_output(Session& session);

  SystemFactory factory;
  Perturbation perturbation;

  fakes::VirtualClock clock;
  RunContext context{clock};
  fakes::Arena arena;
  std::unique_ptr<fakes::Owner> made_owner;
  fakes::Owner& owner;
  std::unique_ptr<fakes::FakeCuda> made_device;
  fakes::FakeCuda& device;
  fakes::MemoryFiles files;
  MemoryFilePort file_port{files};
  Tap tap{context, owner, device};
  HazardWatch hazards{context, tap.fluxon(), tap.cuda(),
                      [this](std::uintptr_t address) { return device.location(address); }};
  Injector injector{context, hazards.fluxon(), hazards.cuda(), file_port, owner, device};
  Monitor monitor{context, injector.fluxon(), injector.cuda(), injector.files(), tap};
  Oracle oracle{context};
  ClaimBook book{monitor, oracle};
  WatchedTensors tensors{monitor, hazards};
  SimSync sync;
  Ports ports{monitor.fluxon(), monitor.cuda(), monitor.files(), clock, sync};

  // Where the owner's generations are mapped, in turn. The addresses stay while no run needs larger ones.
  std::vector<Segment> mappings;
  std::uint64_t mapped_bytes = 0;
  // Host memory for a store that takes owned snapshots.
  std::uintptr_t staging_base = 0;
  std::uint64_t staging_bytes = 0;

  // ---- One run.
  const Trace* trace = nullptr;
  const RunOptions* options = nullptr;
  SystemOptions system_options;
  std::unique_ptr<SystemUnderTest> system;
  RunResult result;
  std::deque<Session> sessions;  // in order of opening
  std::map<SessionId, Session*> sessions_by_id;
  std::map<std::uint32_t, Hold> holds;
  std::vector<std::unique_ptr<StandInEngine>> spare_engines;
  std::set<std::uint32_t> steps_with_registration_faults;
  std::set<std::string, std::less<>> old_keys;  // in the owner's store when a client died
  bool undecided_at_death = false;              // others were on their way there
  bool hostile = false;                         // the trace has lies
  // What belongs to the step that runs; steps that run side by side take turns with it.
  struct Doing {
    ToldErrors told;
    Absorptions absorptions;
    std::size_t faults_checked = 0;  // of those fired in this step
    Operation operation{};
    // Virtual time but for what faults let pass: when the operation began, and what others had of it since.
    Nanos began_ns = 0;
    Nanos left_ns = 0;
    Nanos others_ns = 0;
    ChunkSource source;
  };
  Doing doing;
  std::uint64_t times_switched = 0;  // another step went on instead of the one that ran

  // ---- Steps that run side by side.
  struct Turn {
    const Step* step = nullptr;
    bool begun = false;
    // While it is not its turn, what belongs to it; while it is, what belongs to whoever runs them all.
    StepScope scope{};
    StepFaults faults{};
    OperationRecord operation{};
    Doing doing{};
  };
  class Turns final : public TurnTaker, public LockListener {
   public:
    explicit Turns(Impl& impl) : impl_(impl) {}
    void before(Call call) override;
    void locked(std::uint64_t mutex) override;
    void unlocked(std::uint64_t mutex) override;

   private:
    Impl& impl_;
  };
  bool side_by_side = false;  // in this run
  Scheduler scheduler;
  Turns turn_taker{*this};
  Turnstile turnstile{turn_taker, monitor.fluxon(), monitor.cuda(), monitor.files()};
  Ports turn_ports{turnstile.fluxon(), turnstile.cuda(), turnstile.files(), clock, sync};
  std::vector<Turn> turns;
  std::map<std::uint32_t, std::uint32_t> hosts;                   // by lane, for the hazard checker
  std::map<std::uint32_t, std::array<std::uint64_t, 4>> endings;  // by step, when kept
  std::uint32_t rounds = 0;                                       // of steps that ran together
  std::size_t died_in = 0;                                        // the turn that its client's death ended, from 1
  Ending died_with;
  std::vector<Error> last_errors;  // of phase two's clean session, for its message
  std::vector<std::string> clean_actions;
  Step clean_step;
};

}  // namespace holdfast::sim
