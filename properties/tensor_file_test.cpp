// A tensor's file: what was encoded is decoded, and each way of being something else is told by its own name.
#include "holdfast/core/tensor_file.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "bytes_as_text.hpp"
#include "holdfast/core/hash.hpp"

namespace holdfast::tensor_files {
namespace {

const std::string kKey = "key";
std::string file_of_key() { return encode_tensor_file(kKey, text_bytes("the value")); }

void expect_file_refused(std::string_view file, Errc errc, std::string_view why) {
  const auto value = decode_tensor_file(file, kKey);
  ASSERT_FALSE(value.has_value()) << why;
  EXPECT_TRUE(value.error().is(errc)) << to_string(value.error());
  EXPECT_NE(value.error().detail.find(why), std::string::npos) << to_string(value.error());
  EXPECT_TRUE(is_damaged_file(value.error()));
}

RC_GTEST_PROP(TensorFile, WhatWasEncodedIsDecoded, (const std::string& key, const std::string& value)) {
  const std::string file = encode_tensor_file(key, text_bytes(value));
  RC_ASSERT(file.size() == kTensorFileHeaderBytes + key.size() + value.size());
  const auto decoded = decode_tensor_file(file, key);
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(as_text(*decoded) == value);
}

RC_GTEST_PROP(TensorFile, OtherBytesAreRefused, (const std::string& bytes)) {
  const auto decoded = decode_tensor_file(bytes, kKey);
  RC_ASSERT(!decoded.has_value());
  RC_ASSERT(is_damaged_file(decoded.error()));
}

// What is on disks stays readable: these bytes were written once and for all.
TEST(TensorFile, TheFormatIsWhatItWas) {
  const std::string file = file_of_key();
  EXPECT_EQ(file.substr(0, 24), std::string("HFTENSOR\x01\0\0\0\x03\0\0\0\x09\0\0\0\0\0\0\0", 24));
  EXPECT_EQ(file.substr(40), "keythe value");
  EXPECT_EQ(hash64(file, 0), 8451244653388953873U);
}

TEST(TensorFile, EveryCutOffFileIsTorn) {
  const std::string file = file_of_key();
  for (std::size_t length = 0; length < file.size(); ++length) {
    const auto decoded = decode_tensor_file(std::string_view(file).substr(0, length), kKey);
    ASSERT_FALSE(decoded.has_value()) << length;
    EXPECT_TRUE(decoded.error().is(Errc::torn_file)) << length << ": " << to_string(decoded.error());
  }
  expect_file_refused("", Errc::torn_file, "it ends within its header, at 0 of 40 bytes");
  expect_file_refused(file.substr(0, 51), Errc::torn_file,
                      "it ends after 51 bytes, and its header tells of a key of 3 and a value of 9");
}

TEST(TensorFile, AFileThatGoesOnHasAWrongLength) {
  expect_file_refused(file_of_key() + "x", Errc::wrong_length, "1 bytes follow the 9 of its value");
  expect_file_refused(file_of_key() + file_of_key(), Errc::wrong_length, "52 bytes follow");
}

TEST(TensorFile, EveryChangedBitIsSeen) {
  std::string file = file_of_key();
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
      const auto decoded = decode_tensor_file(file, kKey);
      ASSERT_FALSE(decoded.has_value()) << at << " " << bit;
      // Magic and version say what the rest is, before any checksum does.
      EXPECT_TRUE(decoded.error().is(at < 12 ? Errc::foreign_file : Errc::wrong_checksum))
          << at << " " << bit << ": " << to_string(decoded.error());
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
    }
  }
}

TEST(TensorFile, WhatIsNoTensorOfThisKeyIsForeign) {
  expect_file_refused("{\"schema\":\"holdfast-snapshot\"}", Errc::foreign_file, "does not begin as a tensor's file");
  expect_file_refused(std::string(100, '\0'), Errc::foreign_file, "does not begin as a tensor's file");
  std::string later = file_of_key();
  later[8] = 2;
  expect_file_refused(later, Errc::foreign_file, "it is of version 2, and this program reads 1");
  expect_file_refused(encode_tensor_file("kez", text_bytes("the value")), Errc::foreign_file, "another key's value");
  expect_file_refused(encode_tensor_file("ke", text_bytes("ythe value")), Errc::foreign_file, "another key's value");
}

TEST(TensorFile, OtherErrorsAreNoDamage) {
  EXPECT_FALSE(is_damaged_file(make_error(Errc::file_failed, "read")));
  Error error = make_error(Errc::torn_file, "read");
  error.origin = Origin::cuda;
  EXPECT_FALSE(is_damaged_file(error));
}

RC_GTEST_PROP(TensorFile, NoKeyNamesAFileElsewhere, (const std::string& key)) {
  const std::string name = tensor_file_name(key);
  RC_ASSERT(name.size() == 71U);
  RC_ASSERT(name.substr(64) == ".tensor");
  RC_ASSERT(name.find_first_not_of("0123456789abcdef") == 64U);
  RC_ASSERT(name == tensor_file_name(key));
  RC_ASSERT(name != tensor_file_name(key + "x"));
}

TEST(TensorFile, KeysThatWouldBePathsAreNames) {
  for (const std::string key : {"../up", "/etc/passwd", "", ".", "..", "a/b", "A", "a", "nul\0l"}) {
    EXPECT_EQ(tensor_file_name(key).find('/'), std::string::npos);
  }
  EXPECT_NE(tensor_file_name("A"), tensor_file_name("a"));
}

}  // namespace
}  // namespace holdfast::tensor_files
