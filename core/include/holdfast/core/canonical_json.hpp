// The one text of a JSON value that is hashed: sorted members, no spaces, non-ASCII as it is, floats as the shortest
// decimal that reads back (byte for byte Python's json.dumps(sort_keys, separators=(',',':'), ensure_ascii=False)).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "holdfast/core/result.hpp"

namespace holdfast {

inline constexpr int kCanonicalJsonMaxDepth = 128;

// InvalidArgument, with the place, for NaN and infinities, text that is not UTF-8, binary values, and nesting deeper
// than kCanonicalJsonMaxDepth.
[[nodiscard]] Result<std::string> canonical_json(const nlohmann::json& value);

}  // namespace holdfast
