#include "holdfast/fakes/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

namespace holdfast::fakes {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kGuardBytes = 64 << 10;
constexpr std::uint64_t kShortestSegmentBytes = 64ULL << 20;  // address space only

std::uint64_t round_to_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void* as_pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Arena::Arena(const ArenaOptions& options) : reserved_bytes_(round_to_pages(options.reserve_bytes)) {
  void* base = mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  reservation_ = reinterpret_cast<std::uintptr_t>(base);
  first_ = reservation_ + kGuardBytes + options.base_shift_pages * kPage;
  next_ = first_;
}

Arena::~Arena() { munmap(as_pointer(reservation_), reserved_bytes_); }

std::uintptr_t Arena::take(std::uint64_t bytes) {
  const std::uintptr_t at = next_;
  const std::uintptr_t end = reservation_ + reserved_bytes_;
  if (at > end || bytes + kGuardBytes > end - at) throw std::bad_alloc();
  next_ += bytes + kGuardBytes;
  return at;
}

std::uintptr_t Arena::map_private(std::uint64_t bytes) {
  bytes = round_to_pages(bytes);
  const std::uintptr_t at = take(bytes);
  if (mprotect(as_pointer(at), bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  return at;
}

DualRegion Arena::map_dual(std::uint64_t bytes) {
  bytes = round_to_pages(bytes);
  DualRegion region{take(bytes), 0, bytes};
  region.read_base = take(bytes);
  const int fd = memfd_create("holdfast-segment", MFD_CLOEXEC);
  if (fd < 0) throw std::bad_alloc();
  const bool mapped =
      ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      mmap(as_pointer(region.write_base), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED &&
      mmap(as_pointer(region.read_base), bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  close(fd);
  if (!mapped) throw std::bad_alloc();
  return region;
}

DualRegion Arena::map_segment(std::uint64_t bytes) {
  return map_dual(std::bit_ceil(std::max(bytes, kShortestSegmentBytes)));
}

void Arena::discard(std::uintptr_t base, std::uint64_t bytes) {
  // MADV_REMOVE frees the pages behind a shared mapping, for all its addresses; private pages need MADV_DONTNEED.
  if (madvise(as_pointer(base), bytes, MADV_REMOVE) != 0) madvise(as_pointer(base), bytes, MADV_DONTNEED);
}

bool Arena::contains(std::uintptr_t address) const {
  return address >= reservation_ && address < reservation_ + reserved_bytes_;
}

}  // namespace holdfast::fakes
