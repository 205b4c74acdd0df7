// Segments in real shared memory: a file in memory, mapped read-write at one address and read-only at another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/page_touch.hpp"
#include "holdfast/fakes/segment_memory.hpp"

namespace holdfast::device {

// `huge_tlb`: from the pool that was reserved beforehand (vm.nr_hugepages). `transparent_huge`: where the system lets
// shared memory have them (/sys/kernel/mm/transparent_hugepage/shmem_enabled). `plain`: 4 KiB.
enum class PageKind : std::uint8_t { huge_tlb, transparent_huge, plain };
std::string_view to_string(PageKind kind);

enum class PageChoice : std::uint8_t {
  best,              // the first of the following that the system gives
  huge_tlb,          // or it fails
  transparent_huge,  // or plain ones
  plain,
};

// What a region's pages are, as the system tells of the mapping itself, not as they were asked for.
struct PagesGiven {
  PageKind kind = PageKind::plain;
  std::uint64_t page_bytes = 0;     // of the kind
  std::uint64_t present_bytes = 0;  // of the region, mapped by now through its write address
  std::uint64_t huge_bytes = 0;     // of these, in huge pages
  std::string why_not_better;       // for each better kind, what refused it; empty: the best was given
};
// "plain pages of 4096 bytes (reserved huge pages: ...; transparent huge pages: ...)"
std::string to_string(const PagesGiven& pages);

// Not for several threads, but that different regions may be used by anybody.
class SharedMemory final : public fakes::SegmentMemory {
 public:
  explicit SharedMemory(PageChoice choice = PageChoice::best) : choice_(choice) {}
  ~SharedMemory() override;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // The length is rounded up to whole pages of the kind that is given. Before and behind both mappings lie 64 KiB that
  // nobody can touch. Both begin on a boundary of huge pages.
  fakes::DualRegion map_segment(std::uint64_t bytes) override;
  void discard(const fakes::DualRegion& region) override;
  void unmap_segment(const fakes::DualRegion& region) override;

  // Of a region that is mapped.
  [[nodiscard]] PagesGiven pages(const fakes::DualRegion& region) const;
  [[nodiscard]] std::size_t regions() const { return mapped_.size(); }

 private:
  struct Reserved {
    std::uintptr_t base = 0;
    std::uint64_t bytes = 0;
  };
  struct Mapped {
    fakes::DualRegion region;
    Reserved write;  // with what lies around the mapping
    Reserved read;
    PageKind kind = PageKind::plain;
    std::string why_not_better;
  };

  [[nodiscard]] bool try_map(std::uint64_t bytes, PageKind kind, Mapped& mapped, std::string& why_not);
  static void unmap(const Mapped& mapped);
  [[nodiscard]] const Mapped* find(const fakes::DualRegion& region) const;

  PageChoice choice_;
  std::vector<Mapped> mapped_;
};

// Makes the pages of a mapping that may be written be there, without changing a byte: a call of the system for all of
// them, where it has one, else by reading. For WarmUpOptions::touch.
void populate_pages(const HostRange& range);

}  // namespace holdfast::device
