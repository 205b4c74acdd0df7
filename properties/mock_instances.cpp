#include "mock_instances.hpp"

namespace testing::internal {

using namespace holdfast;

#define HOLDFAST_HERE(...)                      \
  template class FunctionMocker<__VA_ARGS__>;   \
  template class TypedExpectation<__VA_ARGS__>; \
  template class OnCallSpec<__VA_ARGS__>;       \
  template class MockSpec<__VA_ARGS__>;
HOLDFAST_MOCKED(HOLDFAST_HERE)

}  // namespace testing::internal
