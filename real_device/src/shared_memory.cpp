#include "holdfast/real_device/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace holdfast::device {
namespace {

constexpr std::uint64_t kHugePage = 2ULL << 20;
constexpr std::uint64_t kFence = 64ULL << 10;
constexpr std::uint64_t kKibi = 1024;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }
void* address(std::uintptr_t at) { return reinterpret_cast<void*>(at); }

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileClose>;

// What /proc/self/smaps says of the mappings that lie in a range, in bytes.
struct MappedPages {
  std::uint64_t page_bytes = 0;
  std::uint64_t present = 0;
  std::uint64_t pmd_mapped = 0;  // shared memory mapped by huge entries
  std::uint64_t huge_tlb = 0;
};

MappedPages read_smaps(std::uintptr_t base, std::uint64_t bytes) {
  MappedPages all;
  const File file(std::fopen("/proc/self/smaps", "re"));
  if (file == nullptr) return all;
  char line[512];
  bool inside = false;
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long long first = 0;
    unsigned long long last = 0;
    if (std::sscanf(line, "%llx-%llx ", &first, &last) == 2) {
      inside = first >= base && last <= base + bytes;
      continue;
    }
    unsigned long long kibi = 0;
    char name[64];
    if (!inside || std::sscanf(line, "%63[A-Za-z_]: %llu kB", name, &kibi) != 2) continue;
    const std::string_view field(name);
    const std::uint64_t amount = kibi * kKibi;
    if (field == "KernelPageSize") all.page_bytes = amount;
    if (field == "Rss") all.present += amount;
    if (field == "ShmemPmdMapped") all.pmd_mapped += amount;
    if (field == "Shared_Hugetlb" || field == "Private_Hugetlb") all.huge_tlb += amount;
  }
  return all;
}

// The word in brackets.
std::string shmem_setting() {
  constexpr const char* kPath = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  const File file(std::fopen(kPath, "re"));
  char text[256] = "";
  if (file == nullptr || std::fgets(text, sizeof text, file.get()) == nullptr) {
    return fmt::format("this system has no {}", kPath);
  }
  const std::string_view all(text);
  const std::size_t from = all.find('[');
  const std::size_t to = all.find(']');
  if (from == std::string_view::npos || to == std::string_view::npos) return fmt::format("{} is unreadable", kPath);
  return fmt::format("{} is '{}', 'advise' or 'always' would give them", kPath, all.substr(from + 1, to - from - 1));
}

std::string huge_tlb_refusal(int error) {
  return fmt::format("{}; vm.nr_hugepages reserves them beforehand", std::strerror(error));
}

// A place of address space whose middle begins on a boundary of huge pages.
std::pair<std::uintptr_t, std::uint64_t> reserve(std::uint64_t bytes) {
  const std::uint64_t all = bytes + 2 * kFence + kHugePage;
  void* base = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return base == MAP_FAILED ? std::pair<std::uintptr_t, std::uint64_t>{0, 0}
                            : std::pair{reinterpret_cast<std::uintptr_t>(base), all};
}

std::uintptr_t middle_of(std::uintptr_t base) { return round_up(base + kFence, kHugePage); }

}  // namespace

std::string_view to_string(PageKind kind) {
  switch (kind) {
    case PageKind::huge_tlb:
      return "reserved huge pages";
    case PageKind::transparent_huge:
      return "transparent huge pages";
    case PageKind::plain:
      return "plain pages";
  }
  return "?";
}

std::string to_string(const PagesGiven& pages) {
  std::string text = fmt::format("{} of {} bytes", to_string(pages.kind), pages.page_bytes);
  if (!pages.why_not_better.empty()) text += " (" + pages.why_not_better + ")";
  return text;
}

SharedMemory::~SharedMemory() {
  for (const Mapped& mapped : mapped_) unmap(mapped);
}

fakes::DualRegion SharedMemory::map_segment(std::uint64_t bytes) {
  std::vector<PageKind> kinds{PageKind::huge_tlb, PageKind::transparent_huge, PageKind::plain};
  if (choice_ == PageChoice::huge_tlb) kinds = {PageKind::huge_tlb};
  if (choice_ == PageChoice::transparent_huge) kinds.erase(kinds.begin());
  if (choice_ == PageChoice::plain) kinds = {PageKind::plain};
  std::string refused;
  for (const PageKind kind : kinds) {
    Mapped mapped;
    std::string why_not;
    if (try_map(bytes, kind, mapped, why_not)) {
      mapped.kind = kind;
      mapped.why_not_better = std::move(refused);
      mapped_.push_back(std::move(mapped));
      return mapped_.back().region;
    }
    refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", to_string(kind), why_not);
  }
  throw std::bad_alloc();
}

bool SharedMemory::try_map(std::uint64_t bytes, PageKind kind, Mapped& mapped, std::string& why_not) {
  const std::uint64_t page = kind == PageKind::plain ? kPageBytes : kHugePage;
  mapped.region.bytes = round_up(std::max<std::uint64_t>(bytes, 1), page);
  const int fd = memfd_create("holdfast-segment", MFD_CLOEXEC | (kind == PageKind::huge_tlb ? MFD_HUGETLB : 0U));
  if (fd < 0) {
    why_not = kind == PageKind::huge_tlb ? huge_tlb_refusal(errno) : std::strerror(errno);
    return false;
  }
  const auto fails = [&](int error) {
    close(fd);
    unmap(mapped);
    why_not = kind == PageKind::huge_tlb ? huge_tlb_refusal(error) : std::strerror(error);
    return false;
  };
  if (ftruncate(fd, static_cast<off_t>(mapped.region.bytes)) != 0) return fails(errno);
  std::tie(mapped.write.base, mapped.write.bytes) = reserve(mapped.region.bytes);
  if (mapped.write.base == 0) return fails(errno);
  std::tie(mapped.read.base, mapped.read.bytes) = reserve(mapped.region.bytes);
  if (mapped.read.base == 0) return fails(errno);
  mapped.region.write_base = middle_of(mapped.write.base);
  mapped.region.read_base = middle_of(mapped.read.base);
  const auto map_at = [&](std::uintptr_t at, int protection) {
    return mmap(address(at), mapped.region.bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  };
  if (!map_at(mapped.region.write_base, PROT_READ | PROT_WRITE) || !map_at(mapped.region.read_base, PROT_READ)) {
    return fails(errno);
  }
  if (kind != PageKind::transparent_huge) {
    close(fd);
    return true;
  }
  // The advice is taken whether or not anything comes of it: one page is made, and looked at.
  for (const std::uintptr_t at : {mapped.region.write_base, mapped.region.read_base}) {
    madvise(address(at), mapped.region.bytes, MADV_HUGEPAGE);
  }
  populate_pages({mapped.region.write_base, kHugePage});
  const MappedPages made = read_smaps(mapped.region.write_base, mapped.region.bytes);
  close(fd);
  if (made.pmd_mapped > 0) return true;
  unmap(mapped);
  why_not = shmem_setting();
  return false;
}

void SharedMemory::unmap(const Mapped& mapped) {
  for (const Reserved& place : {mapped.write, mapped.read}) {
    if (place.base != 0) munmap(address(place.base), place.bytes);
  }
}

void SharedMemory::discard(const fakes::DualRegion& region) {
  madvise(address(region.write_base), region.bytes, MADV_REMOVE);
}

void SharedMemory::unmap_segment(const fakes::DualRegion& region) {
  const auto found = std::find_if(mapped_.begin(), mapped_.end(),
                                  [&](const Mapped& mapped) { return mapped.region.write_base == region.write_base; });
  if (found == mapped_.end()) return;
  unmap(*found);
  mapped_.erase(found);
}

const SharedMemory::Mapped* SharedMemory::find(const fakes::DualRegion& region) const {
  for (const Mapped& mapped : mapped_) {
    if (mapped.region.write_base == region.write_base) return &mapped;
  }
  return nullptr;
}

PagesGiven SharedMemory::pages(const fakes::DualRegion& region) const {
  PagesGiven given;
  const Mapped* mapped = find(region);
  if (mapped == nullptr) return given;
  const MappedPages now = read_smaps(mapped->region.write_base, mapped->region.bytes);
  const bool huge_tlb = now.page_bytes > kPageBytes;
  // Pages that were made before anything was written stay; what was asked for decides nothing here.
  given.kind = huge_tlb ? PageKind::huge_tlb : now.pmd_mapped > 0 ? PageKind::transparent_huge : PageKind::plain;
  given.page_bytes = given.kind == PageKind::plain ? kPageBytes : kHugePage;
  given.present_bytes = now.present + now.huge_tlb;
  given.huge_bytes = huge_tlb ? now.huge_tlb : now.pmd_mapped;
  given.why_not_better = mapped->why_not_better;
  return given;
}

void populate_pages(const HostRange& range) {
  const std::uintptr_t first = range.base / kPageBytes * kPageBytes;
  const std::uintptr_t end = round_up(range.base + range.bytes, kPageBytes);
  if (madvise(address(first), end - first, MADV_POPULATE_WRITE) != 0) read_pages(range);
}

}  // namespace holdfast::device
