#include "holdfast/sim/dispositions.hpp"

#include <gtest/gtest.h>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"

namespace holdfast::sim {
namespace {

FiredFault fault(Call call, FaultKind kind, Origin origin, std::int32_t code) {
  FiredFault fired;
  fired.point.step = 7;
  fired.point.call = call;
  fired.point.kind = kind;
  fired.point.code = code;
  fired.origin = origin;
  fired.code = code;
  return fired;
}

const FiredFault kLostStart = fault(Call::local_fast_put_start, FaultKind::lost, Origin::fluxon, 7000);

std::size_t untold_count(const std::vector<FiredFault>& faults, const std::vector<Error>& errors,
                         Absorptions absorptions = {}) {
  ToldErrors told;
  told.add(errors);
  return untold(faults, told, absorptions).size();
}

TEST(Dispositions, ACauseAtAnyDepthTells) {
  Error low = fluxon_error(FluxonErrc::network, "local_fast_put_start");
  Error high = make_error(Errc::put_failed, "put", "", make_error(Errc::put_failed, "group", "", low));
  EXPECT_EQ(untold_count({kLostStart}, {high}), 0U);
}

TEST(Dispositions, AFailureOfTheCleanUpTellsBeside) {
  Error error = make_error(Errc::copy_failed, "put");
  error.suppressed.push_back(fluxon_error(FluxonErrc::network, "put_abort"));
  EXPECT_EQ(untold_count({fault(Call::put_abort, FaultKind::part, Origin::fluxon, 7000)}, {error}), 0U);
}

TEST(Dispositions, SilenceIsSeen) { EXPECT_EQ(untold_count({kLostStart}, {}), 1U); }

TEST(Dispositions, AnotherCallsErrorOfTheSameCodeDoesNotTell) {
  EXPECT_EQ(untold_count({kLostStart}, {fluxon_error(FluxonErrc::network, "get_start")}), 1U);
}

TEST(Dispositions, OneErrorTellsOfOneFault) {
  const Error error = fluxon_error(FluxonErrc::network, "local_fast_put_start");
  EXPECT_EQ(untold_count({kLostStart, kLostStart}, {error}), 1U);
  EXPECT_EQ(untold_count({kLostStart, kLostStart}, {error, error}), 0U);
}

TEST(Dispositions, APerKeyCodeTellsWhereverItComesFrom) {
  const FiredFault part = fault(Call::commit_wait, FaultKind::part, Origin::fluxon_key, -608);
  Error code;
  code.origin = Origin::fluxon_key;
  code.code = -608;
  code.call = "commit of key 3";
  EXPECT_EQ(untold_count({part}, {code}), 0U);
  EXPECT_EQ(untold_count({part}, {}), 1U);
}

TEST(Dispositions, FilesAreToldByTheShortNameOfTheCall) {
  Error error;
  error.origin = Origin::file_system;
  error.code = 5;
  error.call = "sync";
  EXPECT_EQ(untold_count({fault(Call::file_sync, FaultKind::before, Origin::file_system, 5)}, {error}), 0U);
}

TEST(Dispositions, EventsNeedNone) {
  for (const FaultKind kind : {FaultKind::late, FaultKind::gone, FaultKind::evict, FaultKind::death}) {
    EXPECT_FALSE(needs_disposition(fault(Call::remove, kind, Origin::fluxon, 3001)));
  }
}

TEST(Dispositions, ARegistrationMayFallBackToReadOnlyOnce) {
  const FiredFault refused = fault(Call::host_register, FaultKind::before, Origin::cuda, 1);
  Absorptions one;
  one.read_only_fallbacks = 1;
  EXPECT_EQ(untold_count({refused}, {}, one), 0U);
  EXPECT_EQ(untold_count({refused, refused}, {}, one), 1U);
}

TEST(Dispositions, ARefusedSecondMappingMayBeTranslated) {
  Absorptions one;
  one.translated_mappings = 1;
  EXPECT_EQ(untold_count({fault(Call::host_register, FaultKind::before, Origin::cuda, 2)}, {}, one), 0U);
}

TEST(Dispositions, AKeyOfSomebodyElseIsAnAnswerOfThePut) {
  const FiredFault exists = fault(Call::local_fast_put_start, FaultKind::before, Origin::fluxon, 4001);
  Absorptions elsewhere;
  elsewhere.put_not_published = true;
  EXPECT_EQ(untold_count({exists}, {}, elsewhere), 0U);
  EXPECT_EQ(untold_count({exists}, {}), 1U);
  EXPECT_EQ(untold_count({kLostStart}, {}, elsewhere), 1U) << "a transport failure is not one";
}

TEST(Dispositions, AQueueByItselfTellsNothing) {
  EXPECT_EQ(untold_count({fault(Call::stream_synchronize, FaultKind::before, Origin::cuda, 719)}, {}), 1U);
  EXPECT_EQ(untold_count({fault(Call::remove, FaultKind::lost, Origin::fluxon, 7000)}, {}), 1U);
}

}  // namespace
}  // namespace holdfast::sim
