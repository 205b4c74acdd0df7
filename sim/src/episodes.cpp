// The generator's episodes. Each makes one situation of the contract likely and leaves the rest to chance.
#include <algorithm>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "trace_author.hpp"

namespace holdfast::sim {
namespace {

constexpr std::int32_t kWentInvalid = static_cast<std::int32_t>(FluxonErrc::invalid_argument);
constexpr std::int32_t kExists = static_cast<std::int32_t>(FluxonErrc::key_already_exists);
constexpr std::int32_t kBeingWritten = static_cast<std::int32_t>(FluxonErrc::key_being_written);
constexpr std::int32_t kWentMissing = static_cast<std::int32_t>(FluxonErrc::key_not_found);
constexpr std::int32_t kNetworkDown = static_cast<std::int32_t>(FluxonErrc::network);
constexpr std::int32_t kTimeout = static_cast<std::int32_t>(CommitCode::timeout);
constexpr std::int32_t kUnknown = static_cast<std::int32_t>(CommitCode::unknown);
constexpr std::int32_t kGone = static_cast<std::int32_t>(CommitCode::reservation_gone);
constexpr std::int32_t kRestarted = static_cast<std::int32_t>(CommitCode::owner_restarted);
constexpr std::int32_t kLaunchFailed = static_cast<std::int32_t>(CudaErrc::launch_failure);
constexpr std::int32_t kBadValue = static_cast<std::int32_t>(CudaErrc::invalid_value);
constexpr std::int32_t kNoMemory = static_cast<std::int32_t>(CudaErrc::memory_allocation);
constexpr std::int32_t kAlready = static_cast<std::int32_t>(CudaErrc::host_memory_already_registered);
constexpr std::int32_t kNotSupported = static_cast<std::int32_t>(CudaErrc::not_supported);

// How many places an owner's mappings take in turn.
constexpr std::uint32_t kOwnerMappings = 3;

// Long enough for whatever was submitted to be decided.
constexpr Nanos kSettled = kSettleBound + kSecond;

}  // namespace

void TraceAuthor::play(Episode episode) {
  switch (episode) {
    case Episode::write:
      return play_write();
    case Episode::reuse:
      return play_reuse();
    case Episode::rewrite:
      return play_rewrite();
    case Episode::put_trouble:
      return play_put_trouble();
    case Episode::leftovers:
      return play_leftovers();
    case Episode::get_trouble:
      return play_get_trouble();
    case Episode::evict:
      return play_evict();
    case Episode::store_evict:
      return play_store_evict();
    case Episode::make_room:
      return play_make_room();
    case Episode::owner_restart:
      return play_owner_restart();
    case Episode::restart:
      return play_restart();
    case Episode::death:
      return play_death();
    case Episode::mistaken_layout:
      return play_mistaken_layout();
    case Episode::idle:
      return play_idle();
  }
}

void TraceAuthor::play_write() {
  std::uint32_t keep = 0;
  const Path path = fresh_path(&keep);
  continue_on(path);
}

void TraceAuthor::play_reuse() {
  const Path known = known_path();
  const std::uint32_t chunks = known.chunks();
  // The whole path, a shorter one, or a fork.
  const std::uint64_t form = rng_.below(4);
  if (form < 2) {
    continue_on(known);
  } else if (form == 2) {
    continue_on(fork_of(known, static_cast<std::uint32_t>(1 + rng_.below(chunks)), 0));
  } else {
    const auto keep = static_cast<std::uint32_t>(rng_.below(chunks));
    continue_on(fork_of(known, keep, 1));
  }
}

void TraceAuthor::play_rewrite() {
  const Path known = known_path();
  const Id session = open(known);
  write_on(session, known, static_cast<std::uint32_t>(rng_.below(known.chunks())));
}

void TraceAuthor::put_fault(Id step, const Path& path) {
  const auto put = static_cast<std::uint32_t>(rng_.below(puts(path)));
  const std::uint32_t batch = put < latent_puts(path) ? 0 : latent_puts(path);
  const std::uint64_t seed = rng_.below(1 << 16);
  switch (rng_.below(13)) {
    case 0:
      return fault(step, Call::local_fast_put_start, put, FaultKind::before,
                   any_of({kWentInvalid, kExists, kBeingWritten, kNetworkDown}));
    case 1:
      return fault(step, Call::local_fast_put_start, put, one_in(2) ? FaultKind::lost : FaultKind::before,
                   kNetworkDown);
    case 2:
      return fault(step, Call::local_fast_put_start, put, FaultKind::before, any_of({kExists, kBeingWritten}));
    case 3:
      fault(step, Call::copy_batch, batch, any_of({FaultKind::before, FaultKind::part}), kLaunchFailed, seed);
      if (one_in(3)) any_fault(step, Call::put_abort, 0);
      if (one_in(4)) fault(step, wait_call(), batch, FaultKind::before, kLaunchFailed);
      return;
    case 4:
      fault(step, wait_call(), batch, FaultKind::before, kLaunchFailed, 0, one_in(8));
      if (one_in(3)) any_fault(step, Call::put_abort, 0);
      return;
    case 5:
      fault(step, Call::local_fast_put_commit, put, FaultKind::before, kWentInvalid);
      if (one_in(3)) any_fault(step, Call::put_abort, 0);
      return;
    case 6:
      return fault(step, Call::commit_wait, put, FaultKind::before,
                   any_of({kNetworkDown, kTimeout, kUnknown, kRestarted, kGone}));
    case 7:
    case 8:
      return fault(step, Call::commit_wait, put, FaultKind::lost, any_of({kNetworkDown, kTimeout, kUnknown}));
    case 9:
      return fault(step, Call::commit_wait, put, FaultKind::part, any_of({kTimeout, kUnknown, kGone}), seed);
    case 10:
      return fault(step, Call::commit_wait, put, FaultKind::late, 0,
                   any_of<std::uint64_t>({kMillisecond, 3 * kSecond, 11 * kSecond, 61 * kSecond}));
    case 11:  // the plans before it grow old
      return fault(step, Call::local_fast_put_start, puts(path) - 1, FaultKind::time, 0, kPlanTimeout + kSecond);
    default:
      return any_fault(step,
                       any_of({Call::local_fast_put_start, Call::copy_batch, wait_call(), Call::local_fast_put_commit,
                               Call::commit_wait, Call::pointer_attributes}),
                       put);
  }
}

void TraceAuthor::follow_up(const Path& path, std::uint32_t depth) {
  Path twin = path;
  twin.written = depth;
  switch (rng_.below(6)) {
    case 0:
      return;
    case 1:
      continue_on(twin);
      return;
    case 2:
      trace_.pass_time(one_in(8) ? kPlanTimeout + kMinute : kSettled);
      continue_on(twin);
      return;
    case 3:
      trace_.pass_time(kSettled);
      trace_.pump();
      continue_on(twin);
      return;
    case 4:
      continue_on(twin);
      trace_.pass_time(kSettled);
      trace_.pump();
      continue_on(twin);
      return;
    default:
      trace_.pump();
      trace_.pass_time(static_cast<Nanos>(rng_.between(1, 120)) * kSecond);
      trace_.pump();
      return;
  }
}

void TraceAuthor::play_put_trouble() {
  std::uint32_t keep = 0;
  const Path path = fresh_path(&keep);
  const Id session = open(path);
  if (keep > 0) resume(session);
  put_fault(trace_.generate(session), path);
  write_on(session, path, keep + 1);
  follow_up(path, keep);
}

void TraceAuthor::play_leftovers() {
  std::uint32_t keep = 0;
  const Path path = fresh_path(&keep);
  const Id session = open(path);
  if (keep > 0) resume(session);
  const Id step = trace_.generate(session);
  const std::uint32_t first = latent_puts(path);
  const std::uint32_t failing = first + (kv_groups(path) > 1 ? 1 : 0);
  const std::uint64_t seed = rng_.below(1 << 16);
  switch (rng_.below(4)) {
    case 0:
      fault(step, Call::local_fast_put_commit, failing, FaultKind::before, kWentInvalid);
      break;
    case 1:
      fault(step, Call::commit_wait, failing, FaultKind::before, any_of({kGone, kRestarted}));
      break;
    case 2:
      fault(step, Call::commit_wait, failing, FaultKind::part, any_of({kTimeout, kGone}), seed);
      break;
    default:
      fault(step, Call::commit_wait, failing, FaultKind::lost, any_of({kNetworkDown, kTimeout}));
      break;
  }
  // A route that comes late makes the removal miss; a removal may fail by itself.
  if (one_in(2)) {
    trace_.choice({step, Call::local_fast_put_commit, first, ChoiceKind::route_after,
                   static_cast<std::uint64_t>(rng_.between(1, 30)) * kSecond});
  } else if (one_in(2)) {
    const auto kind = any_of({FaultKind::before, FaultKind::lost});
    fault(step, Call::remove, 0, kind, kNetworkDown, 0, one_in(2));
  } else if (one_in(4)) {
    fault(step, Call::remove, 0, FaultKind::lost, kWentMissing);
  }
  follow_up(path, keep);
}

void TraceAuthor::get_fault(Id step, const Path& path) {
  const auto get = static_cast<std::uint32_t>(rng_.below(latent_puts(path) + 1));
  const std::uint64_t seed = rng_.below(1 << 16);
  const bool for_good = one_in(4);
  switch (rng_.below(12)) {
    case 0:
      return fault(step, Call::get_start, get, any_of({FaultKind::before, FaultKind::lost}), kNetworkDown, 0, for_good);
    case 1:
      fault(step, Call::get_start, get, FaultKind::part, 0, seed, for_good);
      if (one_in(3)) any_fault(step, Call::cancel_get_transfer, 0);
      return;
    case 2:
      return fault(step, Call::get_transfer, get, FaultKind::part, kWentMissing, seed, for_good);
    case 3:
      fault(step, Call::get_transfer, get, FaultKind::before, kWentInvalid, 0, for_good);
      if (one_in(3)) any_fault(step, Call::cancel_get_transfer, 0);
      return;
    case 4:
      return fault(step, Call::get_transfer, get, any_of({FaultKind::before, FaultKind::lost}), kNetworkDown, 0,
                   for_good);
    case 5:
      return fault(step, Call::copy_batch, get, any_of({FaultKind::before, FaultKind::part}), kLaunchFailed, seed);
    case 6:
      return fault(step, wait_call(), get, FaultKind::before, kLaunchFailed, 0, one_in(8));
    case 7:
      return any_fault(step, Call::release_views, get);
    case 8:
      return fault(step, any_of({Call::get_start, Call::get_transfer, Call::copy_batch}), get, FaultKind::evict, 0,
                   seed);
    case 9:
      trace_.choice({step, Call::get_start, get, ChoiceKind::needs_transfer, 0});
      return fault(step, Call::get_transfer, get, FaultKind::late, 0, 361 * kSecond);
    case 10:
      return fault(step, Call::get_transfer, get, FaultKind::evict, 0, seed);
    default:
      return any_fault(step, any_of({Call::get_start, Call::get_transfer, Call::copy_batch, wait_call()}), get);
  }
}

void TraceAuthor::play_get_trouble() {
  const Path path = known_path();
  const Id session = open(path);
  const Id step = trace_.resume(session);
  choices(step, false);
  get_fault(step, path);
  if (one_in(2)) resume(session);
  if (one_in(2)) write_on(session, path, std::max(path.written, 1U) - 1);
}

void TraceAuthor::play_evict() {
  const Path path = known_path();
  const Id session = open(path);
  const bool held = one_in(3);
  const Id hold = held ? trace_.hold(session) : 0;
  const std::uint32_t last = std::max(path.written, 1U) - 1;
  const std::uint32_t depth = one_in(3) ? 0 : one_in(2) ? last : static_cast<std::uint32_t>(rng_.below(last + 1));
  if (held && one_in(2)) resume(session);  // a second reference comes and goes
  const Id step = trace_.evict(session, depth);
  const bool failing = one_in(2);
  if (failing) {
    const auto nth = static_cast<std::uint32_t>(rng_.below(2));
    const auto kind = any_of({FaultKind::before, FaultKind::lost});
    fault(step, Call::remove, nth, kind, kNetworkDown, 0, one_in(2));
  }
  if (one_in(2)) resume(session);
  if (held) trace_.unhold(hold);
  if (failing || held) {
    if (one_in(2)) trace_.pass_time(kSettled);
    if (one_in(2)) trace_.pump();
    trace_.evict(session, depth);
  }
  if (one_in(2)) {
    resume(session);
    write_on(session, path, depth);
  }
}

void TraceAuthor::play_store_evict() {
  const Path path = known_path();
  const Id session = open(path);
  const std::uint32_t last = std::max(path.written, 1U) - 1;
  const std::uint32_t depth = one_in(2) ? last : static_cast<std::uint32_t>(rng_.below(last + 1));
  const bool latent = latent_puts(path) > 0 && one_in(2);
  if (profile_.faults) {
    // Drawn apart: the same seed does the same otherwise.
    const bool damaged = trace_.trace().checksums && Rng(~trace_.trace().seed + depth).ratio(2, 3);
    if (damaged && latent)
      trace_.damage_latent(session, depth);
    else if (damaged)
      trace_.damage_blob(session, depth);
    else if (latent)
      trace_.store_evict_latent(session, depth);
    else
      trace_.store_evict_blob(session, depth);
  }
  resume(session);
  write_on(session, path, depth);
}

void TraceAuthor::play_make_room() { trace_.make_room(rng_.between(1, 24) * kSlotAlignment); }

void TraceAuthor::play_owner_restart() {
  if (!profile_.faults) return play_idle();
  const auto call = any_of(
      {Call::local_fast_put_start, Call::copy_batch, wait_call(), Call::local_fast_put_commit, Call::commit_wait});
  switch (rng_.below(4)) {
    case 0:
      trace_.owner_restart();
      // Unseen by the client, until a mapping lies where it knows one of an older generation.
      if (one_in(3)) {
        for (std::uint32_t i = 1; i < kOwnerMappings; ++i) trace_.owner_restart();
      }
      break;
    case 1: {
      // A plan that cannot be waited for outlives its generation.
      std::uint32_t keep = 0;
      const Path path = fresh_path(&keep);
      const Id session = open(path);
      if (keep > 0) resume(session);
      fault(trace_.generate(session), wait_call(), latent_puts(path), FaultKind::before, kLaunchFailed, 0, true);
      trace_.owner_restart();
      break;
    }
    case 2: {
      std::uint32_t keep = 0;
      const Path path = fresh_path(&keep);
      const Id session = open(path);
      if (keep > 0) resume(session);
      const Id step = trace_.generate(session);
      fault(step, call, static_cast<std::uint32_t>(rng_.below(latent_puts(path) + 1)), FaultKind::gone);
      break;
    }
    default: {
      const Path path = known_path();
      const Id step = trace_.resume(open(path));
      const auto get = any_of({Call::get_start, Call::get_transfer, Call::copy_batch, wait_call()});
      fault(step, get, static_cast<std::uint32_t>(rng_.below(latent_puts(path) + 1)), FaultKind::gone);
      break;
    }
  }
  for (Path& path : paths_) path.written = 0;
  const Path again = known_path();
  const Id session = open(again);
  resume(session);
  write_on(session, again, 0);
}

void TraceAuthor::play_restart() {
  const bool kept = !one_in(4);
  if (kept) {
    trace_.snapshot();
    if (one_in(4)) {
      const Id second = trace_.snapshot();
      any_fault(second, any_of({Call::file_write, Call::file_sync, Call::file_rename}), 0);
    }
  }
  if (one_in(3)) play_write();
  if (profile_.faults && one_in(4)) trace_.owner_restart();
  const Id step = trace_.restart();
  forget_sessions();
  if (profile_.faults && one_in(4)) {
    if (one_in(2)) {
      const bool damaged = one_in(2);
      const std::uint64_t draw = rng_.below(1 << 16);
      fault(step, Call::file_read, 0, FaultKind::part, 0, damaged ? (1 + draw % 64) * kDamagedRead : draw);
    } else
      any_fault(step, Call::file_read, 0);
  }
  const Path path = known_path();
  const Id session = open(path);
  resume(session);
  write_on(session, path, kept ? path.written : 0);
}

void TraceAuthor::play_death() {
  if (!profile_.faults) return play_idle();
  if (one_in(2)) trace_.snapshot();
  const auto nth = static_cast<std::uint32_t>(rng_.below(2));
  switch (rng_.below(4)) {
    case 0: {
      std::uint32_t keep = 0;
      const Path path = fresh_path(&keep);
      const Id session = open(path);
      if (keep > 0) trace_.resume(session);
      fault(trace_.generate(session),
            any_of({Call::local_fast_put_start, Call::copy_batch, wait_call(), Call::local_fast_put_commit,
                    Call::commit_wait}),
            nth, FaultKind::death);
      break;
    }
    case 1: {
      const Path path = known_path();
      const Id step = trace_.resume(open(path));
      fault(step, any_of({Call::get_start, Call::get_transfer, Call::copy_batch, wait_call(), Call::release_views}),
            nth, FaultKind::death);
      break;
    }
    case 2: {
      const Path path = known_path();
      const Id session = open(path);
      fault(trace_.evict(session, std::max(path.written, 1U) - 1), Call::remove, nth, FaultKind::death);
      break;
    }
    default:
      fault(trace_.snapshot(), any_of({Call::file_write, Call::file_sync, Call::file_rename}), 0, FaultKind::death);
      break;
  }
  forget_sessions();
  const Path path = known_path();
  const Id session = open(path);
  resume(session);
  write_on(session, path, 0);
}

void TraceAuthor::play_mistaken_layout() {
  const Path path = known_path();
  Geometry mistaken = geometry_of(path);
  const bool latents = mistaken.latent_bytes > 0 && one_in(2);
  if (latents) mistaken.latent_bytes += 16;
  if (!latents || one_in(2)) {
    for (std::uint32_t& bytes : mistaken.kv_token_bytes) bytes += 16;
  }
  const std::uint32_t geometry = trace_.geometry(mistaken);
  const Id session =
      trace_.open_mistaken({.world = path.world, .geometry = geometry, .actions = path.actions}, path.geometry);
  trace_.resume(session);
  trace_.close(session);
}

void TraceAuthor::play_idle() {
  trace_.pass_time(any_of<Nanos>({kMillisecond, kSecond, 30 * kSecond, kSettled, kPlanTimeout + kMinute}));
  if (one_in(2)) trace_.pump();
}

// Pieces of the writable mapping are registered first, then those of the readable one.
void TraceAuthor::registration_trouble(Id step) {
  const std::uint32_t pieces = registration_pieces();
  const auto piece = static_cast<std::uint32_t>(rng_.below(pieces));
  switch (rng_.below(5)) {
    case 0:
      return fault(step, Call::host_register, pieces + piece, FaultKind::before, any_of({kBadValue, kNotSupported}));
    case 1:
      return fault(step, Call::host_register, pieces, FaultKind::before, kNoMemory, 0, true);
    case 2:
      return fault(step, Call::host_register, pieces - 1, FaultKind::before, any_of({kNoMemory, kBadValue}));
    case 3:
      return fault(step, Call::host_register, piece, FaultKind::before, kAlready, rng_.below(3));
    default:
      return any_fault(step, any_of({Call::host_register, Call::wait_local_segments_ready}), 0);
  }
}

}  // namespace holdfast::sim
