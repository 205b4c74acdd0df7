// A batch is submitted whole and valid, or not at all.
#include "holdfast/core/copy_batch.hpp"

#include <gtest/gtest.h>

#include "holdfast/core/segment_registry.hpp"
#include "mock_instances.hpp"

namespace holdfast {
namespace {

using testing::_;
using testing::NiceMock;

constexpr std::uintptr_t kWrite = 0x1000'0000;
constexpr std::uintptr_t kRead = 0x2000'0000;
constexpr std::uint64_t kPiece = 0x10000;

class CopyBatchTest : public testing::Test {
 protected:
  CopyBatchTest() {
    Segment segment;
    segment.write_ptr = kWrite;
    segment.read_ptr = kRead;
    segment.len = 4 * kPiece;
    segment.generation = 7;
    std::vector<Error> absorbed;
    EXPECT_TRUE(registry.ensure(registry.begin_look(), std::span(&segment, 1), absorbed).has_value());
  }
  void expect_refused(CopyBatch& batch, Errc errc) {
    const Status validated = batch.validate(registry);
    ASSERT_FALSE(validated.has_value());
    EXPECT_TRUE(validated.error().is(errc)) << to_string(validated.error());
    EXPECT_TRUE(batch.copies().empty());
  }

  NiceMock<fakes::MockCuda> cuda;
  StdSync sync;
  SegmentRegistry<fakes::MockCuda, StdSync> registry{cuda, sync, {.piece_bytes = kPiece}};
  const DeviceTensor tensor{0x7000'0000, 0x1000, 0, true};
};

TEST(CheckTensors, NoTensorsAreRefused) {
  const Status checked = check_tensors({});
  ASSERT_FALSE(checked.has_value());
  EXPECT_TRUE(checked.error().is(Errc::invalid_argument));
}

TEST_F(CopyBatchTest, BuildsCopiesInTheDirectionOfTheBatch) {
  CopyBatch down(CopyDirection::device_to_host);
  down.add(tensor, 0x100, kWrite + 8, 0x200);
  ASSERT_TRUE(down.validate(registry).has_value());
  EXPECT_EQ(down.copies()[0], (Copy{kWrite + 8, tensor.data + 0x100, 0x200}));
  CopyBatch up(CopyDirection::host_to_device);
  up.add(tensor, 0x100, kRead + 8, 0x200);
  ASSERT_TRUE(up.validate(registry).has_value());
  EXPECT_EQ(up.copies()[0], (Copy{tensor.data + 0x100, kRead + 8, 0x200}));
}

TEST_F(CopyBatchTest, ABatchWithoutCopiesIsRefused) {
  CopyBatch batch(CopyDirection::device_to_host);
  expect_refused(batch, Errc::invalid_argument);
}

TEST_F(CopyBatchTest, AnEmptyCopyIsRefused) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, kWrite, 0);
  expect_refused(batch, Errc::invalid_argument);
}

TEST_F(CopyBatchTest, OneBadCopyRefusesTheWholeBatch) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, kWrite, 0x100);
  batch.add(tensor, 0x100, kWrite + 0x100, 0x100);
  batch.add(tensor, 0xF01, kWrite + 0x200, 0x100);
  expect_refused(batch, Errc::invalid_argument);
}

TEST_F(CopyBatchTest, ACopyWhoseOffsetOverflowsIsRefused) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, ~0ULL, kWrite, 2);
  expect_refused(batch, Errc::invalid_argument);
}

TEST_F(CopyBatchTest, HostMemoryThatIsNotRegisteredIsRefused) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, 0x5000'0000, 0x100);
  expect_refused(batch, Errc::not_registered);
}

TEST_F(CopyBatchTest, ACopyAcrossTwoRegistrationsIsRefused) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, kWrite + kPiece - 0x80, 0x100);
  expect_refused(batch, Errc::not_registered);
}

TEST_F(CopyBatchTest, ACopyUpToTheEndOfARegistrationIsTaken) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, kWrite + kPiece - 0x100, 0x100);
  EXPECT_TRUE(batch.validate(registry).has_value());
}

TEST_F(CopyBatchTest, OverlappingDestinationsAreRefusedInEitherOrder) {
  for (const std::uintptr_t second : {kWrite + 0xFF, kWrite - 0x0 + 0x1FF}) {
    CopyBatch batch(CopyDirection::device_to_host);
    batch.add(tensor, 0, kWrite + 0x100, 0x100);
    batch.add(tensor, 0x100, second, 0x100);
    expect_refused(batch, Errc::invalid_argument);
  }
  CopyBatch up(CopyDirection::host_to_device);
  up.add(tensor, 0x100, kRead, 0x100);
  up.add(tensor, 0x80, kRead + 0x100, 0x100);
  expect_refused(up, Errc::invalid_argument);
}

TEST_F(CopyBatchTest, OneSourceMayBeReadTwice) {
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, kWrite, 0x100);
  batch.add(tensor, 0, kWrite + 0x100, 0x100);
  EXPECT_TRUE(batch.validate(registry).has_value());
}

TEST_F(CopyBatchTest, StaleMemoryIsRefused) {
  Segment next;
  next.write_ptr = kWrite + 0x100'0000;
  next.read_ptr = kRead + 0x100'0000;
  next.len = kPiece;
  next.generation = 8;
  ASSERT_TRUE(registry.begin_use(7).has_value());  // so that the old pieces stay registered
  std::vector<Error> absorbed;
  ASSERT_TRUE(registry.ensure(registry.begin_look(), std::span(&next, 1), absorbed).has_value());
  CopyBatch batch(CopyDirection::device_to_host);
  batch.add(tensor, 0, kWrite, 0x100);
  expect_refused(batch, Errc::stale_generation);
}

}  // namespace
}  // namespace holdfast
