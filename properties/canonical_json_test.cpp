#include "holdfast/core/canonical_json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"

namespace holdfast {
namespace {

using nlohmann::json;

void expect_refused(const json& value, const std::string& place_and_why) {
  const Result<std::string> text = canonical_json(value);
  ASSERT_FALSE(text) << *text;
  EXPECT_TRUE(text.error().is(Errc::invalid_argument));
  EXPECT_NE(text.error().detail.find(place_and_why), std::string::npos) << text.error().detail;
}

TEST(CanonicalJson, AgreesWithTheGoldenVectors) {
  for (const json& vector : test::golden("canonical_json")) {
    EXPECT_EQ(canonical_json(vector["value"]).value(), test::from_hex(vector["canonical_hex"])) << vector;
  }
}

// What Python prints, for what the golden vectors leave out.
TEST(CanonicalJson, FloatsAreWrittenAsPythonsRepr) {
  const std::vector<std::pair<double, std::string>> floats = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-2.5, "-2.5"},
      {100.0, "100.0"},
      {123456789.125, "123456789.125"},
      {0.0001, "0.0001"},
      {0.00012, "0.00012"},
      {0.00001, "1e-05"},
      {0.000012345, "1.2345e-05"},
      {9999999999999998.0, "9999999999999998.0"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.5e16, "1.5e+16"},
      {1e100, "1e+100"},
      {-1.25e-100, "-1.25e-100"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.0 / 3, "0.3333333333333333"},
      {2e-323, "2e-323"},
      {9007199254740993.0, "9007199254740992.0"},
  };
  for (const auto& [number, text] : floats) EXPECT_EQ(canonical_json(number).value(), text);
}

RC_GTEST_PROP(CanonicalJson, EveryFiniteFloatReadsBackAsItself, ()) {
  const auto number = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  RC_PRE(std::isfinite(number));
  const std::string text = canonical_json(number).value();
  RC_ASSERT(std::bit_cast<std::uint64_t>(json::parse(text).get<double>()) == std::bit_cast<std::uint64_t>(number));
}

TEST(CanonicalJson, IntegersStayIntegersToTheirLastDigit) {
  EXPECT_EQ(canonical_json(std::numeric_limits<std::int64_t>::min()).value(), "-9223372036854775808");
  EXPECT_EQ(canonical_json(std::numeric_limits<std::uint64_t>::max()).value(), "18446744073709551615");
}

TEST(CanonicalJson, MembersAreOrderedByCodePoint) {
  EXPECT_EQ(canonical_json(json{{"\xf0\x9f\x98\x80", 1}, {"\xef\xbf\xbd", 2}, {"a", 3}, {"", 4}, {"B", 5}}).value(),
            "{\"\":4,\"B\":5,\"a\":3,\"\xef\xbf\xbd\":2,\"\xf0\x9f\x98\x80\":1}");
}

TEST(CanonicalJson, ControlCharactersAreEscapedAndSpaceAndDeleteAreNot) {
  EXPECT_EQ(canonical_json(std::string("\b\f\r\0\x1f \x7f", 7)).value(), "\"\\b\\f\\r\\u0000\\u001f \x7f\"");
}

TEST(CanonicalJson, WhatIsNotANumberIsRefusedWithItsPlace) {
  expect_refused(std::nan(""), "$: not a finite number");
  expect_refused(json{{"a", {1, std::numeric_limits<double>::infinity()}}}, "$.a[1]: not a finite number");
  expect_refused(json::array({-std::numeric_limits<double>::infinity()}), "$[0]: not a finite number");
  expect_refused(json{{"a", 1}, {"b", std::nan("")}}, "$.b: not a finite number");
}

TEST(CanonicalJson, TheFirstAndTheLastCodePointOfEachUtf8RangeAreText) {
  const std::vector<std::string> code_points = {
      "\xc2\x80",         "\xdf\xbf",          // U+0080 to U+07FF
      "\xe0\xa0\x80",     "\xed\x9f\xbf",      // U+0800 to the surrogates
      "\xee\x80\x80",     "\xef\xbf\xbf",      // from behind them to U+FFFF
      "\xf0\x90\x80\x80", "\xf0\xbf\xbf\xbf",  // U+10000 to U+3FFFF
      "\xf1\x80\x80\x80", "\xf3\xbf\xbf\xbf",  // to U+FFFFF
      "\xf4\x80\x80\x80", "\xf4\x8f\xbf\xbf",  // to U+10FFFF
  };
  for (const std::string& text : code_points) EXPECT_EQ(canonical_json(text).value(), "\"" + text + "\"");
}

TEST(CanonicalJson, WhatIsNotUtf8IsRefusedWithItsPlace) {
  const std::vector<std::string> bad = {
      "ab\x80",              // a continuation alone
      "ab\xc3",              // cut short
      "ab\xe2\x82",          // cut short
      "ab\xf0\x9f\x98",      // cut short
      "ab\xc0\xaf",          // overlong
      "ab\xe0\x80\xaf",      // overlong
      "ab\xf0\x80\x80\xaf",  // overlong
      "ab\xed\xa0\x80",      // a surrogate
      "ab\xf4\x90\x80\x80",  // above U+10FFFF
      "ab\xf5\x80\x80\x80",  // above U+10FFFF
      "ab\xff",              // never
  };
  for (const std::string& text : bad) {
    expect_refused(text, "$: byte 2 is not UTF-8");
    expect_refused(json{{"x", {{text, 1}}}}, "$.x, the name of a member: byte 2 is not UTF-8");
  }
}

TEST(CanonicalJson, WhatIsNotJsonIsRefused) {
  expect_refused(json::binary({1, 2}), "$: not a JSON value");
  expect_refused(json(json::value_t::discarded), "$: not a JSON value");
}

TEST(CanonicalJson, NestingIsBounded) {
  json arrays = 1;
  json objects = 1;
  for (int i = 0; i < kCanonicalJsonMaxDepth; ++i) {
    arrays = json::array({std::move(arrays)});
    objects = json{{"a", std::move(objects)}};
  }
  EXPECT_TRUE(canonical_json(arrays));
  EXPECT_TRUE(canonical_json(objects));
  expect_refused(json::array({arrays}), "nested deeper than 128");
  expect_refused(json{{"a", objects}}, "nested deeper than 128");
}

}  // namespace
}  // namespace holdfast
