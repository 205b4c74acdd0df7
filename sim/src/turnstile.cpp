#include "holdfast/sim/turnstile.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

class Pending final : public PendingCommit {
 public:
  Pending(TurnTaker& turns, FluxonBackend::Future below) : turns_(turns), below_(std::move(below)) {}
  Result<std::vector<std::int32_t>> wait(Nanos limit_ns) override {
    turns_.before(Call::commit_wait);
    return below_.wait(limit_ns);
  }

 private:
  TurnTaker& turns_;
  FluxonBackend::Future below_;
};

}  // namespace

struct Turnstile::Fluxon final : FluxonBackend {
  TurnTaker& turns;
  FluxonBackend& below;
  Fluxon(TurnTaker& turn_taker, FluxonBackend& fluxon) : turns(turn_taker), below(fluxon) {}

  Result<std::vector<Segment>> wait_local_segments_ready() override {
    turns.before(Call::wait_local_segments_ready);
    return below.wait_local_segments_ready();
  }
  Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) override {
    turns.before(Call::local_fast_put_start);
    return below.local_fast_put_start(keys, value_len, options);
  }
  Result<Future> local_fast_put_commit(PlanPtr plan) override {
    turns.before(Call::local_fast_put_commit);
    Result<Future> future = below.local_fast_put_commit(plan);
    if (!future) return future;
    return Future(std::make_unique<Pending>(turns, std::move(*future)));
  }
  Status put_abort(PlanPtr plan) override {
    turns.before(Call::put_abort);
    return below.put_abort(plan);
  }
  Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                             std::span<const std::uint32_t> atomic_group_lens) override {
    turns.before(Call::get_start);
    return below.get_start(keys, prefix_best_effort, atomic_group_lens);
  }
  Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) override {
    turns.before(Call::get_transfer);
    return below.get_transfer(handle, prefix_len);
  }
  Status cancel_get_transfer(GetHandle handle) override {
    turns.before(Call::cancel_get_transfer);
    return below.cancel_get_transfer(handle);
  }
  Status release_views(PlanPtr plan) override {
    turns.before(Call::release_views);
    return below.release_views(plan);
  }
  Status remove(std::string_view key) override {
    turns.before(Call::remove);
    return below.remove(key);
  }
  Status put(std::string_view key, std::span<const std::byte> bytes) override {
    turns.before(Call::put);
    return below.put(key, bytes);
  }
  Result<std::vector<std::byte>> get(std::string_view key) override {
    turns.before(Call::get);
    return below.get(key);
  }
};

struct Turnstile::Cuda final : CudaBackend {
  TurnTaker& turns;
  CudaBackend& below;
  Cuda(TurnTaker& turn_taker, CudaBackend& cuda) : turns(turn_taker), below(cuda) {}

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override {
    turns.before(Call::host_register);
    return below.host_register(ptr, bytes, access);
  }
  Status host_unregister(std::uintptr_t ptr) override {
    turns.before(Call::host_unregister);
    return below.host_unregister(ptr);
  }
  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override {
    turns.before(Call::copy_batch);
    return below.copy_batch(direction, copies, stream);
  }
  Result<EventRef> event_create() override {
    turns.before(Call::event_create);
    return below.event_create();
  }
  Status event_record(EventRef event, StreamRef stream) override {
    turns.before(Call::event_record);
    return below.event_record(event, stream);
  }
  Status stream_wait(StreamRef stream, EventRef event) override {
    turns.before(Call::stream_wait);
    return below.stream_wait(stream, event);
  }
  Result<bool> event_query(EventRef event) override {
    turns.before(Call::event_query);
    return below.event_query(event);
  }
  Status event_synchronize(EventRef event) override {
    turns.before(Call::event_synchronize);
    return below.event_synchronize(event);
  }
  Status event_destroy(EventRef event) override {
    turns.before(Call::event_destroy);
    return below.event_destroy(event);
  }
  Status stream_synchronize(StreamRef stream) override {
    turns.before(Call::stream_synchronize);
    return below.stream_synchronize(stream);
  }
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override {
    turns.before(Call::pointer_attributes);
    return below.pointer_attributes(ptr);
  }
};

struct Turnstile::Files final : FileBackend {
  TurnTaker& turns;
  FileBackend& below;
  Files(TurnTaker& turn_taker, FileBackend& files) : turns(turn_taker), below(files) {}

  Result<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    turns.before(Call::file_read);
    return below.read(path, bytes_max);
  }
  Status write(const std::string& path, const std::string& bytes) override {
    turns.before(Call::file_write);
    return below.write(path, bytes);
  }
  Status sync(const std::string& path) override {
    turns.before(Call::file_sync);
    return below.sync(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    turns.before(Call::file_rename);
    return below.rename(from, to);
  }
  Status remove(const std::string& path) override {
    turns.before(Call::file_remove);
    return below.remove(path);
  }
};

Turnstile::Turnstile(TurnTaker& turns, FluxonBackend& fluxon, CudaBackend& cuda, FileBackend& files)
    : fluxon_(std::make_unique<Fluxon>(turns, fluxon)),
      cuda_(std::make_unique<Cuda>(turns, cuda)),
      files_(std::make_unique<Files>(turns, files)) {}
Turnstile::~Turnstile() = default;

FluxonBackend& Turnstile::fluxon() { return *fluxon_; }
CudaBackend& Turnstile::cuda() { return *cuda_; }
FileBackend& Turnstile::files() { return *files_; }

}  // namespace holdfast::sim
