// What each reader of foreign bytes promises for any input: one function a reader, called by the fuzzer and by the
// tests.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace holdfast::fuzz {

struct Verdict {
  bool accepted = false;
  std::string broken;  // the promise that did not hold; empty when all did
};

// A trace file. What is accepted is valid, and written and read again is the same trace.
Verdict read_as_trace(std::string_view bytes);
// A request trace in the Mooncake format. What is accepted keeps the format's rules and reads back the same, and the
// simulation trace made of it is valid or refused.
Verdict read_as_workload(std::string_view bytes);
// A snapshot. What is accepted is what a forest restored from it would write, but for the numbers of the accesses; of
// those the order stays.
Verdict read_as_snapshot(std::string_view bytes);
// A plan's table, with the request it answers: see plan_blob.cpp. Accepted exactly when each value lies whole inside
// one segment in slots of its own; never a word read that the table does not have.
Verdict read_as_plan_blob(std::string_view bytes);
// A tensor's file, with the key it is asked for: see tensor_file.cpp. Accepted exactly when it is, byte for byte, what
// this program writes for that key and some value; else refused as damaged.
Verdict read_as_tensor_file(std::string_view bytes);

struct Reader {
  std::string_view name;
  Verdict (*read)(std::string_view bytes);
};
inline constexpr std::array<Reader, 5> kReaders{{
    {"trace", read_as_trace},
    {"workload", read_as_workload},
    {"snapshot", read_as_snapshot},
    {"plan_blob", read_as_plan_blob},
    {"tensor_file", read_as_tensor_file},
}};

}  // namespace holdfast::fuzz
