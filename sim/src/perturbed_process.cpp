#include "perturbed_process.hpp"

#include <malloc.h>

#include <array>
#include <clocale>

namespace holdfast::sim {
namespace {

// Always there, unlike the system's: numbers in streams look different under it.
struct OtherNumbers final : std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

constexpr std::array kOtherLocales = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "fr_FR"};

}  // namespace

PerturbedProcess::PerturbedProcess(const Perturbation& perturbation) {
  if (perturbation.heap_fill != 0) filled_ = mallopt(M_PERTURB, perturbation.heap_fill) != 0;
  if (!perturbation.other_locale) return;
  relocated_ = true;
  if (const char* now = std::setlocale(LC_ALL, nullptr)) c_locale_ = now;
  for (const char* name : kOtherLocales) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  locale_ = std::locale::global(std::locale(std::locale::classic(), new OtherNumbers));
}

PerturbedProcess::~PerturbedProcess() {
  if (filled_) mallopt(M_PERTURB, 0);
  if (!relocated_) return;
  std::locale::global(locale_);
  if (!c_locale_.empty()) std::setlocale(LC_ALL, c_locale_.c_str());
}

}  // namespace holdfast::sim
