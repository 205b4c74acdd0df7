// The contract's lines over the fake device; properties/device/ has them over a real one.
#include "device_contract.hpp"

namespace holdfast {
namespace {

INSTANTIATE_TEST_SUITE_P(Fake, DeviceContract,
                         testing::Values(DeviceKind{
                             "Fake", [](fakes::Arena& arena) { return std::make_unique<FakeDeviceUnderTest>(arena); }}),
                         [](const testing::TestParamInfo<DeviceKind>& kind) { return kind.param.name; });

}  // namespace
}  // namespace holdfast
