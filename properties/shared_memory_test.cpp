// Segments in real shared memory: one file, two mappings, and what pages they really have.
#include "holdfast/real_device/shared_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::device {
namespace {

using fakes::DualRegion;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kSmall = 8 * kMiB;

std::uint8_t* at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }

// Lines of /proc/self/maps of our file.
std::size_t mappings_of_segments() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("holdfast-segment") == std::string::npos ? 0 : 1;
  return count;
}

// As another program would look: how many bytes of the mapping at `base` a field of smaps counts.
std::uint64_t smaps_kib(std::uintptr_t base, const std::string& field) {
  char first[32];
  std::snprintf(first, sizeof first, "%lx-", static_cast<unsigned long>(base));
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find("VmFlags") != std::string::npos) {
      if (inside) return 0;
    } else if (line.starts_with(first)) {
      inside = true;
    } else if (inside && line.starts_with(field + ":")) {
      return std::stoull(line.substr(field.size() + 1));
    }
  }
  return 0;
}

std::uint64_t free_reserved_pages() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (line.starts_with("HugePages_Free:")) return std::stoull(line.substr(15));
  }
  return 0;
}

std::string shmem_enabled() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string text;
  std::getline(file, text);
  const std::size_t from = text.find('[');
  return from == std::string::npos ? "" : text.substr(from + 1, text.find(']') - from - 1);
}

TEST(SharedMemory, WhatIsWrittenThroughOneAddressIsReadThroughTheOther) {
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(kSmall);
  EXPECT_NE(region.write_base, region.read_base);
  EXPECT_GE(region.bytes, kSmall);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{4097}, region.bytes - 1}) {
    EXPECT_EQ(*at(region.read_base + offset), 0) << "zeroed";
    *at(region.write_base + offset) = 42;
    EXPECT_EQ(*at(region.read_base + offset), 42) << offset;
  }
}

TEST(SharedMemoryDeathTest, TheReadMappingCannotBeWritten) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(kSmall);
  EXPECT_DEATH(*static_cast<volatile std::uint8_t*>(at(region.read_base + 5)) = 1, "");
}

TEST(SharedMemoryDeathTest, BeforeAndBehindAMappingNobodyCanTouch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(kSmall);
  for (const std::uintptr_t outside : {region.write_base - 1, region.write_base + region.bytes, region.read_base - 1,
                                       region.read_base + region.bytes}) {
    EXPECT_DEATH(static_cast<void>(*static_cast<volatile std::uint8_t*>(at(outside))), "");
  }
}

TEST(SharedMemory, ADiscardedRegionReadsAsZeroThroughBothAddresses) {
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(kSmall);
  std::memset(at(region.write_base), 7, region.bytes);
  EXPECT_EQ(memory.pages(region).present_bytes, region.bytes);
  memory.discard(region);
  EXPECT_EQ(memory.pages(region).present_bytes, 0U);
  EXPECT_EQ(*at(region.read_base + 4096), 0);
  EXPECT_EQ(*at(region.write_base + region.bytes - 1), 0);
}

TEST(SharedMemory, WhatIsUnmappedIsGoneAndNothingIsLeftAtTheEnd) {
  const std::size_t before = mappings_of_segments();
  {
    SharedMemory memory(PageChoice::best);
    const DualRegion first = memory.map_segment(kSmall);
    const DualRegion second = memory.map_segment(3 * kMiB);
    EXPECT_EQ(memory.regions(), 2U);
    EXPECT_EQ(mappings_of_segments(), before + 4);
    memory.unmap_segment(first);
    EXPECT_EQ(memory.regions(), 1U);
    EXPECT_EQ(mappings_of_segments(), before + 2);
    EXPECT_EQ(msync(at(first.write_base), 4096, MS_ASYNC), -1) << "nothing is mapped there";
    *at(second.write_base) = 1;
    EXPECT_EQ(*at(second.read_base), 1);
  }
  EXPECT_EQ(mappings_of_segments(), before);
}

TEST(SharedMemory, ASegmentThatTheSystemRefusesLeavesNothing) {
  const std::size_t before = mappings_of_segments();
  SharedMemory memory(PageChoice::best);
  EXPECT_THROW(static_cast<void>(memory.map_segment(1ULL << 60)), std::bad_alloc);
  EXPECT_EQ(memory.regions(), 0U);
  EXPECT_EQ(mappings_of_segments(), before);
}

// ---- Pages: what is told is what another look at the system finds.

TEST(SharedMemory, PlainPagesAreToldAsPlain) {
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(kSmall);
  std::memset(at(region.write_base), 1, region.bytes / 2);
  const PagesGiven pages = memory.pages(region);
  EXPECT_EQ(pages.kind, PageKind::plain);
  EXPECT_EQ(pages.page_bytes, 4096U);
  EXPECT_EQ(pages.present_bytes, region.bytes / 2);
  EXPECT_EQ(pages.huge_bytes, 0U);
  EXPECT_EQ(pages.why_not_better, "") << "nothing better was asked for";
  EXPECT_EQ(smaps_kib(region.write_base, "Rss"), region.bytes / 2 / 1024);
}

TEST(SharedMemory, TheBestPagesThereAreAreGivenAndWhatRefusedBetterOnesIsSaid) {
  const bool reserved = free_reserved_pages() >= kSmall / (2 * kMiB);
  const std::string setting = shmem_enabled();
  const bool transparent = setting == "advise" || setting == "always" || setting == "within_size" || setting == "force";
  SharedMemory memory(PageChoice::best);
  const DualRegion region = memory.map_segment(kSmall);
  std::memset(at(region.write_base), 1, region.bytes);
  const PagesGiven pages = memory.pages(region);
  if (reserved) {
    EXPECT_EQ(pages.kind, PageKind::huge_tlb) << to_string(pages);
    EXPECT_EQ(smaps_kib(region.write_base, "KernelPageSize"), 2048U);
    EXPECT_EQ(pages.why_not_better, "");
  } else if (transparent) {
    EXPECT_EQ(pages.kind, PageKind::transparent_huge) << to_string(pages);
    EXPECT_EQ(smaps_kib(region.write_base, "ShmemPmdMapped") * 1024, pages.huge_bytes);
    EXPECT_THAT(pages.why_not_better, HasSubstr("vm.nr_hugepages"));
  } else {
    EXPECT_EQ(pages.kind, PageKind::plain) << to_string(pages);
    EXPECT_EQ(smaps_kib(region.write_base, "ShmemPmdMapped"), 0U);
    EXPECT_EQ(smaps_kib(region.write_base, "KernelPageSize"), 4U);
    EXPECT_THAT(pages.why_not_better, HasSubstr("vm.nr_hugepages"));
    EXPECT_THAT(pages.why_not_better, HasSubstr("shmem_enabled"));
  }
  EXPECT_EQ(pages.present_bytes, region.bytes);
  if (pages.kind != PageKind::plain) {
    EXPECT_GT(pages.huge_bytes, 0U);
  }
}

TEST(SharedMemory, ReservedHugePagesAreGivenOrRefusedOutright) {
  SharedMemory memory(PageChoice::huge_tlb);
  if (free_reserved_pages() < kSmall / (2 * kMiB)) {
    EXPECT_THROW(static_cast<void>(memory.map_segment(kSmall)), std::bad_alloc);
    GTEST_SKIP() << "no huge pages are reserved (vm.nr_hugepages)";
  }
  const DualRegion region = memory.map_segment(kSmall - 1);
  EXPECT_EQ(region.bytes, kSmall) << "whole pages";
  std::memset(at(region.write_base), 3, region.bytes);
  const PagesGiven pages = memory.pages(region);
  EXPECT_EQ(pages.kind, PageKind::huge_tlb);
  EXPECT_EQ(pages.page_bytes, 2 * kMiB);
  EXPECT_EQ(pages.huge_bytes, region.bytes);
  EXPECT_EQ(*at(region.read_base + region.bytes - 1), 3);
  memory.discard(region);
  EXPECT_EQ(*at(region.read_base + region.bytes - 1), 0);
}

// ---- Touching

TEST(SharedMemory, PopulatingMakesThePagesBeThereAndChangesNoByte) {
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(kSmall);
  *at(region.write_base + 5000) = 9;
  populate_pages({region.write_base + 100, kMiB});
  EXPECT_EQ(memory.pages(region).present_bytes, kMiB + 4096) << "the pages that it touches, whole";
  EXPECT_EQ(*at(region.write_base + 5000), 9);
}

TEST(SharedMemory, PartsArePopulatedByManyThreadsAtOnce) {
  SharedMemory memory(PageChoice::plain);
  const DualRegion region = memory.map_segment(4 * kSmall);
  std::vector<std::thread> threads;
  for (std::uint64_t part = 0; part < 4; ++part) {
    threads.emplace_back([&, part] { populate_pages({region.write_base + part * kSmall, kSmall}); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.pages(region).present_bytes, region.bytes);
}

}  // namespace
}  // namespace holdfast::device
