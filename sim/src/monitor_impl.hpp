// The monitor's inside: the ledgers, the operation that is running, and what all its seams do alike.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batch_check.hpp"
#include "claim_ledger.hpp"
#include "copy_ledger.hpp"
#include "holdfast/sim/monitor.hpp"
#include "operation_record.hpp"
#include "plan_ledger.hpp"
#include "segment_ledger.hpp"

namespace holdfast::sim {

// More than any operation needs: one that makes more retries for ever, and virtual time would never show it.
inline constexpr std::uint64_t kCallsOfAnOperationMax = 4'000'000;

std::string_view name_of(Operation operation);

struct DeviceRange {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  std::uint32_t ordinal = 0;  // from 1, in order of declaration
};

struct Monitor::Impl {
  struct Fluxon;
  struct Pending;
  struct Cuda;
  struct Files;

  RunContext& context;
  FluxonBackend& below_fluxon;
  CudaBackend& below_cuda;
  FileBackend& below_files;
  const Tap& tap;
  std::unique_ptr<FluxonBackend> fluxon;
  std::unique_ptr<CudaBackend> cuda;
  std::unique_ptr<FileBackend> files;

  SegmentLedger segments;
  RegistrationLedger registrations;
  PlanLedger plans;
  CopyLedger copies;
  ClaimLedger claims;
  OperationRecord operation;
  std::uint32_t last_ordinal = 1;            // of an operation
  std::uint32_t last_of_earlier_client = 0;  // the ordinal of its last operation
  std::vector<DeviceRange> tensors;          // ordered by base
  std::size_t last_tensor = 0;
  std::uint32_t tensor_ordinal = 0;
  std::uint32_t registration_ordinal = 0;
  std::uint32_t warm_epoch = kNowhere;  // of the last warm-up that succeeded
  bool memory_store = false;
  bool world_goes = false;  // of what is withdrawn
  PutWatch watch_put;
  bool side_by_side = false;
  std::uint64_t claim_changes = 0;
  std::uint32_t last_epoch_before = 0;  // of the operation that ended last, when it began
  bool last_doubtful = false;           // it was not told all that it asked
  bool last_read_damaged = false;       // it was given values, of what is claimed, that were damaged
  std::uint64_t heard = 0;              // answers of wait_local_segments_ready
  std::uint64_t known = 0;              // the newest of them that has been learned
  std::vector<std::uint64_t> fields;    // of the event being logged

  Impl(RunContext& run, FluxonBackend& fluxon_below, CudaBackend& cuda_below, FileBackend& files_below,
       const Tap& tap_below);
  std::unique_ptr<FluxonBackend> make_fluxon();
  std::unique_ptr<CudaBackend> make_cuda();
  std::unique_ptr<FileBackend> make_files();

  [[nodiscard]] Nanos now() const { return context.clock.now_ns(); }
  void violate(Invariant invariant, Call call, std::string message, std::string_view culprits,
               std::vector<Thing> who = {}) {
    context.violate(invariant, name_of(call), std::move(message), culprits, std::move(who));
  }
  // The call that is logged next is about this.
  void about(ThingKind kind, std::uint32_t number) { context.about = {kind, number}; }
  // Each call that crosses the seam begins its event here.
  std::vector<std::uint64_t>& count_call() {
    ++context.runtime_calls;
    if (++operation.calls > kCallsOfAnOperationMax) [[unlikely]]
      endless();
    fields.clear();
    return fields;
  }
  // `text()` says what was called for; the error's detail is added.
  template <class T, class Text>
  void log(Call call, const Result<T>& answer, Text&& text) {
    context.log.call(now(), call, answer ? 0 : answer.error().code, fields, [&] {
      std::string line = text();
      if (!answer && !answer.error().detail.empty()) line += ": " + answer.error().detail;
      return line;
    });
  }

  // The segments that the operation was told of. Beside others, it has the time until it goes on to tell them.
  void hear(std::span<const Segment> told);
  void learn_what_was_heard();
  [[nodiscard]] std::uint32_t epoch_at_call() const {
    return side_by_side ? operation.epoch_at_call : segments.epoch();
  }
  // The call had begun when another operation told of the generation that ended this plan or handle.
  [[nodiscard]] bool excusable(std::uint64_t name, bool handle) const {
    return side_by_side && plans.went_stale_after(name, handle, operation.epoch_at_call);
  }

  // The mappings that the caller knows were made ready, and nothing has undone it. Beside others it cannot be told
  // which mappings an operation knows.
  [[nodiscard]] bool is_warm() const { return !side_by_side && warm_epoch == segments.epoch(); }

  // ---- Moments, where somebody asked for them: what begins to live, and its end (monitor_moments.cpp).
  void tell_opened(const PlanRecord& plan, Call by, const std::string& whose);
  void tell_opened(const HandleRecord& handle, const std::string& whose);
  void tell_submitted(const FlightBatch& batch, std::span<const HostSide> sides);
  void tell_closed(const Thing& thing, Call by);
  // What is live but for what another call has ended since.
  [[nodiscard]] std::vector<Thing> live_things() const;
  // Those that are not live any more have ended without a call.
  void tell_gone(std::span<const Thing> before, const std::string& why);

  // The operation that is running has made so many calls that it will never stop.
  [[noreturn]] void endless() const;

  // ---- Copies (monitor_cuda.cpp).
  void covered(CopyMark mark, Call by);
  void wait_failed(CopyMark mark, Call call);
  void all_landed();
  [[nodiscard]] const DeviceRange* tensor_at(std::uintptr_t address, std::uint64_t bytes);

  // ---- Agreement (monitor_agreement.cpp).
  // Consecutive keys of a get that belong to one claim.
  struct AskedRun {
    std::uint32_t node = kNobody;
    Claim claim = Claim::kv;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  void note_claimed(NodeRecord& node, Claim claim);
  void note_get(Keys keys, std::span<const std::uint32_t> of, std::size_t groups, const Result<GetStart>& answer);
  void note_asked(const AskedRun& run, Keys keys, std::size_t asked_keys, const Result<GetStart>& answer, bool all);
  // A transfer of it found something gone.
  void note_vanished(const HandleRecord& handle);
  // A read plan over `keys`, which its transfer gave.
  void note_damaged(const HandleRecord& handle, std::span<const std::uint32_t> keys);
  void check_asked_for(const AskedRun& run, const NodeRecord& node);
  // By the operation: a value of it is not its source's.
  [[nodiscard]] bool was_found_corrupt(std::uint32_t node, Claim claim, std::string_view locator);
  // Of a claim that is withdrawn, not to evict it.
  void check_withdrawal(std::uint32_t node, Claim claim, std::string_view locator, bool corrupt);
  [[nodiscard]] bool owner_usable() const;
  // At the end of an operation.
  void check_agreement(bool ok);
  void relied_on(std::uint64_t identity, Claim claim);
  // `stored`: the hashes of the keys that the store has.
  [[nodiscard]] std::vector<std::string> claims_not_among(std::vector<std::uint64_t> stored) const;

  // ---- Claims (monitor_claims.cpp).
  void begin(Operation kind, std::uint32_t source);
  void end(bool ok);
  void end_warm_up(bool ok);
  void claim(Claim claim, std::string_view locator, const ChunkShape& shape);
  void hold(std::uint64_t identity);
  void withdraw(Claim claim, std::string_view locator);
  // Before the key is asked to go, and after.
  void removing(std::uint32_t key, std::string_view name);
  void removed(std::uint32_t key, const Status& answer);
  [[nodiscard]] bool unsettled(const NodeRecord& node) const;
  [[nodiscard]] std::string name(const NodeRecord& node) const;
  void check_all_ended();
  void new_incarnation();
  void device_torn_down();
  void reset();

 private:
  // Why the eviction of a kv blob or a latent of the node would break its promise; empty when it would not.
  [[nodiscard]] std::string why_it_stays(const NodeRecord& node, Claim claim) const;
  // Each key of it answered 0 in this generation, and nothing has spoken against it since.
  [[nodiscard]] bool surely_stored(const NodeRecord& node, Claim claim) const;
  [[nodiscard]] bool proven(Claim claim, std::uint32_t node, std::string_view locator, const ChunkShape& shape);
  void check_bytes(Claim claim, const NodeRecord& node, std::string_view locator, const ChunkShape& shape);
  // `visit(index, key)` of each key of a claim, in order.
  template <class Visit>
  void each_key(Claim claim, std::string_view locator, const ChunkShape& shape, Visit&& visit) {
    if (claim == Claim::latent) {
      visit(std::size_t{0}, locator);
      return;
    }
    key_name_.assign(locator);
    key_name_ += ":L";
    const std::size_t stem = key_name_.size();
    for (std::size_t value = 0; value < shape.values(); ++value) {
      key_name_.resize(stem);
      fmt::format_to(std::back_inserter(key_name_), "{}{}", shape.layer_of(value),
                     kPartSuffixes[static_cast<std::size_t>(shape.part_of(value))]);
      visit(value, std::string_view(key_name_));
    }
  }

  std::string key_name_;
};

}  // namespace holdfast::sim
