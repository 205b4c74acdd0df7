#include "holdfast/core/tier_store.hpp"

#include <iterator>

namespace holdfast {

Error with_suppressed(Error error, Absorbed& absorbed) {
  error.suppressed.insert(error.suppressed.end(), std::make_move_iterator(absorbed.begin()),
                          std::make_move_iterator(absorbed.end()));
  absorbed.clear();
  return error;
}

}  // namespace holdfast
