// What GoogleMock makes of the mocks' signatures, compiled once, in mock_instances.cpp, for all tests.
#pragma once

#include "holdfast/fakes/mock_cuda.hpp"
#include "holdfast/fakes/mock_fluxon.hpp"

// Calls X with each signature. NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define HOLDFAST_MOCKED(X)                                        \
  X(Status(std::uintptr_t, std::uint64_t, HostAccess))            \
  X(Status(std::uintptr_t))                                       \
  X(Status(CopyDirection, std::span<const Copy>, StreamRef))      \
  X(Result<EventRef>())                                           \
  X(Status(EventRef, StreamRef))                                  \
  X(Status(StreamRef, EventRef))                                  \
  X(Result<bool>(EventRef))                                       \
  X(Status(EventRef))                                             \
  X(Status(StreamRef))                                            \
  X(Result<PointerAttributes>(std::uintptr_t))                    \
  X(Result<std::vector<Segment>>())                               \
  X(Result<PlanPtr>(Keys, std::uint64_t, const PutOptions&))      \
  X(Result<FluxonBackend::Future>(PlanPtr))                       \
  X(Status(PlanPtr))                                              \
  X(Result<GetStart>(Keys, bool, std::span<const std::uint32_t>)) \
  X(Result<PlanPtr>(GetHandle, std::uint64_t))                    \
  X(Status(GetHandle))                                            \
  X(Status(std::string_view))                                     \
  X(Status(std::string_view, std::span<const std::byte>))         \
  X(Result<std::vector<std::byte>>(std::string_view))

namespace testing::internal {

using namespace holdfast;

#define HOLDFAST_NOT_HERE(...)                         \
  extern template class FunctionMocker<__VA_ARGS__>;   \
  extern template class TypedExpectation<__VA_ARGS__>; \
  extern template class OnCallSpec<__VA_ARGS__>;       \
  extern template class MockSpec<__VA_ARGS__>;
HOLDFAST_MOCKED(HOLDFAST_NOT_HERE)
#undef HOLDFAST_NOT_HERE

}  // namespace testing::internal
