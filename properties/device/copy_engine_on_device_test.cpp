// Copies of any size and alignment, by whatever way they take, move exactly their bytes.
#include <cstring>
#include <random>

#include "device_fixture.hpp"

namespace holdfast::device {
namespace {

struct Way {
  const char* name;
  CopyThresholds thresholds;
};

class CopiesOnDevice : public testing::TestWithParam<Way> {
 protected:
  static constexpr std::uint64_t kBytes = 48 << 20;

  CopiesOnDevice() {
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    host_.resize(kBytes + 4096);
    base_ = (reinterpret_cast<std::uintptr_t>(host_.data()) + 4095) / 4096 * 4096;
    EXPECT_TRUE(device->host_register(base_, kBytes, HostAccess::read_write));
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), cudaSuccess);
    stream = StreamRef::from_native(reinterpret_cast<std::uintptr_t>(made)).value();
  }
  ~CopiesOnDevice() override {
    EXPECT_TRUE(device->host_unregister(base_));
    EXPECT_EQ(cudaStreamDestroy(reinterpret_cast<cudaStream_t>(stream.native())), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  std::uintptr_t on_device(std::uint64_t offset) const { return reinterpret_cast<std::uintptr_t>(memory_) + offset; }
  std::uintptr_t in_host(std::uint64_t offset) const { return base_ + offset; }
  static std::string noise(std::uint64_t bytes, unsigned seed) {
    std::minstd_rand random(seed);
    std::string text(bytes, '\0');
    for (std::uint64_t i = 0; i + 4 <= bytes; i += 4) {
      const std::uint32_t word = static_cast<std::uint32_t>(random());
      std::memcpy(&text[i], &word, 4);
    }
    return text;
  }
  // All of one side is filled; what the copies leave on the other is compared byte by byte, gaps too.
  void moves_exactly(CopyDirection direction, const std::vector<Copy>& copies) {
    const std::string from = noise(kBytes, 1), before = noise(kBytes, 2);
    const bool out = direction == CopyDirection::device_to_host;
    ASSERT_EQ(cudaMemcpy(memory_, (out ? from : before).data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
    std::memcpy(reinterpret_cast<void*>(base_), (out ? before : from).data(), kBytes);
    std::string expected = before;
    for (const Copy& copy : copies) {
      const std::uint64_t to = copy.dst - (out ? in_host(0) : on_device(0));
      const std::uint64_t at = copy.src - (out ? on_device(0) : in_host(0));
      ASSERT_LE(std::max(to, at) + copy.bytes, kBytes);
      expected.replace(to, copy.bytes, from, at, copy.bytes);
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_TRUE(device->copy_batch(direction, copies, stream));
    ASSERT_TRUE(device->stream_synchronize(stream));
    std::string after(kBytes, '\0');
    if (out) {
      std::memcpy(after.data(), reinterpret_cast<const void*>(base_), kBytes);
    } else {
      ASSERT_EQ(cudaMemcpy(after.data(), memory_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    }
    const auto [ours, theirs] = std::ranges::mismatch(after, expected);
    EXPECT_TRUE(ours == after.end()) << "byte " << ours - after.begin() << " is another one";
  }
  void moves_exactly_both_ways(const std::function<std::vector<Copy>(bool out)>& copies) {
    moves_exactly(CopyDirection::host_to_device, copies(false));
    moves_exactly(CopyDirection::device_to_host, copies(true));
  }
  Copy copy(bool out, std::uint64_t host, std::uint64_t offset, std::uint64_t bytes) const {
    return out ? Copy{in_host(host), on_device(offset), bytes} : Copy{on_device(offset), in_host(host), bytes};
  }

  std::unique_ptr<CudaDevice> device = CudaDevice::open(0, GetParam().thresholds).value();
  StreamRef stream = StreamRef::from_native(0x100).value();

 private:
  void* memory_ = nullptr;
  std::string host_;
  std::uintptr_t base_ = 0;
};

TEST_P(CopiesOnDevice, EveryAlignmentOfBothSides) {
  moves_exactly_both_ways([&](bool out) {
    std::vector<Copy> copies;
    std::uint64_t at = 0;
    for (const std::uint64_t bytes : {1U, 2U, 3U, 7U, 15U, 16U, 17U, 31U, 33U, 255U, 4097U, 16384U, 16385U, 40001U}) {
      for (std::uint64_t host = 0; host < 17; host += bytes > 300 ? 5 : 1) {
        for (std::uint64_t offset = 0; offset < 17; offset += bytes > 300 ? 3 : 1) {
          copies.push_back(copy(out, at + host, at + offset, bytes));
          at += (bytes + 64) / 32 * 32;
        }
      }
    }
    return copies;
  });
}

TEST_P(CopiesOnDevice, ManyOfAllSizesInNoOrder) {
  moves_exactly_both_ways([&](bool out) {
    std::minstd_rand random(out ? 7 : 8);
    std::vector<Copy> copies;
    for (std::uint64_t at = 0;;) {
      const std::uint64_t bytes = 1 + random() % (random() % 20 == 0 ? 3 << 20 : random() % 3 == 0 ? 200'000 : 5'000);
      const std::uint64_t gap = random() % 100;
      if (at + bytes + 200 > kBytes) break;
      copies.push_back(copy(out, at + gap, at + random() % 100, bytes));
      at += bytes + 200;
    }
    std::ranges::shuffle(copies, random);
    EXPECT_GT(copies.size(), 100U);
    return copies;
  });
}

// More than one launch of the kernel takes.
TEST_P(CopiesOnDevice, ThousandsOfSmallOnes) {
  moves_exactly_both_ways([&](bool out) {
    std::vector<Copy> copies;
    for (std::uint64_t i = 0; i < 5000; ++i) copies.push_back(copy(out, i * 8192, (4999 - i) * 8192, 4096 + i % 3));
    return copies;
  });
}

TEST_P(CopiesOnDevice, ThoseThatLieTogetherAreJoined) {
  moves_exactly_both_ways([&](bool out) {
    std::vector<Copy> copies;
    for (std::uint64_t i = 0; i < 1000; ++i) copies.push_back(copy(out, i * 5000, i * 5000 + 40, 5000));
    return copies;
  });
}

TEST_P(CopiesOnDevice, OneOfManyMegabytes) {
  moves_exactly_both_ways([&](bool out) { return std::vector<Copy>{copy(out, 3, 5, kBytes - 11)}; });
}

TEST_P(CopiesOnDevice, NeighboursInTwoRegistrationsAreTwoCopies) {
  ASSERT_TRUE(device->host_unregister(in_host(0)));
  ASSERT_TRUE(device->host_register(in_host(0), kBytes / 2, HostAccess::read_write));
  ASSERT_TRUE(device->host_register(in_host(kBytes / 2), kBytes / 2, HostAccess::read_write));
  moves_exactly_both_ways([&](bool out) {
    const std::uint64_t half = kBytes / 2;
    return std::vector<Copy>{copy(out, half - 3'000'000, half - 3'000'000, 3'000'000),
                             copy(out, half, half, 3'000'000)};
  });
  ASSERT_TRUE(device->host_unregister(in_host(kBytes / 2)));
}

INSTANTIATE_TEST_SUITE_P(Ways, CopiesOnDevice,
                         testing::Values(Way{"AsMeasured", {}}, Way{"Kernel", {~0ULL, ~0ULL}}, Way{"Engines", {0, 0}}),
                         [](const testing::TestParamInfo<Way>& way) { return way.param.name; });

}  // namespace
}  // namespace holdfast::device
