// Runtimes chosen when the program starts: the concepts as abstract classes, so that code above them is compiled once.
#pragma once

#include <memory>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/file_system.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast {

// One submitted commit. Destroying it abandons the wait, not the work.
class PendingCommit {
 public:
  virtual ~PendingCommit() = default;
  virtual Result<std::vector<std::int32_t>> wait(Nanos limit_ns) = 0;
};

// A model of FluxonRuntime; see there for what each call takes and gives.
class FluxonBackend {
 public:
  class Future {
   public:
    explicit Future(std::unique_ptr<PendingCommit> pending) : pending_(std::move(pending)) {}
    Result<std::vector<std::int32_t>> wait(Nanos limit_ns) { return pending_->wait(limit_ns); }

   private:
    std::unique_ptr<PendingCommit> pending_;
  };

  virtual ~FluxonBackend() = default;
  virtual Result<std::vector<Segment>> wait_local_segments_ready() = 0;
  virtual Result<PlanPtr> local_fast_put_start(Keys keys, std::uint64_t value_len, const PutOptions& options) = 0;
  virtual Result<Future> local_fast_put_commit(PlanPtr plan) = 0;
  virtual Status put_abort(PlanPtr plan) = 0;
  virtual Result<GetStart> get_start(Keys keys, bool prefix_best_effort,
                                     std::span<const std::uint32_t> atomic_group_lens) = 0;
  virtual Result<PlanPtr> get_transfer(GetHandle handle, std::uint64_t prefix_len) = 0;
  virtual Status cancel_get_transfer(GetHandle handle) = 0;
  virtual Status release_views(PlanPtr plan) = 0;
  virtual Status remove(std::string_view key) = 0;
  virtual Status put(std::string_view key, std::span<const std::byte> bytes) = 0;
  virtual Result<std::vector<std::byte>> get(std::string_view key) = 0;
};
static_assert(FluxonRuntime<FluxonBackend>);

// A model of CudaRuntime; see there for what each call takes and gives.
class CudaBackend {
 public:
  virtual ~CudaBackend() = default;
  virtual Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) = 0;
  virtual Status host_unregister(std::uintptr_t ptr) = 0;
  virtual Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) = 0;
  virtual Result<EventRef> event_create() = 0;
  virtual Status event_record(EventRef event, StreamRef stream) = 0;
  virtual Status stream_wait(StreamRef stream, EventRef event) = 0;
  virtual Result<bool> event_query(EventRef event) = 0;
  virtual Status event_synchronize(EventRef event) = 0;
  virtual Status event_destroy(EventRef event) = 0;
  virtual Status stream_synchronize(StreamRef stream) = 0;
  virtual Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) = 0;
};
static_assert(CudaRuntime<CudaBackend>);

// A model of FileSystem; see there for what each call takes and gives.
class FileBackend {
 public:
  virtual ~FileBackend() = default;
  virtual Result<std::string> read(const std::string& path, std::uint64_t bytes_max) = 0;
  virtual Status write(const std::string& path, const std::string& bytes) = 0;
  virtual Status sync(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
};
static_assert(FileSystem<FileBackend>);

}  // namespace holdfast
