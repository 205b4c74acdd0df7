// A real device under the simulator: the fake one decides when work moves, as the trace says, and the device moves it.
// Every batch waits in its stream, on the device, for a word in host memory, which is set at the chosen moment and
// before anything waits for the batch. Answers are the device's; src/normalised.hpp says what is made equal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/fakes/cuda_device.hpp"
#include "holdfast/real_device/cuda_device.hpp"

namespace holdfast::device {

// The engine's memory here is a mirror of the device's: fetch() before it is read, wrote() after it was written. For
// one thread.
class GatedCuda final : public fakes::FakeCuda, private fakes::CopyMover {
 public:
  // Throws std::runtime_error, with the reason, when there is no device to use. Device 0.
  GatedCuda(fakes::Arena& arena, fakes::VirtualClock& clock, const fakes::DeviceOptions& options);
  ~GatedCuda() override;

  void reset(const fakes::DeviceOptions& options) override;

  Status host_register(std::uintptr_t ptr, std::uint64_t bytes, HostAccess access) override;
  Status host_unregister(std::uintptr_t ptr) override;
  Status copy_batch(CopyDirection direction, std::span<const Copy> copies, StreamRef stream) override;
  Result<EventRef> event_create() override;
  Status event_record(EventRef event, StreamRef stream) override;
  Status stream_wait(StreamRef stream, EventRef event) override;
  Result<bool> event_query(EventRef event) override;
  Status event_synchronize(EventRef event) override;
  Status event_destroy(EventRef event) override;
  Status stream_synchronize(StreamRef stream) override;
  Result<PointerAttributes> pointer_attributes(std::uintptr_t ptr) override;

  Result<std::uintptr_t> allocate(std::uint64_t bytes, int device) override;
  Result<StreamRef> create_stream(int device) override;
  Status destroy_stream(StreamRef stream) override;
  void fetch(std::uintptr_t base, std::uint64_t bytes) override;
  void wrote(std::uintptr_t base, std::uint64_t bytes) override;
  void tear_down() override;
  void client_died() override;

  // How often gates had to be opened before their time: to unregister, or because the device held up work behind a gate
  // of another stream.
  [[nodiscard]] std::uint64_t opened_to_unregister() const { return opened_to_unregister_; }
  [[nodiscard]] std::uint64_t opened_to_go_on() const { return opened_to_go_on_; }
  // Batches that were held at a gate.
  [[nodiscard]] std::uint64_t gated_batches() const { return gated_batches_; }

 private:
  // A part of a batch behind a gate of its own.
  struct Stage {
    std::size_t pieces_end = 0;
    std::size_t word = 0;  // in words_
    EventRef moved;
    bool opened = false;
  };
  struct Batch {
    std::vector<Stage> stages;
  };
  struct Stream {
    StreamRef real;
    std::uint64_t last_batch = 0;  // submitted to it
  };
  struct Event {
    EventRef real;
    std::uint64_t batch = 0;  // the last of its stream when it was recorded
  };

  Status submitting(std::uint64_t batch, CopyDirection direction, std::span<const Copy> copies, StreamRef stream,
                    const fakes::CopyChoice& choice) override;
  void move(std::uint64_t batch, std::size_t pieces) override;

  Status submit_stage(Stage& stage, CopyDirection direction, std::span<const Copy> pieces, const Stream& stream,
                      CudaDevice& way, bool held_back);
  void open(Stage& stage);
  void open_all();
  void finish(Stage& stage);
  // Everything submitted has moved; the client's things on the device are gone.
  void settle();
  void drop_client();
  void drop_streams();
  void fit_memory();
  void copy_now(std::uintptr_t dst, std::uintptr_t src, std::uint64_t bytes);
  // Waits for it; opens all gates when it takes long.
  void await(EventRef real);
  [[nodiscard]] bool behind_closed_gate(const Event& event) const;
  [[nodiscard]] bool is_device_memory(std::uintptr_t address) const { return address - region() < region_bytes(); }
  [[nodiscard]] std::uintptr_t on_device(std::uintptr_t address) const {
    return is_device_memory(address) ? address - region() + memory_ : address;
  }
  [[nodiscard]] bool is_pinned(std::uintptr_t base, std::uint64_t bytes) const;
  [[nodiscard]] Stream* find(StreamRef stream);
  [[nodiscard]] Event* find(EventRef event);
  [[nodiscard]] EventRef spare_event();

  std::unique_ptr<CudaDevice> device_;   // small copies by the kernel
  std::unique_ptr<CudaDevice> engines_;  // all by the driver
  std::uintptr_t memory_ = 0;            // the device's, of the mirror's size
  std::uint64_t memory_bytes_ = 0;
  std::uintptr_t mirror_ = 0;  // as it is registered
  StreamRef own_;
  std::vector<StreamRef> spare_streams_;
  std::map<std::uintptr_t, Stream> streams_;  // by the fake's numbers
  std::map<std::uintptr_t, Event> events_;
  std::vector<EventRef> spare_events_;
  std::map<std::uint64_t, Batch> batches_;  // not moved yet
  std::vector<HostRangeOf> pinned_;
  volatile std::uint32_t* words_ = nullptr;  // in host memory that the device sees
  std::uintptr_t words_on_device_ = 0;
  std::vector<std::size_t> spare_words_;
  std::vector<std::size_t> order_;  // scratch
  std::vector<Copy> pieces_;        // scratch
  std::uint64_t opened_to_unregister_ = 0;
  std::uint64_t opened_to_go_on_ = 0;
  std::uint64_t gated_batches_ = 0;
};

}  // namespace holdfast::device
