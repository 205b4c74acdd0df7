// GoogleMock doubles of the Fluxon runtime and of a submitted commit, for tests that script single calls.
#pragma once

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/backend.hpp"

namespace holdfast::fakes {

class MockPendingCommit : public PendingCommit {
 public:
  MOCK_METHOD(Result<std::vector<std::int32_t>>, wait, (Nanos limit_ns), (override));
};

// A model of FluxonRuntime. What is neither expected nor delegated answers an empty success: wrap it in StrictMock, or
// delegate to a runtime that knows better.
class MockFluxon : public FluxonBackend {
 public:
  MOCK_METHOD(Result<std::vector<Segment>>, wait_local_segments_ready, (), (override));
  MOCK_METHOD(Result<PlanPtr>, local_fast_put_start, (Keys keys, std::uint64_t value_len, const PutOptions& options),
              (override));
  MOCK_METHOD(Result<Future>, local_fast_put_commit, (PlanPtr plan), (override));
  MOCK_METHOD(Status, put_abort, (PlanPtr plan), (override));
  MOCK_METHOD(Result<GetStart>, get_start,
              (Keys keys, bool prefix_best_effort, std::span<const std::uint32_t> atomic_group_lens), (override));
  MOCK_METHOD(Result<PlanPtr>, get_transfer, (GetHandle handle, std::uint64_t prefix_len), (override));
  MOCK_METHOD(Status, cancel_get_transfer, (GetHandle handle), (override));
  MOCK_METHOD(Status, release_views, (PlanPtr plan), (override));
  MOCK_METHOD(Status, remove, (std::string_view key), (override));
  MOCK_METHOD(Status, put, (std::string_view key, std::span<const std::byte> bytes), (override));
  MOCK_METHOD(Result<std::vector<std::byte>>, get, (std::string_view key), (override));

  // What no expectation answers, `runtime` answers. It must outlive this mock's use.
  void delegate_to(FluxonBackend& runtime) {
    using testing::Invoke;
    ON_CALL(*this, wait_local_segments_ready)
        .WillByDefault(Invoke(&runtime, &FluxonBackend::wait_local_segments_ready));
    ON_CALL(*this, local_fast_put_start).WillByDefault(Invoke(&runtime, &FluxonBackend::local_fast_put_start));
    ON_CALL(*this, local_fast_put_commit).WillByDefault(Invoke(&runtime, &FluxonBackend::local_fast_put_commit));
    ON_CALL(*this, put_abort).WillByDefault(Invoke(&runtime, &FluxonBackend::put_abort));
    ON_CALL(*this, get_start).WillByDefault(Invoke(&runtime, &FluxonBackend::get_start));
    ON_CALL(*this, get_transfer).WillByDefault(Invoke(&runtime, &FluxonBackend::get_transfer));
    ON_CALL(*this, cancel_get_transfer).WillByDefault(Invoke(&runtime, &FluxonBackend::cancel_get_transfer));
    ON_CALL(*this, release_views).WillByDefault(Invoke(&runtime, &FluxonBackend::release_views));
    ON_CALL(*this, remove).WillByDefault(Invoke(&runtime, &FluxonBackend::remove));
    ON_CALL(*this, put).WillByDefault(Invoke(&runtime, &FluxonBackend::put));
    ON_CALL(*this, get).WillByDefault(Invoke(&runtime, &FluxonBackend::get));
  }
};
static_assert(FluxonRuntime<MockFluxon>);

// A future that answers `answer` once; a second wait fails, as a real one's does.
inline FluxonBackend::Future future_answering(Result<std::vector<std::int32_t>> answer) {
  auto pending = std::make_unique<testing::NiceMock<MockPendingCommit>>();
  EXPECT_CALL(*pending, wait)
      .Times(testing::AtMost(2))
      .WillOnce(testing::Return(std::move(answer)))
      .WillRepeatedly(testing::Invoke([](Nanos /*limit_ns*/) -> Result<std::vector<std::int32_t>> {
        return fluxon_error(FluxonErrc::general, "future.wait", "this future has been waited for");
      }));
  return FluxonBackend::Future(std::move(pending));
}

}  // namespace holdfast::fakes
