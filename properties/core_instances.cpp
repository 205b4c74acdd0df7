// The core over the mocks, compiled once for all tests of it.
#include "session_fixture.hpp"

namespace holdfast {

template class PlanTierStore<TestRuntime>;
template class SegmentRegistry<fakes::MockCuda, StdSync>;
template class Manager<TestRuntime, TestStore>;
template class SessionBinding<TestManager>;
template class OwnedSnapshots<TestRuntime, MemoryTierStore<StdSync>>;
template class Manager<TestRuntime, MemoryTierStore<StdSync>>;
template class SessionBinding<MemoryManager>;

CoreTest::CoreTest(const fakes::OwnerOptions& owner_options)
    : owner(arena, clock, owner_options), device(arena, clock) {
  fluxon.delegate_to(owner);
  cuda.delegate_to(device);
}
CoreTest::~CoreTest() = default;

}  // namespace holdfast
