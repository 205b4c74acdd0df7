// An inference engine that computes nothing and still tells right from wrong: a chunk's bytes are a function of its
// node when the ring held what it should, and of the error as well when it did not, so that an error spreads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "holdfast/core/engine.hpp"
#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/sim/cold_ring.hpp"
#include "holdfast/sim/hazard_checker.hpp"
#include "holdfast/sim/oracle.hpp"

namespace holdfast::sim {

// Told which device memory a store may copy into and out of, and what the engine itself does there.
class TensorListener {
 public:
  virtual ~TensorListener() = default;
  virtual void on_tensor(std::uintptr_t base, std::uint64_t bytes) = 0;
  virtual void on_tensor_gone(std::uintptr_t base) = 0;
  // In the order of its stream.
  virtual void on_kernel(StreamRef stream, std::span<const RangeAccess> accesses) = 0;
  virtual void on_free(StreamRef stream, const MemoryRange& memory) = 0;
};

// One session's engine. Its kernels run at once, but in stream order: what its stream still holds for its tensors moves
// first. Where copies have a stream of their own, its stream waits for each of their batches, and they for what it did.
//
// What it has read of the ring it remembers by digest; what should be there it asks the oracle. Reading the whole ring
// for every chunk would be quadratic in a long session, so a chunk reads kSampledFrames tensor frames in turn, a resume
// reads all, and so does the session's end: bytes that change behind its back are found there at the latest.
class StandInEngine final : public Engine, private CopyFollower {
 public:
  // What the store told since begin_resume().
  struct Published {
    bool filled = false;   // indices other than {0, 0} at some time
    bool emptied = false;  // {0, 0}: the ring was overwritten
    RingIndices largest;
    std::uint32_t latents = 0;
    std::uint32_t chunks = 0;
    std::uint64_t draws = 0;
  };
  static constexpr std::size_t kSampledFrames = 32;

  StandInEngine(fakes::FakeCuda& device, Oracle& oracle, TensorListener& tensors)
      : device_(device), oracle_(oracle), tensors_(tensors) {}
  ~StandInEngine() override;
  StandInEngine(const StandInEngine&) = delete;
  StandInEngine& operator=(const StandInEngine&) = delete;

  // Takes device memory for the ring. An engine may be opened again after close(); it keeps its stream, as a runtime's
  // worker does, so that what a store could not wait for then may be waited for later.
  // `events`: copies get a stream of their own, ordered with the engine's by events of this runtime, which outlives it.
  Status open(LayoutIndex layout, std::vector<NodeIndex> path, CudaBackend* events = nullptr);
  // Reads the whole ring once more, then gives the memory back.
  void close();
  // The context is gone, and all memory with it.
  void abandon();

  // False at the session's end, or where the ring takes no further chunk.
  [[nodiscard]] bool can_generate() const;
  // Computes the next chunk into the ring. False: it is not what a cold run computes; reported, unless what is wrong
  // was reported before.
  bool generate();
  [[nodiscard]] std::uint32_t chunks_done() const { return chunks_done_; }
  // Of the chunk computed last, as its bytes really are: K and V per layer.
  [[nodiscard]] std::span<const std::uint64_t> value_digests() const { return value_digests_; }
  [[nodiscard]] std::uint64_t latent_digest() const { return latent_digest_; }
  // One per output frame of the chunks done so far.
  [[nodiscard]] const std::vector<std::uint64_t>& frame_hashes() const { return frame_hashes_; }

  void begin_resume() { published_ = {}; }
  [[nodiscard]] const Published& published() const { return published_; }
  // Goes on from `chunks` resumed ones. `right`: the oracle found nothing wrong.
  void end_resume_warm(std::uint32_t chunks, bool right);
  void end_resume_cold();

  [[nodiscard]] const EngineLayout& layout() const { return oracle_.layout(layout_); }
  [[nodiscard]] std::span<const NodeIndex> path() const { return path_; }
  [[nodiscard]] const std::byte* frame(std::size_t tensor, std::size_t position) const;
  // How many chunks the store has asked for private targets of, and that of chunk `index`.
  [[nodiscard]] std::uint32_t target_count() const { return target_count_; }
  [[nodiscard]] const std::byte* latent(std::uint32_t index) const;

  StreamRef stream() override { return *stream_; }
  CopyStream copy_stream() override;
  std::vector<DeviceTensor> ring() override;
  RingIndices indices() override { return indices_; }
  DeviceTensor finalized_latent() override;
  Result<std::vector<DeviceTensor>> latent_targets(std::uint32_t chunks) override;
  void publish_kv_indices(RingIndices indices) override;
  void publish_latents(std::uint32_t chunks) override;
  void fast_forward(std::uint32_t chunks, std::uint64_t draws) override;

 private:
  // A ring frame that is known to hold something else than it should.
  struct WrongFrame {
    std::uint64_t frame = 0;  // logical
    std::size_t tensor = 0;
    std::uint64_t digest = 0;
  };

  void follow(StreamRef copies, std::optional<EventRef> done) override;
  void drop_producer();
  void reach_stream_order();
  // Tells of the kernel that computed the frames from `first_written` on out of all of them.
  void tell_kernel(std::size_t first_written, const MemoryRange& latents, bool writes_latents);
  [[nodiscard]] std::byte* frame_at(std::size_t tensor, std::size_t position) const;
  [[nodiscard]] std::uint64_t expected_digest(std::uint64_t frame, std::size_t tensor) const;
  // Reads `count` tensor frames from where the last call stopped; reports bytes that changed.
  void reread(std::size_t count);
  void note_digest(std::uint64_t frame, std::size_t tensor, std::uint64_t digest);
  [[nodiscard]] std::uint64_t ring_error() const;
  void make_room(const ColdRing::Dropped& dropped, std::size_t size_before);
  void add_output_frames(std::uint64_t latent_digest, std::uint64_t error);
  void free_targets();

  fakes::FakeCuda& device_;
  Oracle& oracle_;
  TensorListener& tensors_;
  bool is_open_ = false;
  LayoutIndex layout_ = 0;
  std::vector<NodeIndex> path_;
  std::optional<StreamRef> stream_;
  std::optional<StreamRef> copy_stream_;  // once it was asked for
  CudaBackend* events_ = nullptr;         // while copies have it
  std::optional<EventRef> producer_;      // as last handed in
  std::vector<std::uintptr_t> ring_tensors_;
  std::uintptr_t finalized_latent_ = 0;
  std::uintptr_t targets_ = 0;
  std::uint64_t target_stride_ = 0;
  std::uint32_t target_count_ = 0;

  ColdRing ring_;
  RingIndices indices_;
  std::uint32_t chunks_done_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t chain_ = 0;
  bool resumed_ = false;
  bool blamed_ = false;  // something wrong here has been reported
  std::vector<WrongFrame> wrong_;
  std::size_t next_reread_ = 0;
  Published published_;
  std::vector<std::uint64_t> value_digests_;
  std::uint64_t latent_digest_ = 0;
  std::vector<std::uint64_t> frame_hashes_;
  std::vector<RangeAccess> accesses_;  // of the kernel that is told of
};

}  // namespace holdfast::sim
