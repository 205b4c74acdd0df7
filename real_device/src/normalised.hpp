// What of a device's answers and doings is not held against the fake when their histories are compared. Nothing else
// is: every call's answer is the device's own, and its code, its place and its time must be those of the fake.
#pragma once

#include <algorithm>
#include <span>

#include "holdfast/core/cuda_runtime.hpp"

namespace holdfast::device {

// Numbers of streams and events: the fake's ordinals stand for the device's handles, and a handle that was never given
// out is not shown to the driver.
//
// Words: an error is its code; how the driver puts it is its own business.
//
// Addresses of device memory: the fake's offsets stand for the device's. All of a run's lies in one allocation, so the
// device would take any address in it for allocated: of what is between, the fake is asked.
//
// Work in flight when a client dies or a context is torn down: the fake drops it, here it comes to its end, which it
// might have done just before.

// A batch that would harm this process: the fake refuses it for where its memory lies, and the driver is not asked. One
// that is empty, or has an empty copy or a null address, is shown to it.
inline bool is_harmless(std::span<const Copy> copies) {
  return copies.empty() || std::ranges::any_of(copies, [](const Copy& copy) {
           return copy.bytes == 0 || copy.dst == 0 || copy.src == 0;
         });
}

// Whether work is done. What the fake calls done the device is given time for. What it calls not done must not be done
// while a gate before it is closed; without one the device may be quicker than the trace says, and is held to it.
inline bool done_of(bool fake, bool device, bool behind_closed_gate) { return device && (fake || behind_closed_gate); }

}  // namespace holdfast::device
