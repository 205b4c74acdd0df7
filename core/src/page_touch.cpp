#include "holdfast/core/page_touch.hpp"

namespace holdfast {

// Nobody looks at what is read, so others may be writing it: a race that cannot show, and not to be reported.
__attribute__((no_sanitize("thread"))) void read_pages(const HostRange& range) {
  std::uint64_t offset = 0;
  while (offset < range.bytes) {
    static_cast<void>(*reinterpret_cast<const volatile std::uint8_t*>(range.base + offset));
    offset += kPageBytes - (range.base + offset) % kPageBytes;  // the first page may begin before the range does
  }
}

bool touch_here(const std::vector<HostRange>& parts, const TouchPages& touch, const TouchGoOn& go_on) {
  std::uint64_t touched_bytes = 0;
  if (!go_on(touched_bytes)) return false;
  for (const HostRange& part : parts) {
    touch(part);
    touched_bytes += part.bytes;
    if (!go_on(touched_bytes)) return false;
  }
  return true;
}

}  // namespace holdfast
