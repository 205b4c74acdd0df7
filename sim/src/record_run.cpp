#include "holdfast/sim/record_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "campaign_worker.hpp"
#include "forked_child.hpp"
#include "holdfast/sim/text.hpp"

namespace holdfast::sim {
namespace {

constexpr Nanos kRecordListenNs = 50 * kMillisecond;

void run_and_tell(ForkedChild::Link& link, const Trace& trace, const SystemFactory& factory,
                  const RecordOptions& options) {
  RunOptions run;
  run.disabled = options.disabled;
  run.on_moment = [&](const Moment& moment) {
    link.send(encode_message(WorkerMessage::moment, encode_moment(moment)));
  };
  run.on_endless = [&](const std::string& why) {
    link.send(encode_message(WorkerMessage::endless, why));
    _exit(0);
  };
  SeedResult seed;
  seed.run = Executor(factory).run(trace, run);
  link.send(encode_message(WorkerMessage::result, encode_result(seed)));
}

class RecordingListener {
 public:
  // False: what was said is nothing that a child says.
  bool hear(std::string& bytes) {
    std::size_t taken = 0;
    bool known = true;
    while (auto message = take_message_at(bytes, taken)) known = known && understand(*message);
    bytes.erase(0, taken);
    return known;
  }
  [[nodiscard]] bool finished() const { return finished_; }
  RecordedRun take() { return std::move(run_); }

 private:
  bool understand(const ReceivedMessage& message) {
    if (message.kind == WorkerMessage::moment) {
      auto moment = decode_moment(message.body);
      if (!moment) return false;
      if (run_.moments.size() == kMomentsKeptMax) {
        run_.moments.erase(run_.moments.begin(), run_.moments.begin() + kMomentsKeptMax / 2);
      }
      run_.moments.push_back(std::move(*moment));
      return true;
    }
    finished_ = true;
    if (message.kind == WorkerMessage::endless) {
      run_.broken_off = message.body;
      return true;
    }
    auto seed = decode_result(message.body);
    if (message.kind != WorkerMessage::result || !seed) return false;
    run_.violations = std::move(seed->run.violations);
    return true;
  }

  RecordedRun run_;
  bool finished_ = false;
};

Error recording_failed() {
  Error error;
  error.origin = Origin::file_system;
  error.code = ECHILD;
  error.call = "record";
  error.detail = "a child sent what is no moment";
  return error;
}

}  // namespace

Result<RecordedRun> record_run(const Trace& trace, const SystemFactory& factory, const RecordOptions& options) {
  auto child = ForkedChild::start([&](ForkedChild::Link& link) { run_and_tell(link, trace, factory, options); });
  if (!child) return child.error();
  RecordingListener listener;
  std::string bytes;
  const Nanos began_ns = SteadyClock{}.now_ns();
  bool hangs = false;
  for (auto heard = ForkedChild::Heard::silence; heard != ForkedChild::Heard::end && !hangs;) {
    heard = (*child)->listen(bytes, kRecordListenNs);
    if (!listener.hear(bytes)) return recording_failed();
    hangs = (*child)->processor_time_ns() > options.hang_limit_ns ||
            SteadyClock{}.now_ns() - began_ns > 10 * options.hang_limit_ns;
  }
  const bool finished = listener.finished();
  const ForkedChild::Ending ending = (*child)->bury(hangs && !finished);
  RecordedRun run = listener.take();
  if (finished) return run;
  run.broken_off = hangs ? fmt::format("no end within {} of processor time", seconds_text(options.hang_limit_ns))
                         : printable(ending.how);
  return run;
}

}  // namespace holdfast::sim
