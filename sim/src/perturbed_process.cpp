#include "perturbed_process.hpp"

#include <malloc.h>

#include <array>
#include <clocale>
#include <utility>

#include "holdfast/sim/rng.hpp"

namespace holdfast::sim {
namespace {

// Always there, unlike the system's: numbers in streams look different under it.
struct OtherNumbers final : std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

constexpr std::array kOtherLocales = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "fr_FR"};

// Looked for once in a process: each name costs several files.
const char* other_locale() {
  static const char* const found = [] {
    for (const char* name : kOtherLocales) {
      if (std::setlocale(LC_ALL, name) != nullptr) return name;
    }
    return static_cast<const char*>(nullptr);
  }();
  return found;
}

constexpr std::size_t kBlockBytesStep = 16;
constexpr std::size_t kBlockBytesMax = 512;  // what a deque allocates at a time
constexpr std::size_t kBlocksOfASize = 16;

// Half of many small blocks, given back in another order than they lie in: what is allocated next lies in neither.
std::vector<std::unique_ptr<char[]>> shuffled_heap(std::uint64_t seed) {
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(kBlocksOfASize * kBlockBytesMax / kBlockBytesStep);
  for (std::size_t bytes = kBlockBytesStep; bytes <= kBlockBytesMax; bytes += kBlockBytesStep) {
    for (std::size_t i = 0; i < kBlocksOfASize; ++i) blocks.push_back(std::make_unique_for_overwrite<char[]>(bytes));
  }
  Rng rng(seed);
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) std::swap(blocks[i], blocks[i + rng.below(blocks.size() - i)]);
  for (std::size_t i = 0; i < blocks.size() / 2; ++i) blocks[i].reset();
  return blocks;
}

}  // namespace

PerturbedProcess::PerturbedProcess(const Perturbation& perturbation) {
  if (perturbation.heap_fill != 0) filled_ = mallopt(M_PERTURB, perturbation.heap_fill) != 0;
  if (perturbation.heap_shuffle != 0) blocks_ = shuffled_heap(perturbation.heap_shuffle);
  if (!perturbation.other_locale) return;
  relocated_ = true;
  if (const char* now = std::setlocale(LC_ALL, nullptr)) c_locale_ = now;
  if (const char* other = other_locale()) std::setlocale(LC_ALL, other);
  locale_ = std::locale::global(std::locale(std::locale::classic(), new OtherNumbers));
}

PerturbedProcess::~PerturbedProcess() {
  if (filled_) mallopt(M_PERTURB, 0);
  if (!relocated_) return;
  std::locale::global(locale_);
  if (!c_locale_.empty()) std::setlocale(LC_ALL, c_locale_.c_str());
}

}  // namespace holdfast::sim
