// Text for people: harmless whatever it was made from, and within its width.
#include "holdfast/sim/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace holdfast::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Text, CountsAreSaidAsPeopleDo) {
  EXPECT_EQ(counted(1, "key"), "1 key");
  EXPECT_EQ(counted(0, "key"), "0 keys");
  EXPECT_EQ(counted(1234, "copy", "copies"), "1,234 copies");
  EXPECT_EQ(step_text(3), "step 3");
  EXPECT_EQ(step_text(0xFFFF'FFFF), "the drain");
}

TEST(Printable, KeepsTextAndItsLines) { EXPECT_EQ(printable("a b\tc\nd é € 😀"), "a b\tc\nd é € 😀"); }

TEST(Printable, LetsNoControlCharacterThrough) {
  EXPECT_EQ(printable("\x1b[31mred"), "\xEF\xBF\xBD[31mred");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(printable("a\x7F\r"), "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_THAT(printable("\xC2\x9B"
                        "31m"),
              Not(HasSubstr("\x9B")));  // CSI as a C1 control
}

TEST(Printable, ReplacesWhatIsNoCharacter) {
  for (const char* broken : {"\xFF", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xEF\xBF\xBE"}) {
    EXPECT_THAT(printable(broken), HasSubstr("\xEF\xBF\xBD")) << broken;
    EXPECT_EQ(printable(printable(broken)), printable(broken));
  }
}

RC_GTEST_PROP(Printable, IsTheSameWhenDoneTwice, (const std::string& text)) {
  RC_ASSERT(printable(printable(text)) == printable(text));
}

TEST(Printable, GivesUpTheMiddleOfALongText) {
  const std::string text = printable("begin" + std::string(1000, '.') + "end", 100);
  EXPECT_LE(text.size(), 100U);
  EXPECT_THAT(text, ::testing::StartsWith("begin"));
  EXPECT_THAT(text, ::testing::EndsWith("end"));
}

TEST(Kinds, AreTheSameWhateverTheNumbersAre) {
  EXPECT_EQ(kinds_in("put plan 12 (3 keys, of step 4) and batch 0x1F of 2"), "put plan # and batch # of #");
  EXPECT_EQ(kinds_in("put plan 7 (of step 99 (again)) and batch 0xabc of 31"), "put plan # and batch # of #");
  EXPECT_EQ(kinds_in("no number"), "no number");
}

TEST(ShellWord, IsOneWordWhateverItHolds) {
  EXPECT_EQ(shell_word("out/17.trace.json"), "out/17.trace.json");
  EXPECT_EQ(shell_word("my out"), "'my out'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
}

TEST(Numbers, AreReadable) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(seconds_text(1'234'000'000), "1.23 s");
  EXPECT_EQ(seconds_text(245'000'000'000), "4 min 05 s");
  EXPECT_EQ(seconds_text(7'320'000'000'000), "2 h 02 min");
}

TEST(Nearest, NamesWhatOneMightHaveMeant) {
  const std::vector<std::string> names{"--seeds", "--shard", "--jobs"};
  EXPECT_THAT(nearest("--seed", names), ElementsAre("--seeds"));
  EXPECT_THAT(nearest("--job", names), ElementsAre("--jobs"));
  EXPECT_THAT(nearest("--completely-else", names), IsEmpty());
  EXPECT_EQ(did_you_mean("--seed", names), "; did you mean '--seeds'?");
  EXPECT_EQ(did_you_mean("--completely-else", names), "");
}

TEST(Explain, SaysWhereWhatAndWhy) {
  EXPECT_EQ(explain(make_error(Errc::invalid_argument, "a.json", "line 3: no")), "a.json: line 3: no");
  EXPECT_EQ(explain(make_error(Errc::invalid_argument, "replay", "bad", make_error(Errc::not_found, "b", "gone"))),
            "replay: bad; because b: gone");
}

TEST(Table, AlignsAndWrapsWithinItsWidth) {
  Table table({Table::Align::left, Table::Align::right, Table::Align::left});
  table.add({"a", "1", "short"});
  table.add({"longer", "1,000", "words that go on and on until they do not fit in the line any more"});
  EXPECT_EQ(table.text(0, 40),
            "a           1  short\n"
            "longer  1,000  words that go on and on\n"
            "               until they do not fit in\n"
            "               the line any more\n");
}

RC_GTEST_PROP(Wrapped, LosesNoWordAndKeepsTheWidth, ()) {
  const auto words = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(rc::gen::string<std::string>())));
  std::string text;
  for (std::string word : words) {
    for (char& c : word) c = static_cast<char>('a' + (static_cast<unsigned char>(c) % 26));
    text += (text.empty() ? "" : " ") + word.substr(0, 20);
  }
  std::string joined;
  std::string line;
  for (const char c : wrapped(text, 24, 2) + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    RC_ASSERT(line.size() <= 24U + 2U);
    const std::string bare = line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    joined += (joined.empty() ? "" : " ") + bare;
    line.clear();
  }
  RC_ASSERT(joined == text);
}

}  // namespace
}  // namespace holdfast::sim
