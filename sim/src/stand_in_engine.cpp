#include "holdfast/sim/stand_in_engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "holdfast/core/check.hpp"
#include "holdfast/sim/pseudo_bytes.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint64_t kLatentAlignBytes = fakes::kDeviceAlignBytes;
// A latent frame decodes to four output frames; the first latent frame of all gives one more.
constexpr std::uint64_t kOutputFramesPerLatentFrame = 4;

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

StandInEngine::~StandInEngine() {
  close();
  if (stream_) static_cast<void>(device_.destroy_stream(*stream_).has_value());
  if (copy_stream_) static_cast<void>(device_.destroy_stream(*copy_stream_).has_value());
}

Status StandInEngine::open(LayoutIndex layout_index, std::vector<NodeIndex> nodes, CudaBackend* events) {
  check(!is_open_, "an engine is opened once");
  layout_ = layout_index;
  path_ = std::move(nodes);
  ring_.configure(layout().geometry);
  end_resume_cold();
  indices_ = {};
  resumed_ = blamed_ = false;
  next_reread_ = 0;
  published_ = {};
  frame_hashes_.clear();

  events_ = events;
  for (std::optional<StreamRef>* of : {&stream_, &copy_stream_}) {
    if (*of || (of == &copy_stream_ && events == nullptr)) continue;
    Result<StreamRef> stream = device_.create_stream();
    if (!stream) return tl::unexpected(stream.error());
    *of = *stream;
  }
  is_open_ = true;
  Status allocated;
  const auto take = [&](std::uint64_t bytes) -> std::uintptr_t {
    if (!allocated) return 0;
    Result<std::uintptr_t> memory = device_.allocate(bytes);
    if (!memory) {
      allocated = tl::unexpected(memory.error());
      return 0;
    }
    tensors_.on_tensor(*memory, bytes);
    return *memory;
  };
  for (const std::uint64_t frame_bytes : layout().frame_bytes) {
    const std::uintptr_t tensor = take(frame_bytes * layout().geometry.ring_frames);
    if (tensor != 0) ring_tensors_.push_back(tensor);
  }
  if (layout().geometry.latent_bytes != 0) finalized_latent_ = take(layout().geometry.latent_bytes);
  if (!allocated) close();
  return allocated;
}

void StandInEngine::close() {
  if (!is_open_) return;
  reach_stream_order();
  reread(ring_.size() * layout().tensors());
  drop_producer();
  free_targets();
  const auto give_back = [&](std::uintptr_t memory, std::uint64_t bytes) {
    tensors_.on_tensor_gone(memory);
    tensors_.on_free(*stream_, {memory, bytes});
    static_cast<void>(device_.free(memory).has_value());
  };
  for (std::size_t tensor = 0; tensor < ring_tensors_.size(); ++tensor) {
    give_back(ring_tensors_[tensor], layout().frame_bytes[tensor] * layout().geometry.ring_frames);
  }
  if (finalized_latent_ != 0) give_back(finalized_latent_, layout().geometry.latent_bytes);
  ring_tensors_.clear();
  finalized_latent_ = 0;
  is_open_ = false;
}

void StandInEngine::abandon() {
  stream_.reset();
  copy_stream_.reset();
  producer_.reset();
  if (!is_open_) return;
  for (const std::uintptr_t tensor : ring_tensors_) tensors_.on_tensor_gone(tensor);
  if (finalized_latent_ != 0) tensors_.on_tensor_gone(finalized_latent_);
  for (std::uint32_t i = 0; i < target_count_; ++i) tensors_.on_tensor_gone(targets_ + i * target_stride_);
  ring_tensors_.clear();
  finalized_latent_ = targets_ = 0;
  target_count_ = 0;
  is_open_ = false;
}

void StandInEngine::free_targets() {
  if (targets_ == 0) return;
  for (std::uint32_t i = 0; i < target_count_; ++i) tensors_.on_tensor_gone(targets_ + i * target_stride_);
  tensors_.on_free(*stream_, {targets_, target_stride_ * target_count_});
  static_cast<void>(device_.free(targets_).has_value());
  targets_ = 0;
  target_count_ = 0;
}

// ---- Computing.

bool StandInEngine::can_generate() const {
  return is_open_ && chunks_done_ < path_.size() && ring_.has_room() && !device_.context_dead();
}

bool StandInEngine::generate() {
  check(can_generate(), "a chunk is generated only where the ring has room");
  reach_stream_order();
  reread(std::min(kSampledFrames, ring_.size() * layout().tensors()));

  const NodeIndex index = path_[chunks_done_];
  const EngineLayout& sizes = layout();
  const std::uint32_t frames = sizes.geometry.frames_per_chunk;
  const std::uint64_t draws_due = static_cast<std::uint64_t>(chunks_done_) * (sizes.geometry.timesteps - 1);
  std::uint64_t error = ring_error();
  if (draws_ != draws_due) error ^= mix(draws_, draws_due);

  const std::size_t size_before = ring_.size();
  const ColdRing::Dropped dropped = ring_.append_chunk();
  make_room(dropped, size_before);
  const std::size_t first = ring_.size() - frames;
  const std::size_t first_written = dropped.count == 0 ? first : dropped.first;
  tell_kernel(first_written, {finalized_latent_, sizes.geometry.latent_bytes}, true);
  std::vector<const std::byte*> values;
  values.reserve(sizes.tensors());
  for (std::size_t tensor = 0; tensor < sizes.tensors(); ++tensor) {
    std::byte* out = frame_at(tensor, first);
    values.push_back(out);
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
      fill_pseudo_bytes(out, sizes.frame_bytes[tensor], Oracle::frame_seed(oracle_.node(index), tensor, frame) ^ error);
      out += sizes.frame_bytes[tensor];
    }
    device_.wrote(ring_tensors_[tensor] + first_written * sizes.frame_bytes[tensor],
                  (ring_.size() - first_written) * sizes.frame_bytes[tensor]);
  }
  std::byte* latent_bytes = at(finalized_latent_);
  fill_pseudo_bytes(latent_bytes, sizes.geometry.latent_bytes,
                    Oracle::frame_seed(oracle_.node(index), sizes.tensors(), 0) ^ error);
  device_.wrote(finalized_latent_, sizes.geometry.latent_bytes);

  if (!oracle_.knows(index)) {
    if (error == 0) {
      oracle_.learn(index, values, latent_bytes);
    } else {
      oracle_.work_out(index);
    }
  }
  value_digests_.clear();
  latent_digest_ = oracle_.node(index).latent_digest;
  if (error == 0) {
    for (std::size_t tensor = 0; tensor < sizes.tensors(); ++tensor) {
      value_digests_.push_back(oracle_.value_digest(index, tensor));
    }
  } else {
    for (std::size_t tensor = 0; tensor < sizes.tensors(); ++tensor) {
      value_digests_.push_back(digest_of(values[tensor], sizes.value_bytes(tensor)));
      for (std::uint32_t frame = 0; frame < frames; ++frame) {
        const std::uint64_t digest =
            digest_of(values[tensor] + frame * sizes.frame_bytes[tensor], sizes.frame_bytes[tensor]);
        oracle_.note_spread(digest);
        note_digest(ring_[first + frame], tensor, digest);
      }
    }
    latent_digest_ = sizes.geometry.latent_bytes == 0 ? latent_digest_ ^ error
                                                      : digest_of(latent_bytes, sizes.geometry.latent_bytes);
    oracle_.note_spread(latent_digest_);
  }
  draws_ += sizes.geometry.timesteps - 1;
  add_output_frames(latent_digest_, error);
  ++chunks_done_;
  indices_ = {ring_.size() * sizes.geometry.frame_tokens, ring_.frames_seen() * sizes.geometry.frame_tokens};

  if (resumed_) oracle_.count_exact();
  const bool right = error == 0 && chain_ == oracle_.node(index).chain;
  if (!right && !blamed_) {
    blamed_ = true;
    oracle_.report(Invariant::exact_bytes,
                   "the output frames of " + oracle_.describe(index) + " differ from the cold run's: " +
                       (draws_ != draws_due + sizes.geometry.timesteps - 1 ? "the draws burnt before it differ"
                        : error != 0                                       ? "the ring it was computed from is wrong"
                                                                           : "a latent above it is wrong"),
                   "output frames");
  }
  return right;
}

void StandInEngine::make_room(const ColdRing::Dropped& dropped, std::size_t size_before) {
  if (dropped.count == 0) return;
  const std::size_t behind = size_before - dropped.first - dropped.count;
  for (std::size_t tensor = 0; tensor < layout().tensors(); ++tensor) {
    device_.fetch(ring_tensors_[tensor] + (dropped.first + dropped.count) * layout().frame_bytes[tensor],
                  behind * layout().frame_bytes[tensor]);
    std::memmove(frame_at(tensor, dropped.first), frame_at(tensor, dropped.first + dropped.count),
                 behind * layout().frame_bytes[tensor]);
  }
  std::erase_if(wrong_, [&](const WrongFrame& wrong) {
    for (std::size_t position = 0; position < ring_.size(); ++position) {
      if (ring_[position] == wrong.frame) return false;
    }
    return true;
  });
}

void StandInEngine::add_output_frames(std::uint64_t latent_digest, std::uint64_t error) {
  const bool first = frame_hashes_.empty();
  chain_ = mix(chain_, latent_digest) ^ error;
  const std::uint64_t count = kOutputFramesPerLatentFrame * layout().geometry.frames_per_chunk + (first ? 1 : 0);
  for (std::uint64_t i = 0; i < count; ++i) frame_hashes_.push_back(mix(chain_, frame_hashes_.size()));
}

// ---- Reading the ring.

// Another access than a copy's: kernels of this stream come after everything submitted to it before.
void StandInEngine::reach_stream_order() {
  if (device_.in_flight_count() == 0) return;
  bool touched = targets_ != 0 && device_.in_flight(targets_, target_stride_ * target_count_).has_value();
  if (finalized_latent_ != 0) {
    touched = touched || device_.in_flight(finalized_latent_, layout().geometry.latent_bytes).has_value();
  }
  for (std::size_t tensor = 0; tensor < ring_tensors_.size() && !touched; ++tensor) {
    touched = device_.in_flight(ring_tensors_[tensor], layout().frame_bytes[tensor] * layout().geometry.ring_frames)
                  .has_value();
  }
  if (!touched) return;
  fakes::CopyChoice at_once;
  at_once.moment = fakes::CopyMoment::at_submission;
  static_cast<void>(device_.launch(*stream_, [] {}, at_once).has_value());
}

void StandInEngine::tell_kernel(std::size_t first_written, const MemoryRange& latents, bool writes_latents) {
  accesses_.clear();
  const auto add = [&](const MemoryRange& range, bool write) {
    if (range.bytes != 0) accesses_.push_back({range, write});
  };
  for (std::size_t tensor = 0; tensor < ring_tensors_.size(); ++tensor) {
    const std::uint64_t frame_bytes = layout().frame_bytes[tensor];
    add({ring_tensors_[tensor], first_written * frame_bytes}, false);
    add({ring_tensors_[tensor] + first_written * frame_bytes, (ring_.size() - first_written) * frame_bytes}, true);
  }
  add(latents, writes_latents);
  tensors_.on_kernel(*stream_, accesses_);
}

std::byte* StandInEngine::frame_at(std::size_t tensor, std::size_t position) const {
  return at(ring_tensors_[tensor]) + position * layout().frame_bytes[tensor];
}

const std::byte* StandInEngine::frame(std::size_t tensor, std::size_t position) const {
  const std::byte* bytes = frame_at(tensor, position);
  device_.fetch(reinterpret_cast<std::uintptr_t>(bytes), layout().frame_bytes[tensor]);
  return bytes;
}

const std::byte* StandInEngine::latent(std::uint32_t index) const {
  device_.fetch(targets_ + index * target_stride_, layout().geometry.latent_bytes);
  return at(targets_) + index * target_stride_;
}

std::uint64_t StandInEngine::expected_digest(std::uint64_t frame, std::size_t tensor) const {
  const std::uint32_t frames = layout().geometry.frames_per_chunk;
  return oracle_.frame_digest(path_[frame / frames], tensor, static_cast<std::uint32_t>(frame % frames));
}

void StandInEngine::note_digest(std::uint64_t frame, std::size_t tensor, std::uint64_t digest) {
  const auto same = [&](const WrongFrame& wrong) { return wrong.frame == frame && wrong.tensor == tensor; };
  const auto known = std::find_if(wrong_.begin(), wrong_.end(), same);
  if (known != wrong_.end()) wrong_.erase(known);
  if (digest != expected_digest(frame, tensor)) wrong_.push_back({frame, tensor, digest});
}

std::uint64_t StandInEngine::ring_error() const {
  std::uint64_t error = 0;
  for (const WrongFrame& wrong : wrong_) error ^= mix(mix(wrong.frame, wrong.tensor), wrong.digest);
  return error;
}

void StandInEngine::reread(std::size_t count) {
  const std::size_t tensors = layout().tensors();
  const std::size_t all = ring_.size() * tensors;
  for (std::size_t i = 0; i < count; ++i) {
    if (next_reread_ >= all) next_reread_ = 0;
    const std::size_t position = next_reread_ / tensors;
    const std::size_t tensor = next_reread_ % tensors;
    ++next_reread_;
    const std::uint64_t frame = ring_[position];
    const std::uint64_t digest = digest_of(this->frame(tensor, position), layout().frame_bytes[tensor]);
    if (digest == expected_digest(frame, tensor)) continue;
    const auto known = std::find_if(wrong_.begin(), wrong_.end(), [&](const WrongFrame& wrong) {
      return wrong.frame == frame && wrong.tensor == tensor && wrong.digest == digest;
    });
    if (known != wrong_.end()) continue;
    note_digest(frame, tensor, digest);
    if (blamed_) continue;
    const std::uint32_t frames = layout().geometry.frames_per_chunk;
    const auto what = oracle_.judge(frame_at(tensor, position), path_[frame / frames], tensor,
                                    static_cast<std::uint32_t>(frame % frames));
    if (!what) continue;
    blamed_ = true;
    if (!what->consequence) {
      oracle_.report(
          Invariant::exact_bytes,
          "ring frame " + std::to_string(position) + " changed while nobody had a right to write it: " + what->what,
          what->culprit);
    }
  }
}

// ---- Resuming.

void StandInEngine::end_resume_cold() {
  ring_.clear();
  wrong_.clear();
  indices_ = {};
  chunks_done_ = 0;
  draws_ = 0;
  chain_ = Oracle::kChainStart;
}

void StandInEngine::end_resume_warm(std::uint32_t chunks, bool right) {
  const std::uint64_t draws = draws_;
  end_resume_cold();
  draws_ = draws;
  resumed_ = true;
  blamed_ = !right;
  const EngineLayout& sizes = layout();
  chunks = std::min(chunks, static_cast<std::uint32_t>(path_.size()));
  for (std::uint32_t i = 0; i < chunks && ring_.has_room(); ++i) {
    ring_.append_chunk();
    const bool held = sizes.geometry.latent_bytes != 0 && i < target_count_;
    add_output_frames(held ? digest_of(latent(i), sizes.geometry.latent_bytes) : oracle_.node(path_[i]).latent_digest,
                      0);
    ++chunks_done_;
  }
  indices_ = {ring_.size() * sizes.geometry.frame_tokens, ring_.frames_seen() * sizes.geometry.frame_tokens};
  if (!right) reread(ring_.size() * sizes.tensors());
  tell_kernel(ring_.size(), {targets_, target_stride_ * target_count_}, false);
}

// ---- What the store sees.

CopyStream StandInEngine::copy_stream() {
  drop_producer();
  CopyStream on = *stream_;
  if (events_ == nullptr) return on;
  const Result<EventRef> event = events_->event_create();
  if (!event) return on;
  producer_ = *event;
  // In a dead context nothing is recorded, and nothing is copied.
  if (!events_->event_record(*event, *stream_)) return on;
  on.stream = *copy_stream_;
  on.producer = producer_;
  on.follower = this;
  return on;
}

void StandInEngine::follow(StreamRef copies, std::optional<EventRef> done) {
  const auto wait_for = [&](EventRef event) { static_cast<void>(events_->stream_wait(*stream_, event).has_value()); };
  if (done) return wait_for(*done);
  const Result<EventRef> event = events_->event_create();
  if (!event) return;
  if (events_->event_record(*event, copies)) wait_for(*event);
  static_cast<void>(events_->event_destroy(*event).has_value());
}

void StandInEngine::drop_producer() {
  // One that died with its client is known to nobody.
  if (producer_) static_cast<void>(events_->event_destroy(*std::exchange(producer_, std::nullopt)).has_value());
}

std::vector<DeviceTensor> StandInEngine::ring() {
  std::vector<DeviceTensor> tensors;
  tensors.reserve(ring_tensors_.size());
  for (std::size_t tensor = 0; tensor < ring_tensors_.size(); ++tensor) {
    tensors.push_back({ring_tensors_[tensor], layout().frame_bytes[tensor] * layout().geometry.ring_frames});
  }
  return tensors;
}

DeviceTensor StandInEngine::finalized_latent() { return {finalized_latent_, layout().geometry.latent_bytes}; }

Result<std::vector<DeviceTensor>> StandInEngine::latent_targets(std::uint32_t chunks) {
  std::vector<DeviceTensor> targets;
  const std::uint64_t bytes = layout().geometry.latent_bytes;
  if (bytes == 0 || chunks == 0) return targets;
  // Fresh memory each time: what an earlier attempt left must not pass for what a later one restored.
  reach_stream_order();
  free_targets();
  const std::uint64_t stride = (bytes + kLatentAlignBytes - 1) / kLatentAlignBytes * kLatentAlignBytes;
  Result<std::uintptr_t> memory = device_.allocate(stride * chunks);
  if (!memory) return memory.error();
  targets_ = *memory;
  target_stride_ = stride;
  target_count_ = chunks;
  targets.reserve(chunks);
  for (std::uint32_t i = 0; i < chunks; ++i) {
    tensors_.on_tensor(targets_ + i * stride, bytes);
    targets.push_back({targets_ + i * stride, bytes});
  }
  return targets;
}

void StandInEngine::publish_kv_indices(RingIndices indices) {
  indices_ = indices;
  if (indices == RingIndices{}) {
    published_.emptied = true;
  } else {
    published_.filled = true;
    published_.largest.local_end_tokens = std::max(published_.largest.local_end_tokens, indices.local_end_tokens);
    published_.largest.global_end_tokens = std::max(published_.largest.global_end_tokens, indices.global_end_tokens);
  }
}

void StandInEngine::publish_latents(std::uint32_t chunks) { published_.latents = std::max(published_.latents, chunks); }

void StandInEngine::fast_forward(std::uint32_t chunks, std::uint64_t draws) {
  published_.chunks = std::max(published_.chunks, chunks);
  published_.draws = std::max(published_.draws, draws);
  draws_ += draws;
}

}  // namespace holdfast::sim
