// A campaign's worker: the child process that runs seeds, and how it and its parent talk.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/sim/campaign.hpp"

namespace holdfast::sim {

enum class WorkerPhase : std::uint32_t { idle, making_trace, running, rechecking, rechecking_fresh };

// In memory shared by both processes: it outlives a worker that crashed, and says at which seed.
struct WorkerSlot {
  std::atomic<std::uint64_t> seed;
  std::atomic<WorkerPhase> phase;
  std::atomic<std::uint64_t> progress;  // changes whenever the worker gets on
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<WorkerPhase>::is_always_lock_free);

// Parent to worker: two numbers, the first and last seed of a block. The end of the stream ends the worker.
// Worker to parent: messages of one kind byte, eight bytes of length and a body.
enum class WorkerMessage : std::uint8_t {
  result,      // the body is a SeedResult
  block_done,  // no body: ready for the next
  exception,   // the seed in the slot threw; the body says what; the worker ends
  endless,     // the run of the seed in the slot has no end; the body says why; the worker ends
  unusable,    // the worker cannot go on; the body says why
  // Between a worker and its fresh process, which answers with `result`, `exception` or `unreadable`.
  ready,         // from the fresh process, once: it is up
  trace,         // the body is a trace as text
  logged_trace,  // the same; its log is wanted as text
  unreadable,    // the text was no trace; the body says why
  moment,        // of a recorded run (see record_run.hpp): the body is a Moment
};

std::string encode_result(const SeedResult& result);
std::optional<SeedResult> decode_result(std::string_view body);

std::string encode_moment(const Moment& moment);
std::optional<Moment> decode_moment(std::string_view body);

std::string encode_message(WorkerMessage kind, std::string_view body);
// Takes the first whole message off the front of `stream`.
struct ReceivedMessage {
  WorkerMessage kind{};
  std::string body;
};
std::optional<ReceivedMessage> take_message(std::string& stream);
// The same of what stands at `at`, which moves behind it; `stream` stays.
std::optional<ReceivedMessage> take_message_at(std::string_view stream, std::size_t& at);
// False: the other side has gone.
bool send_all(int socket, std::string_view bytes);
// The next message; waits for it. Nothing: the other side has gone.
std::optional<ReceivedMessage> receive_message(int socket, std::string& stream);

// True for the share of seeds that a ratio picks: the same ones whoever asks.
bool picked(std::uint64_t seed, const Share& share);

// Serves blocks until the stream ends, then returns. What it throws, the process dies of.
void serve_blocks(int socket, WorkerSlot& slot, const CampaignOptions& options, const SystemFactory& factory,
                  const TraceSource& source);

}  // namespace holdfast::sim
