#include "holdfast/core/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "holdfast/core/cuda_runtime.hpp"
#include "holdfast/core/fluxon_runtime.hpp"
#include "holdfast/core/tier_store.hpp"

namespace holdfast {
namespace {

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> value = 7;
  const Result<int> error = make_error(Errc::not_found, "find");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 7);
  ASSERT_FALSE(error);
  EXPECT_TRUE(error.error().is(Errc::not_found));
  EXPECT_TRUE(Status{});
}

TEST(Error, IsOneLineWithCausesAndFailuresOfTheCleanUp) {
  Error error = make_error(Errc::put_failed, "put_blob", "nothing was published",
                           fluxon_error(FluxonErrc::network, "local_fast_put_start", "no free slot"));
  error.suppressed.push_back(cuda_error(CudaErrc::launch_failure, "stream_synchronize"));
  EXPECT_EQ(to_string(error),
            "put_blob: put_failed: nothing was published; because local_fast_put_start: fluxon 7000 network: no free "
            "slot; while cleaning up: stream_synchronize: cuda 719 launch_failure");
}

TEST(Error, ACausesOwnCausesAreInParentheses) {
  const Error inner = make_error(Errc::copy_failed, "submit", "", cuda_error(CudaErrc::invalid_value, "copy_batch"));
  EXPECT_EQ(to_string(make_error(Errc::get_failed, "materialize", "", inner)),
            "materialize: get_failed; because (submit: copy_failed; because copy_batch: cuda 1 invalid_value)");
}

TEST(Error, StaysOneLineWhateverAPathHolds) {
  EXPECT_EQ(to_string(make_error(Errc::file_failed, "write", "a\nb\x7f")), "write: file_failed: a\\x0ab\\x7f");
}

TEST(Error, ANumberWithoutANameIsSaidAsANumber) {
  Error error = fluxon_error(static_cast<FluxonErrc>(9999), "remove");
  EXPECT_EQ(to_string(error), "remove: fluxon 9999");
  error.origin = Origin::fluxon_key;
  error.code = -611;
  EXPECT_EQ(to_string(error), "remove: fluxon_key -611");
  error.origin = Origin::core;
  EXPECT_EQ(to_string(error), "remove: core -611");
  error.origin = Origin::file_system;
  EXPECT_EQ(to_string(error), "remove: file_system -611");
}

TEST(Error, AFailureOfTheFileSystemIsSaidInWords) {
  Error error;
  error.origin = Origin::file_system;
  error.code = ENOENT;
  error.call = "read";
  EXPECT_EQ(to_string(error), "read: file_system 2 No such file or directory");
}

TEST(Error, EveryCodeOfTheCoreHasAName) {
  for (int code = static_cast<int>(Errc::invalid_argument); code <= static_cast<int>(Errc::foreign_file); ++code) {
    EXPECT_FALSE(to_string(static_cast<Errc>(code)).empty()) << code;
  }
}

TEST(Error, MentionsWhatIsAnywhereInItsCausesAndCleanUp) {
  Error cleanup = make_error(Errc::remove_failed, "free", "", fluxon_error(FluxonErrc::key_not_found, "remove"));
  Error error = make_error(Errc::put_failed, "put");
  error.suppressed.push_back(cleanup);
  const auto not_found = static_cast<std::int32_t>(FluxonErrc::key_not_found);
  EXPECT_TRUE(mentions(error, Origin::fluxon, not_found));
  EXPECT_TRUE(mentions(error, Origin::core, static_cast<std::int32_t>(Errc::put_failed)));
  EXPECT_FALSE(mentions(error, Origin::cuda, not_found));
  EXPECT_FALSE(mentions(error, Origin::fluxon, static_cast<std::int32_t>(FluxonErrc::network)));
}

TEST(Result, WhatWasAbsorbedMovesIntoTheErrorOfWhatFails) {
  Absorbed absorbed;
  absorbed.push_back(fluxon_error(FluxonErrc::network, "remove"));
  const Error error = with_suppressed(make_error(Errc::put_failed, "put"), absorbed);
  ASSERT_EQ(error.suppressed.size(), 1U);
  EXPECT_TRUE(is_fluxon(error.suppressed[0], FluxonErrc::network));
  EXPECT_TRUE(absorbed.empty()) << "it is told once";
}

TEST(CommitCodes, OnlyZeroIsStoredAndOnlyTwoCodesAreNotStored) {
  EXPECT_EQ(outcome_of(0), KeyOutcome::stored);
  EXPECT_EQ(outcome_of(-117), KeyOutcome::not_stored);
  EXPECT_EQ(outcome_of(-118), KeyOutcome::not_stored);
  for (const std::int32_t code : {-103, -608, -600, -699, -116, -119, -1, 1, 117}) {
    EXPECT_EQ(outcome_of(code), KeyOutcome::unknown) << code;
  }
}

TEST(CudaErrors, StickyAreThoseThatOnlyATearDownHelps) {
  const auto sticky = [](std::int32_t code) { return is_sticky(cuda_error(static_cast<CudaErrc>(code), "call")); };
  for (const std::int32_t code : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
    EXPECT_TRUE(sticky(code)) << code;
  }
  for (const std::int32_t code : {0, 1, 2, 100, 101, 600, 701, 703, 704, 708, 711, 712, 713, 720, 800, 801, 909}) {
    EXPECT_FALSE(sticky(code)) << code;
  }
  EXPECT_FALSE(is_sticky(fluxon_error(static_cast<FluxonErrc>(700), "call")));
}

TEST(StreamRef, RefusesEveryDefaultStream) {
  for (const std::uintptr_t native : {0U, 1U, 2U}) {
    const Result<StreamRef> stream = StreamRef::from_native(native);
    ASSERT_FALSE(stream) << native;
    EXPECT_TRUE(stream.error().is(Errc::invalid_argument));
  }
  const Result<StreamRef> stream = StreamRef::from_native(0x1000);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->native(), 0x1000U);
}

}  // namespace
}  // namespace holdfast
