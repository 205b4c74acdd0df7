// report.html: one file that needs no other. Values are escaped by the templates; that nothing else in it can be run is
// also said to the browser, by a content policy that names the one script and the one style by their hashes.
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <utility>

#include "holdfast/sim/text.hpp"
#include "report_page.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t kFactBytesMax = 200;  // a name may be long, and the first screen is small

constexpr std::pair<std::string_view, std::string_view> kReportParts[] = {
#include "report_parts.inc"
};

// As a content policy wants it.
std::string base64_sha256(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> encoded{};
  const int length = EVP_EncodeBlock(encoded.data(), digest.data(), SHA256_DIGEST_LENGTH);
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(length)};
}

void add_section(PageData& page, std::string_view name) {
  std::string text(report_part(fmt::format("{}.mustache", name)));
  page.set(fmt::format("{}_section", name),
           PageData(kainjow::mustache::partial([text = std::move(text)]() -> std::string { return text; })));
}

}  // namespace

std::string_view report_part(std::string_view name) {
  for (const auto& [file, text] : kReportParts) {
    if (file == name) return text;
  }
  return {};
}

PageData page_text(std::string_view text) { return PageData(printable(text)); }
PageData page_text_if(std::string_view text) { return text.empty() ? PageData(false) : page_text(text); }
PageData page_list() { return PageData(PageData::type::list); }
PageData page_fact(std::string_view name, std::string_view value, std::string_view more) {
  PageData fact;
  fact.set("name", page_text(name));
  fact.set("value", PageData(printable(value, kFactBytesMax)));
  fact.set("more", page_text_if(more));
  return fact;
}

std::string report_html(const Report& report) {
  PageData page;
  const std::string style(report_part("style.css"));
  const std::string script(report_part("script.js"));
  page.set("style", style);
  page.set("style_hash", base64_sha256(style));
  page.set("script", script);
  page.set("script_hash", base64_sha256(script));
  page.set("version", page_text(program_version()));
  page.set("schema", page_text(kReportSchema));
  for (const std::string_view section : {"summary", "violations", "invariants", "faults", "marks", "workload", "sweep",
                                         "store", "cases", "determinism"}) {
    add_section(page, section);
  }
  fill_summary(report, page);
  fill_violations(report, page);
  fill_invariants(report, page);
  fill_faults(report, page);
  fill_marks(report, page);
  fill_workload(report, page);
  fill_sweep(report, page);
  fill_store(report, page);
  fill_cases(report, page);
  fill_determinism(report, page);
  kainjow::mustache::mustache page_template{std::string(report_part("page.mustache"))};
  return page_template.render(page);
}

}  // namespace holdfast::sim
