// GoogleMock double of the CUDA runtime, for tests that script single calls.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <span>

#include "holdfast/core/backend.hpp"

namespace holdfast::fakes {

// A model of CudaRuntime. What is neither expected nor delegated answers an empty success: wrap it in StrictMock, or
// delegate to a runtime that knows better.
class MockCuda : public CudaBackend {
 public:
  MOCK_METHOD(Status, host_register, (std::uintptr_t ptr, std::uint64_t bytes, HostAccess access), (override));
  MOCK_METHOD(Status, host_unregister, (std::uintptr_t ptr), (override));
  MOCK_METHOD(Status, copy_batch, (CopyDirection direction, std::span<const Copy> copies, StreamRef stream),
              (override));
  MOCK_METHOD(Result<EventRef>, event_create, (), (override));
  MOCK_METHOD(Status, event_record, (EventRef event, StreamRef stream), (override));
  MOCK_METHOD(Status, stream_wait, (StreamRef stream, EventRef event), (override));
  MOCK_METHOD(Result<bool>, event_query, (EventRef event), (override));
  MOCK_METHOD(Status, event_synchronize, (EventRef event), (override));
  MOCK_METHOD(Status, event_destroy, (EventRef event), (override));
  MOCK_METHOD(Status, stream_synchronize, (StreamRef stream), (override));
  MOCK_METHOD(Result<PointerAttributes>, pointer_attributes, (std::uintptr_t ptr), (override));

  // What no expectation answers, `runtime` answers. It must outlive this mock's use.
  void delegate_to(CudaBackend& runtime) {
    using testing::Invoke;
    ON_CALL(*this, host_register).WillByDefault(Invoke(&runtime, &CudaBackend::host_register));
    ON_CALL(*this, host_unregister).WillByDefault(Invoke(&runtime, &CudaBackend::host_unregister));
    ON_CALL(*this, copy_batch).WillByDefault(Invoke(&runtime, &CudaBackend::copy_batch));
    ON_CALL(*this, event_create).WillByDefault(Invoke(&runtime, &CudaBackend::event_create));
    ON_CALL(*this, event_record).WillByDefault(Invoke(&runtime, &CudaBackend::event_record));
    ON_CALL(*this, stream_wait).WillByDefault(Invoke(&runtime, &CudaBackend::stream_wait));
    ON_CALL(*this, event_query).WillByDefault(Invoke(&runtime, &CudaBackend::event_query));
    ON_CALL(*this, event_synchronize).WillByDefault(Invoke(&runtime, &CudaBackend::event_synchronize));
    ON_CALL(*this, event_destroy).WillByDefault(Invoke(&runtime, &CudaBackend::event_destroy));
    ON_CALL(*this, stream_synchronize).WillByDefault(Invoke(&runtime, &CudaBackend::stream_synchronize));
    ON_CALL(*this, pointer_attributes).WillByDefault(Invoke(&runtime, &CudaBackend::pointer_attributes));
  }
};
static_assert(CudaRuntime<MockCuda>);

}  // namespace holdfast::fakes
