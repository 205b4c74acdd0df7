// A TensorTierStore behind the interface of a PathTierStore: device tensors are copied through registered staging
// memory into snapshots that the store owns, and back.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/batch_in_flight.hpp"
#include "holdfast/core/copy_batch.hpp"
#include "holdfast/core/guarded.hpp"
#include "holdfast/core/tensor_file.hpp"
#include "holdfast/core/tier_store.hpp"
#include "holdfast/core/warm_up.hpp"

namespace holdfast {

// Models PathTierStore. `runtime` and `tensors` outlive it, and so does `staging`, which is the caller's host memory
// and at least as long as the longest value. It takes no checksums of its own, whatever a put's receipt could carry:
// what a store keeps in files is its store's to verify. A read compares those that it is given.
//
// Two locks. The turn is for who uses the staging memory, one operation at a time, and is held across its calls: nobody
// else could do anything with that memory. The book's guards what others ask about, is held across no call, and no
// question waits for a turn. Turn before book.
template <Runtime Rt, TensorTierStore Store>
class OwnedSnapshots {
 public:
  OwnedSnapshots(Rt& runtime, Store& tensors, const HostRange& staging)
      : runtime_(runtime),
        store_(tensors),
        staging_(staging),
        registry_(runtime.cuda, runtime.sync, RegistryOptions{}),
        turn_(runtime.sync),
        book_(runtime.sync) {}

  // Touches and registers the staging memory now, so that the first put need not: see warm_up.hpp. It is registered as
  // one piece, and no owner is asked.
  Result<WarmUpReport> warm_up(Absorbed& absorbed, const WarmUpOptions& options = {}) {
    const std::scoped_lock turn(turn_);
    WarmUpRun<typename Rt::ClockType, typename Rt::SyncType> run(runtime_.clock, runtime_.sync, options);
    const bool fresh = !registered_;
    Segment staging;
    staging.write_ptr = staging.read_ptr = staging_.base;
    staging.len = staging_.bytes;
    if (fresh && !(run.goes_on() && run.before_all({&staging, 1}) && run.before_piece())) {
      return make_error(Errc::cancelled, "warm_up", "the caller asked to stop; the staging memory is not registered");
    }
    if (Status ready = ready_staging(absorbed); !ready) return std::move(ready.error());
    if (fresh) run.done(staging.len);
    return run.finish();
  }

  Result<PutReceipt> put(Keys keys, std::span<const DeviceTensor> tensors, const CopyStream& stream, Absorbed& absorbed,
                         Stats* spent = nullptr) {
    Stats own;
    return put_within(keys, tensors, stream, absorbed, spent != nullptr ? *spent : own);
  }

  ReadOutcome restore(const ReadRequest& request, const CopyStream& stream, Absorbed& absorbed,
                      Stats* spent = nullptr) {
    Stats own;
    return restore_within(request, stream, absorbed, spent != nullptr ? *spent : own);
  }

  Result<Presence> probe(Keys keys, Absorbed& /*absorbed*/) {
    for (const std::string_view key : keys) {
      Result<bool> present = store_.has_tensor(key);
      if (!present) return std::move(present.error());
      if (!*present) return Presence{false, epoch()};
    }
    return Presence{true, epoch()};
  }
  // A store of ordinary memory loses nothing by itself.
  [[nodiscard]] static std::uint64_t epoch() { return 0; }

  RemoveOutcome remove(const RemoveRequest& request, Absorbed& /*absorbed*/) {
    RemoveOutcome outcome;
    for (const std::string_view key : request.keys) {
      if (Status removed = store_.remove_tensor(key); !removed) {
        outcome.failures.push_back(std::move(removed.error()));
      } else {
        ++outcome.removed;
      }
    }
    return outcome;
  }

  // Gone with the next pump, or when its key is stored anew.
  void queue_removal(const RemoveRequest& request) {
    book_.with([&](Book& book) {
      for (std::size_t i = 0; i < request.keys.size(); ++i) book.add(request.keys[i], request.value_bytes[i]);
    });
  }

  std::uint32_t pump(std::size_t removals_max, std::vector<Error>& errors) {
    const std::scoped_lock turn(turn_);
    std::vector<std::string> keys;
    book_.with([&](Book& book) {
      for (auto at = book.bytes.begin(); at != book.bytes.end() && keys.size() < removals_max; ++at) {
        keys.push_back(at->first);
      }
    });
    std::uint32_t settled = 0;
    for (const std::string& key : keys) {
      if (Status removed = store_.remove_tensor(key); !removed) {
        errors.push_back(std::move(removed.error()));
        continue;
      }
      book_.with([&](Book& book) { book.forget(key); });
      ++settled;
    }
    if (Status waited = wait_for_copies(); !waited) errors.push_back(std::move(waited.error()));
    return settled;
  }

  void device_torn_down(std::vector<Error>& /*errors*/) {
    const std::scoped_lock turn(turn_);
    if (in_flight_) in_flight_->torn_down();
    note_copies();
    registry_.forget_all();
    registered_ = false;
  }

  Status shut_down() {
    const std::scoped_lock turn(turn_);
    if (Status waited = wait_for_copies(); !waited) {
      return make_error(Errc::quarantined, "shut_down", "a copy may still be in flight", std::move(waited.error()));
    }
    if (!registered_) return {};
    Status unregistered = registry_.unregister_own(staging_.base);
    registered_ = !unregistered.has_value();
    return unregistered;
  }

  [[nodiscard]] bool unsettled(Keys keys) const {
    return book_.with([&](const Book& book) {
      return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return book.bytes.contains(key); });
    });
  }
  [[nodiscard]] ListLength unsettled_length() const {
    return book_.with([](const Book& book) { return ListLength{book.bytes.size(), book.longest}; });
  }
  [[nodiscard]] ListLength quarantine_length() const {
    return book_.with([](const Book& book) {
      return ListLength{book.copies_in_flight ? std::uint64_t{1} : 0,
                        book.copies_were_in_flight ? std::uint64_t{1} : 0};
    });
  }
  [[nodiscard]] std::uint64_t unsettled_keys() const { return unsettled_length().now; }
  [[nodiscard]] std::uint64_t quarantined() const { return quarantine_length().now; }
  [[nodiscard]] std::uint64_t held_bytes() const {
    return book_.with([](const Book& book) {
      std::uint64_t sum = 0;
      for (const auto& [key, bytes] : book.bytes) sum += slot_bytes(bytes);
      return sum;
    });
  }
  [[nodiscard]] RegistryCounts registry_counts() const { return registry_.counts(); }

 private:
  struct Book {
    std::map<std::string, std::uint64_t, std::less<>> bytes;  // of values that have to go, by key
    bool copies_in_flight = false;                            // in the staging memory, as far as anybody can know
    std::uint64_t longest = 0;                                // of `bytes` so far
    bool copies_were_in_flight = false;

    // Storing one anew makes it a value again.
    void add(std::string_view key, std::uint64_t value_bytes) {
      bytes.insert_or_assign(std::string(key), value_bytes);
      longest = std::max<std::uint64_t>(longest, bytes.size());
    }
    void forget(std::string_view key) {
      if (const auto at = bytes.find(key); at != bytes.end()) bytes.erase(at);
    }
  };

  template <class Work>
  auto timed_in(Stats& spent, Stage stage, Work&& work) {
    return timed(spent, stage, runtime_.clock, std::forward<Work>(work));
  }

  Result<PutReceipt> put_within(Keys keys, std::span<const DeviceTensor> tensors, const CopyStream& stream,
                                Absorbed& absorbed, Stats& spent) {
    Status valid = timed_in(spent, Stage::put_copy, [&] { return validate_tensors(runtime_.cuda, tensors); });
    if (!valid) return std::move(valid.error());
    if (keys.size() != tensors.size()) return make_error(Errc::invalid_argument, "put", "one tensor per key");
    const std::scoped_lock turn(turn_);
    Error failure = make_error(Errc::put_failed, "put", fmt::format("{} keys", keys.size()));
    Status ready = timed_in(spent, Stage::segments, [&] { return ready_staging(absorbed); });
    if (!ready) return fail(std::move(failure), std::move(ready.error()), absorbed);
    std::vector<std::vector<std::byte>> snapshots;
    Rounds rounds{Stage::put_copy, Stage::put_wait, spent};
    Status taken;
    for (std::size_t begin = 0; taken && begin < tensors.size(); begin = snapshots.size()) {
      taken = take_round(tensors, begin, stream, snapshots, rounds);
    }
    spent.to_host += rounds.meter.total();
    if (!taken) return fail(std::move(failure), std::move(taken.error()), absorbed);
    std::size_t tried = 0;
    Status stored = timed_in(spent, Stage::put_commit, [&] { return store_values(keys, snapshots, tried, absorbed); });
    for (std::size_t i = 0; i < tried; ++i) {
      // What failed may be there all the same.
      Status settled =
          stored ? Status() : timed_in(spent, Stage::put_undo, [&] { return store_.remove_tensor(keys[i]); });
      if (settled) {
        book_.with([&](Book& book) { book.forget(keys[i]); });
      } else {
        book_.with([&](Book& book) { book.add(keys[i], tensors[i].bytes); });
        failure.suppressed.push_back(std::move(settled.error()));
      }
    }
    if (!stored) return fail(std::move(failure), std::move(stored.error()), absorbed);
    return PutReceipt{PutVerdict::stored, runtime_.clock.now_ns()};
  }

  ReadOutcome restore_within(const ReadRequest& request, const CopyStream& stream, Absorbed& absorbed, Stats& spent) {
    const std::scoped_lock turn(turn_);
    bool touched = false;
    Status restored =
        timed_in(spent, Stage::read_copy, [&] { return validate_tensors(runtime_.cuda, request.tensors); });
    if (restored) restored = timed_in(spent, Stage::segments, [&] { return ready_staging(absorbed); });
    if (!restored) return failed_read(std::move(restored.error()), touched, absorbed);
    std::vector<std::vector<std::byte>> values;
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      Result<std::vector<std::byte>> value =
          timed_in(spent, Stage::read_start, [&] { return store_.get_tensor(request.keys[i]); });
      if (!value && (is_fluxon(value.error(), FluxonErrc::key_not_found) || is_damaged_file(value.error()))) {
        return {ReadVerdict::incomplete, false,
                make_error(Errc::incomplete, "restore", "a key is not in the store", std::move(value.error()))};
      }
      if (!value) return failed_read(std::move(value.error()), touched, absorbed);
      if (value->size() != request.value_bytes[i]) {
        return failed_read(make_error(Errc::layout_mismatch, "restore",
                                      fmt::format("value {} has {} bytes, {} were recorded", i, value->size(),
                                                  request.value_bytes[i])),
                           touched, absorbed);
      }
      values.push_back(std::move(*value));
    }
    if (std::vector<std::size_t> corrupt = corrupt_groups(request, values); !corrupt.empty()) {
      return {ReadVerdict::corrupt, false, make_error(Errc::corrupt, "restore", "values are not what was put"), 0,
              std::move(corrupt)};
    }
    Rounds rounds{Stage::read_copy, Stage::read_wait, spent};
    for (std::size_t begin = 0; restored && begin < values.size();) {
      restored = give_round(request, values, begin, stream, touched, rounds);
    }
    spent.to_device += rounds.meter.total();
    if (!restored) return failed_read(std::move(restored.error()), touched, absorbed);
    return {ReadVerdict::restored, true, {}};
  }

  // From here on the turn is held.

  Status wait_for_copies() {
    if (!in_flight_) return {};
    Status waited = in_flight_->wait();
    note_copies();
    return waited;
  }
  void note_copies() {
    const bool in_flight = in_flight_ && in_flight_->may_be_in_flight();
    book_.with([&](Book& book) {
      book.copies_in_flight = in_flight;
      book.copies_were_in_flight = book.copies_were_in_flight || in_flight;
    });
  }

  // Registered, and no copy of an earlier operation in it any more.
  Status ready_staging(Absorbed& /*absorbed*/) {
    if (Status waited = wait_for_copies(); !waited) {
      return make_error(Errc::quarantined, "ready_staging", "a copy may still be in flight in the staging memory",
                        std::move(waited.error()));
    }
    if (registered_) return {};
    Status registered = registry_.register_own(staging_);
    registered_ = registered.has_value();
    return registered;
  }

  // A put's copies, or a read's.
  struct Rounds {
    Stage copy;
    Stage wait;
    Stats& spent;
    TransferMeter meter{};
  };

  Status run(CopyBatch& copies, const CopyStream& stream, Rounds& rounds) {
    Status validated = timed_in(rounds.spent, rounds.copy, [&] { return copies.validate(registry_); });
    if (!validated) return validated;
    in_flight_.emplace(runtime_, registry_, stream, 0);
    Status submitted = timed_in(rounds.spent, rounds.copy, [&] {
      Status ready = in_flight_->prepare();
      return ready ? in_flight_->submit(copies) : ready;
    });
    Status waited = timed_in(rounds.spent, rounds.wait, [&] {
      Status first = in_flight_->wait();
      // A wait that failed once proves nothing for these bytes, but a second one may free the staging memory.
      if (!first) {
        if (Status again = in_flight_->wait(); !again) first.error().suppressed.push_back(std::move(again.error()));
      }
      return first;
    });
    in_flight_->tell(rounds.meter);
    note_copies();
    if (submitted) return waited;
    if (!waited) submitted.error().suppressed.push_back(std::move(waited.error()));
    return submitted;
  }

  // Up to the first that fails. Where puts are queued they are done when this returns, so that they may be published.
  Status store_values(Keys keys, std::vector<std::vector<std::byte>>& values, std::size_t& tried, Absorbed& absorbed) {
    Status stored;
    for (; stored && tried < keys.size(); ++tried) stored = store_.put_tensor(keys[tried], std::move(values[tried]));
    if constexpr (QueuedTensorStore<Store>) {
      for (FailedPut& failed : store_.flush()) {
        // Others may put into the same store: their failures are told, and are no failures of this put.
        const bool own = std::find(keys.begin(), keys.end(), failed.key) != keys.end();
        if (own && stored) {
          stored = std::move(failed.error);
        } else {
          absorbed.push_back(std::move(failed.error));
        }
      }
    }
    return stored;
  }

  // As many values as fit, from `begin` on.
  Status take_round(std::span<const DeviceTensor> tensors, std::size_t begin, const CopyStream& stream,
                    std::vector<std::vector<std::byte>>& snapshots, Rounds& rounds) {
    CopyBatch copies(CopyDirection::device_to_host);
    std::uint64_t used = 0;
    std::size_t end = begin;
    for (; end < tensors.size() && tensors[end].bytes <= staging_.bytes - used; ++end) {
      copies.add(tensors[end], 0, staging_.base + used, tensors[end].bytes);
      used += tensors[end].bytes;
    }
    if (end == begin) return too_long();
    if (Status ran = run(copies, stream, rounds); !ran) return ran;
    const auto* at = reinterpret_cast<const std::byte*>(staging_.base);
    for (std::size_t i = begin; i < end; at += tensors[i].bytes, ++i) {
      snapshots.emplace_back(at, at + tensors[i].bytes);
    }
    return {};
  }

  Status give_round(const ReadRequest& request, const std::vector<std::vector<std::byte>>& values, std::size_t& begin,
                    const CopyStream& stream, bool& touched, Rounds& rounds) {
    CopyBatch copies(CopyDirection::host_to_device);
    std::uint64_t used = 0;
    std::vector<std::uintptr_t> placed(values.size(), 0);
    std::size_t end = begin;
    for (; end < values.size() && values[end].size() <= staging_.bytes - used; ++end) {
      placed[end] = staging_.base + used;
      std::memcpy(reinterpret_cast<void*>(placed[end]), values[end].data(), values[end].size());
      used += values[end].size();
    }
    if (end == begin) return too_long();
    bool any = false;
    for (const ReadCopy& copy : request.copies) {
      if (copy.key < begin || copy.key >= end) continue;
      if (copy.value_offset > values[copy.key].size() || copy.bytes > values[copy.key].size() - copy.value_offset) {
        return make_error(Errc::invalid_argument, "restore", fmt::format("a copy reaches past value {}", copy.key));
      }
      copies.add(request.tensors[copy.tensor], copy.tensor_offset, placed[copy.key] + copy.value_offset, copy.bytes);
      any = true;
    }
    begin = end;
    if (!any) return {};
    touched = true;
    return run(copies, stream, rounds);
  }

  static std::vector<std::size_t> corrupt_groups(const ReadRequest& request,
                                                 const std::vector<std::vector<std::byte>>& values) {
    std::vector<std::size_t> corrupt;
    std::size_t key = 0;
    for (std::size_t g = 0; g < request.checksums.size() && g < request.atomic_group_lens.size(); ++g) {
      std::vector<std::uint64_t> of_values;
      for (std::uint32_t i = 0; request.checksums[g] && i < request.atomic_group_lens[g]; ++i) {
        of_values.push_back(checksum_of_value(values[key + i]));
      }
      if (request.checksums[g] && fold_checksums(of_values) != *request.checksums[g]) corrupt.push_back(g);
      key += request.atomic_group_lens[g];
    }
    return corrupt;
  }

  static Error too_long() {
    return make_error(Errc::invalid_argument, "stage", "a value is longer than the staging memory");
  }

  static Error fail(Error error, Error cause, Absorbed& absorbed) {
    error.causes.push_back(std::move(cause));
    return with_suppressed(std::move(error), absorbed);
  }

  static ReadOutcome failed_read(Error cause, bool touched, Absorbed& absorbed) {
    Error error = make_error(Errc::get_failed, "restore", {}, std::move(cause));
    return {ReadVerdict::failed, touched, with_suppressed(std::move(error), absorbed)};
  }

  Rt& runtime_;
  Store& store_;
  const HostRange staging_;
  SegmentRegistry<typename Rt::Cuda, typename Rt::SyncType> registry_;
  typename Rt::SyncType::Mutex turn_;
  // Used by whoever has the turn:
  bool registered_ = false;
  std::optional<BatchInFlight<Rt>> in_flight_;
  Guarded<Book, typename Rt::SyncType> book_;
};

}  // namespace holdfast
