// Faults at the calls to the file system.
#include <algorithm>
#include <utility>

#include "holdfast/sim/rng.hpp"
#include "injector_impl.hpp"

namespace holdfast::sim {
namespace {

// False when there is no digit in the first line.
bool damage(std::string& bytes, std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  std::vector<std::size_t> digits;
  for (std::size_t at = 0; at < line; ++at) {
    if (kDigits.find(bytes[at]) != std::string_view::npos) digits.push_back(at);
  }
  if (digits.empty()) return false;
  char& digit = bytes[digits[number % digits.size()]];
  digit = kDigits[(kDigits.find(digit) + 1) % kDigits.size()];
  return true;
}

}  // namespace

struct Injector::Impl::Files final : FileBackend {
  Impl& injector;

  explicit Files(Impl& impl) : injector(impl) {}

  [[nodiscard]] FileBackend& below() const { return injector.below_files; }

  Error told(const FaultPoint& point, const std::string& path) {
    injector.fire(point, Origin::file_system, point.code, path);
    return file_failure(point.call, point.code, path);
  }

  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    const Arrival arrival = injector.arrive(Call::file_read);
    if (arrival.dead) return dead_file(Call::file_read, path);
    if (arrival.fault != nullptr && arrival.fault->kind == FaultKind::before) return told(*arrival.fault, path);
    auto answer = below().read(path, bytes_max);
    if (injector.due_lie != nullptr && answer && !answer->empty()) {
      Rng rng(injector.due_lie->arg);
      const std::uint64_t bytes = 1 + rng.below(2 * answer->size());
      answer->clear();
      for (std::uint64_t i = 0; i < bytes; ++i) *answer += static_cast<char>(rng.below(256));
      injector.fire_lie(*std::exchange(injector.due_lie, nullptr));
      return answer;
    }
    if (arrival.fault != nullptr && answer && !answer->empty()) {
      const std::uint64_t arg = arrival.fault->arg;
      if (arg < kDamagedRead || !damage(*answer, arg / kDamagedRead)) answer->resize(arg % answer->size());
      injector.fire(*arrival.fault, Origin::core, static_cast<std::int32_t>(Errc::bad_snapshot), path);
      injector.fired.back().told_as = "decode_snapshot";
    }
    injector.leave(arrival);
    return answer;
  }

  Status write(const std::string& path, const std::string& bytes) override {
    const Arrival arrival = injector.arrive(Call::file_write);
    const FaultPoint* point = arrival.fault;
    const auto write_prefix = [&] {
      static_cast<void>(below().write(path, bytes.substr(0, std::min<std::uint64_t>(point->arg, bytes.size()))));
    };
    if (arrival.dead) {
      if (point != nullptr && point->arg != 0) write_prefix();
      return dead_file(Call::file_write, path);
    }
    if (point != nullptr) {
      if (point->kind == FaultKind::part) write_prefix();
      if (point->kind == FaultKind::lost) static_cast<void>(below().write(path, bytes));
      return told(*point, path);
    }
    auto answer = below().write(path, bytes);
    injector.leave(arrival);
    return answer;
  }

  Status sync(const std::string& path) override {
    return call(Call::file_sync, path, [&] { return below().sync(path); });
  }

  Status rename(const std::string& from, const std::string& to) override {
    const Arrival arrival = injector.arrive(Call::file_rename);
    if (arrival.dead) {
      if (arrival.fault != nullptr && arrival.fault->arg % 2 == 1) static_cast<void>(below().rename(from, to));
      return dead_file(Call::file_rename, from);
    }
    return proceed(arrival, from, [&] { return below().rename(from, to); });
  }

  Status remove(const std::string& path) override {
    return call(Call::file_remove, path, [&] { return below().remove(path); });
  }

  template <class Through>
  Status call(Call which, const std::string& path, Through&& through) {
    const Arrival arrival = injector.arrive(which);
    if (arrival.dead) return dead_file(which, path);
    return proceed(arrival, path, std::forward<Through>(through));
  }

  template <class Through>
  Status proceed(const Arrival& arrival, const std::string& path, Through&& through) {
    if (arrival.fault != nullptr) {
      if (arrival.fault->kind == FaultKind::lost) static_cast<void>(through());
      return told(*arrival.fault, path);
    }
    Status answer = through();
    injector.leave(arrival);
    return answer;
  }
};

std::unique_ptr<FileBackend> Injector::Impl::make_files() { return std::make_unique<Files>(*this); }

}  // namespace holdfast::sim
