// Answers that no honest owner gives, told just above the real one: what it did is true, what it says is not.
#include <algorithm>
#include <limits>
#include <utility>

#include "holdfast/sim/lies.hpp"
#include "holdfast/sim/rng.hpp"
#include "injector_impl.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kBitOfNoHandle = 1ULL << 40;

Lie lie_of(const FaultPoint& point) { return static_cast<Lie>(point.code); }

Error unheard_of_error(Call call) {
  Error error;
  error.origin = Origin::fluxon;
  error.code = kUnheardOfError;
  error.call = name_of(call);
  error.detail = "<b>\"&\xff\x1b[31m\n\t %n {}";  // as little fit to be shown as can be
  return error;
}

}  // namespace

struct Injector::Impl::Liar final : FluxonBackend {
  Impl& injector;
  FluxonBackend& below;

  Liar(Impl& impl, FluxonBackend& honest) : injector(impl), below(honest) {}

  // The lie due at this call.
  const FaultPoint* take(Call call) {
    if (injector.due_lie == nullptr || injector.due_lie->call != call) return nullptr;
    return std::exchange(injector.due_lie, nullptr);
  }
  // The call fails in a way that nobody has heard of; with an odd `arg` it was done.
  template <class Through>
  Error fail(const FaultPoint& point, Through&& through) {
    if (point.arg % 2 == 1) static_cast<void>(through());
    injector.fire_lie(point);
    return unheard_of_error(point.call);
  }

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    const FaultPoint* point = take(Call::wait_local_segments_ready);
    auto answer = below.wait_local_segments_ready();
    if (point == nullptr || !answer || answer->empty()) return answer;
    if (lie_of(*point) == Lie::unheard_of_error) return fail(*point, [] { return 0; });
    Segment& segment = answer->front();
    switch (lie_of(*point)) {
      case Lie::no_segment:
        answer->clear();
        break;
      case Lie::null_segment:
        (point->arg % 2 == 0 ? segment.write_ptr : segment.read_ptr) = 0;
        break;
      case Lie::empty_segment:
        segment.len = 0;
        break;
      default:
        segment.len = std::numeric_limits<std::uint64_t>::max() - point->arg;
        break;
    }
    injector.fire_lie(*point);
    return answer;
  }

  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    const auto through = [&] { return below.local_fast_put_start(keys, value_len, options); };
    return plan(take(Call::local_fast_put_start), keys.size(), through);
  }
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override {
    const FaultPoint* point = take(Call::get_transfer);
    // Whatever the number is, the handle is not live any more for a caller who believes it.
    if (point != nullptr && lie_of(*point) == Lie::unheard_of_error && point->arg % 2 == 0) {
      static_cast<void>(below.cancel_get_transfer(handle));
    }
    return plan(point, prefix_len, [&] { return below.get_transfer(handle, prefix_len); });
  }

  template <class Through>
  Result<PlanPtr> plan(const FaultPoint* point, std::size_t count, Through&& through) {
    if (point != nullptr && lie_of(*point) == Lie::unheard_of_error) return fail(*point, through);
    Result<PlanPtr> answer = through();
    if (point != nullptr && answer && falsify(*point, *answer, count)) injector.fire_lie(*point);
    return answer;
  }

  bool falsify(const FaultPoint& point, PlanPtr& plan, std::size_t count) {
    auto* words = reinterpret_cast<std::uint64_t*>(plan.address);
    std::uint64_t* addresses = words + 2;
    const std::size_t at = point.arg % count;
    const Segment segment = injector.owner.segment();
    const bool read_side = addresses[at] - segment.read_ptr < segment.len;
    switch (lie_of(point)) {
      case Lie::bad_magic:
        words[0] ^= 1ULL << (point.arg % 64);
        return true;
      case Lie::count_too_large:
        words[1] += 1 + (point.arg % 2 == 0 ? 0 : 1ULL << 60);
        return true;
      case Lie::count_too_small:
        words[1] = point.arg % 2 == 0 ? 0 : words[1] - 1;
        return true;
      case Lie::null_plan:
        plan = {};
        return true;
      case Lie::misaligned_plan:
        plan.address += 1 + point.arg % 7;
        return true;
      case Lie::null_address:
        addresses[at] = 0;
        return true;
      case Lie::foreign_address: {
        const std::uintptr_t here = read_side ? segment.read_ptr : segment.write_ptr;
        const std::uintptr_t there = read_side ? segment.write_ptr : segment.read_ptr;
        addresses[at] = point.arg % 3 == 0   ? here - kSlotAlignment
                        : point.arg % 3 == 1 ? there + (addresses[at] - here)
                                             : plan.address;
        return true;
      }
      case Lie::misaligned_address:
        addresses[at] += 8 * (1 + point.arg % 500);
        return true;
      case Lie::doubled_address:
        if (count < 2) return false;
        addresses[at] = addresses[(at + 1) % count];
        return true;
      case Lie::address_past_the_end:
        addresses[at] = (read_side ? segment.read_ptr : segment.write_ptr) + segment.len;
        return true;
      default:
        return false;
    }
  }

  Result<Future> local_fast_put_commit(PlanPtr plan) override {
    if (const FaultPoint* point = take(Call::local_fast_put_commit)) {
      return fail(*point, [&] { return below.local_fast_put_commit(plan).has_value(); });
    }
    return below.local_fast_put_commit(plan);
  }
  Status put_abort(PlanPtr plan) override {
    return end(Call::put_abort, [&] { return below.put_abort(plan); });
  }
  Status cancel_get_transfer(GetHandle handle) override {
    return end(Call::cancel_get_transfer, [&] { return below.cancel_get_transfer(handle); });
  }
  Status release_views(PlanPtr plan) override {
    return end(Call::release_views, [&] { return below.release_views(plan); });
  }
  // It ends what it ends, whatever it says.
  template <class Through>
  Status end(Call call, Through&& through) {
    const FaultPoint* point = take(call);
    Status answer = through();
    if (point == nullptr) return answer;
    injector.fire_lie(*point);
    return unheard_of_error(call);
  }

  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    const FaultPoint* point = take(Call::get_start);
    const auto through = [&] { return below.get_start(keys, prefix_best_effort, atomic_group_lens); };
    if (point != nullptr && lie_of(*point) == Lie::unheard_of_error) return fail(*point, through);
    auto answer = through();
    if (point == nullptr || !answer) return answer;
    switch (lie_of(*point)) {
      case Lie::counts_past_the_keys:
        (point->arg % 2 == 0 ? answer->raw_prefix_hit_len : answer->transferable_len) =
            keys.size() + 1 + (point->arg % 3 == 0 ? 0 : 1ULL << 62);
        break;
      case Lie::contradictory_counts:
        answer->all_hit = !answer->all_hit;
        break;
      default:
        answer->handle.number ^= kBitOfNoHandle;
        break;
    }
    injector.fire_lie(*point);
    return answer;
  }

  Status remove(std::string_view key) override {
    const FaultPoint* point = take(Call::remove);
    if (point == nullptr) return below.remove(key);
    if (lie_of(*point) == Lie::unheard_of_error) return fail(*point, [&] { return below.remove(key); });
    injector.fire_lie(*point);
    return {};
  }
  Status put(std::string_view key, std::span<const std::byte> bytes) override { return below.put(key, bytes); }
  Result<std::vector<std::byte>> get(std::string_view key) override { return below.get(key); }
};

std::unique_ptr<FluxonBackend> Injector::Impl::make_liar(FluxonBackend& honest) {
  return std::make_unique<Liar>(*this, honest);
}

void Injector::Impl::fire_lie(const FaultPoint& point) {
  const LegalLie& lie = *find_lie(point.call, point.code);
  fire(point, lie.origin, lie.code);
  fired.back().told_as = lie.told_as;
}

Result<std::vector<std::int32_t>> Injector::Impl::lie_about(const FaultPoint& point,
                                                            Result<std::vector<std::int32_t>> answer) {
  if (lie_of(point) == Lie::unheard_of_error) {
    fire_lie(point);
    return unheard_of_error(Call::commit_wait);
  }
  if (!answer || answer->empty()) return answer;
  std::vector<std::int32_t>& codes = *answer;
  switch (lie_of(point)) {
    case Lie::too_few_codes:
      codes.pop_back();
      break;
    case Lie::too_many_codes:
      codes.resize(codes.size() + 1 + point.arg % 5000);
      break;
    case Lie::no_codes:
      codes.clear();
      break;
    case Lie::unheard_of_code:
      codes[point.arg % codes.size()] = kUnheardOfCode;
      break;
    default:  // stored_without_bound, as the owner was told at the commit
      if (std::ranges::find(codes, static_cast<std::int32_t>(CommitCode::timeout)) == codes.end()) return answer;
      break;
  }
  fire_lie(point);
  return answer;
}

}  // namespace holdfast::sim
