// The program's own files: read whole within a bound, written so that a reader sees the old file or the new one.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/core/result.hpp"

namespace holdfast::sim {

// Bad input (status 2) when it is missing, no regular file, unreadable or longer than `bytes_max`.
Result<std::string> read_input_file(const std::string& path, std::uint64_t bytes_max);
// By a temporary file beside it and a rename.
Status write_output_file(const std::string& path, const std::string& text);
// With its parents; one that is there is fine.
Status make_directory(const std::string& path);
// Lower-case hexadecimal.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace holdfast::sim
