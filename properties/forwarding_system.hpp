// A system under test that hands everything on to another: what a test makes misbehave overrides one call.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "holdfast/sim/system_under_test.hpp"

namespace holdfast::sim {

class ForwardingSystem : public SystemUnderTest {
 public:
  explicit ForwardingSystem(std::unique_ptr<SystemUnderTest> inner) : inner_(std::move(inner)) {}

  Status restore() override { return inner_->restore(); }
  Status open_session(SessionId session, const SessionSpec& spec, Engine& engine) override {
    return inner_->open_session(session, spec, engine);
  }
  Status close_session(SessionId session) override { return inner_->close_session(session); }
  Result<ResumeOutcome> resume(SessionId session) override { return inner_->resume(session); }
  Result<IngestOutcome> chunk_finalized(SessionId session) override { return inner_->chunk_finalized(session); }
  Result<std::uint32_t> hold(SessionId session, std::uint32_t hold_id) override {
    return inner_->hold(session, hold_id);
  }
  void unhold(std::uint32_t hold_id) override { inner_->unhold(hold_id); }
  Result<EvictOutcome> evict(SessionId session, std::uint32_t depth) override { return inner_->evict(session, depth); }
  Result<EvictOutcome> make_room(std::uint64_t bytes) override { return inner_->make_room(bytes); }
  Result<WarmUpOutcome> warm_up(const WarmUpGoOn& go_on) override { return inner_->warm_up(go_on); }
  PumpOutcome pump() override { return inner_->pump(); }
  PumpOutcome probe() override { return inner_->probe(); }
  Status snapshot() override { return inner_->snapshot(); }
  void device_torn_down() override { inner_->device_torn_down(); }
  Status shut_down() override { return inner_->shut_down(); }
  [[nodiscard]] Inspection inspect() const override { return inner_->inspect(); }

 protected:
  [[nodiscard]] SystemUnderTest& inner() { return *inner_; }

 private:
  std::unique_ptr<SystemUnderTest> inner_;
};

}  // namespace holdfast::sim
