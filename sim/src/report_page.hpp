// The parts of report.html: each section has a template in sim/report/, and a function here that fills it.
#pragma once

#include <kainjow/mustache.hpp>
#include <string>
#include <string_view>

#include "holdfast/sim/report.hpp"

namespace holdfast::sim {

using PageData = kainjow::mustache::data;

// A file of sim/report/, by name.
std::string_view report_part(std::string_view name);

// Text from anywhere: made harmless for people here, for the browser by the template.
PageData page_text(std::string_view text);
// False where it is empty, so that a section {{#name}} is left out; and nothing is found in what encloses it.
PageData page_text_if(std::string_view text);
PageData page_list();
// One of a list of facts: a name, a value, and what is less important.
PageData page_fact(std::string_view name, std::string_view value, std::string_view more = {});

// What there is nothing to say in is left out: faults of a workload without any, a comparison of one case.
bool shows_faults(const Report& report);
bool shows_cases(const Report& report);

void fill_summary(const Report& report, PageData& page);
void fill_violations(const Report& report, PageData& page);
void fill_invariants(const Report& report, PageData& page);
void fill_faults(const Report& report, PageData& page);
void fill_marks(const Report& report, PageData& page);
void fill_workload(const Report& report, PageData& page);
void fill_sweep(const Report& report, PageData& page);
void fill_store(const Report& report, PageData& page);
void fill_cases(const Report& report, PageData& page);
void fill_determinism(const Report& report, PageData& page);

}  // namespace holdfast::sim
