// Libraries from outside: what is loaded, and what is refused with the place and the remedy.
#include "holdfast/real_device/plugin_library.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/real_device/plugin_owner.hpp"
#include "holdfast/sim/files.hpp"
#include "strange_plugin.hpp"
#include "temporary_directory.hpp"

namespace holdfast::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const std::string& file) {
  const auto library = PluginLibrary::load(file);
  EXPECT_FALSE(library.has_value());
  if (library) return {};
  EXPECT_TRUE(library.error().is(Errc::invalid_argument)) << to_string(library.error());
  return to_string(library.error());
}
std::string refusal_of_strange(const std::string& what) {
  const StrangePlugin strange(what);
  return refusal_of(StrangePlugin::file());
}

TEST(PluginLibrary, TheEmbeddedOwnersTellsItsNameVersionPathAndDigest) {
  const auto library = PluginLibrary::load(HOLDFAST_EMBEDDED_OWNER);
  ASSERT_TRUE(library.has_value()) << to_string(library.error());
  const sim::RuntimeInfo& info = (*library)->info();
  EXPECT_EQ(info.role, "fluxon");
  EXPECT_EQ(info.name, "embedded owner");
  EXPECT_FALSE(info.version.empty());
  EXPECT_EQ(info.path, HOLDFAST_EMBEDDED_OWNER);
  EXPECT_EQ(info.sha256, sim::sha256_of_file(HOLDFAST_EMBEDDED_OWNER).value());
  EXPECT_NE((*library)->inside(), nullptr);
  EXPECT_NE((*library)->environment(), nullptr);
}

TEST(PluginLibrary, WhatIsNoLibraryIsRefusedWithTheLoadersWords) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/no_library.so";
  std::ofstream(file) << "abc";
  EXPECT_THAT(refusal_of(file), AllOf(HasSubstr(file), HasSubstr("cannot be loaded")));
  EXPECT_THAT(refusal_of(directory.path() + "/missing.so"), HasSubstr("missing.so"));
}

TEST(PluginLibrary, ALibraryWithoutTheEntryIsRefused) {
  Dl_info c_library{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::abort), &c_library), 0);
  EXPECT_THAT(refusal_of(c_library.dli_fname),
              AllOf(HasSubstr("no function holdfast_plugin"), HasSubstr("holdfast_plugin.h")));
}

TEST(PluginLibrary, AnotherVersionIsRefused) {
  EXPECT_THAT(refusal_of_strange("version"),
              AllOf(HasSubstr("version 7"), HasSubstr("version 1"), HasSubstr("build it")));
}

TEST(PluginLibrary, WhatLacksAFunctionIsRefusedByItsName) {
  EXPECT_THAT(refusal_of_strange("lacks"), AllOf(HasSubstr("lacks put_abort;"), HasSubstr("OPTIONAL")));
  EXPECT_THAT(refusal_of_strange("short"), HasSubstr("lacks get;")) << "past the end of its table";
}

TEST(PluginLibrary, WhatIsOptionalComesWholeOrNotAtAll) {
  EXPECT_THAT(refusal_of_strange("half_inside"), HasSubstr("'inside' lacks peek"));
  EXPECT_THAT(refusal_of_strange("half_environment"), HasSubstr("'environment' lacks reset"));
  EXPECT_THAT(refusal_of_strange("lone_environment"), HasSubstr("without 'inside'"));
  const StrangePlugin strange("opaque");
  const auto library = PluginLibrary::load(StrangePlugin::file());
  ASSERT_TRUE(library.has_value()) << to_string(library.error());
  EXPECT_EQ((*library)->inside(), nullptr);
  EXPECT_EQ((*library)->environment(), nullptr);
}

TEST(PluginLibrary, AnOlderTableLacksWhatCameLater) {
  const StrangePlugin strange("older");
  const auto library = PluginLibrary::load(StrangePlugin::file());
  ASSERT_TRUE(library.has_value()) << to_string(library.error());
  EXPECT_EQ((*library)->api().touch, nullptr);
  EXPECT_EQ((*library)->inside(), nullptr);
  fakes::VirtualClock clock;
  PluginOwner owner(*library, clock);
  EXPECT_EQ(owner.pages(), std::nullopt);
  const Segment segment = owner.segment();
  owner.touch({segment.write_ptr, 4096});
}

TEST(PluginLibrary, AnOwnerThatDoesNotOpenIsToldInTheLibrarysWords) {
  const StrangePlugin strange("refuses");
  const auto library = PluginLibrary::load(StrangePlugin::file());
  ASSERT_TRUE(library.has_value());
  fakes::VirtualClock clock;
  try {
    const PluginOwner owner(*library, clock);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(StrangePlugin::file()), HasSubstr("no such cluster")));
  }
}

TEST(PluginOwner, PagesAreToldThroughTheTable) {
  fakes::VirtualClock clock;
  PluginOwner owner(PluginLibrary::load(HOLDFAST_EMBEDDED_OWNER).value(), clock,
                    {.segment_bytes = 1 << 20, .grant_bytes = 1 << 18});
  const Segment segment = owner.segment();
  EXPECT_EQ(owner.pages()->kind, HOLDFAST_PAGES_PLAIN);
  EXPECT_EQ(owner.pages()->present_bytes, 0U);
  owner.touch({segment.write_ptr, 1 << 18});
  EXPECT_EQ(owner.pages()->present_bytes, 1U << 18);
}

// An owner that nobody can look into answers its calls, and its client's end is played before it.
TEST(PluginOwner, AnOpaqueOwnersClientEndsAndComesAnew) {
  const StrangePlugin strange("opaque");
  fakes::VirtualClock clock;
  PluginOwner owner(PluginLibrary::load(StrangePlugin::file()).value(), clock,
                    {.segment_bytes = 1 << 20, .grant_bytes = 1 << 18});
  EXPECT_FALSE(owner.powers().shows_inside);
  EXPECT_FALSE(owner.powers().takes_choices);
  const std::vector<std::byte> value(100, std::byte{3});
  EXPECT_TRUE(owner.put("a", value).has_value());
  EXPECT_EQ(owner.get("a").value(), value);
  EXPECT_EQ(owner.peek("a"), std::nullopt);
  const std::string_view key = "b";
  const PlanPtr plan = owner.local_fast_put_start({&key, 1}, 10, {}).value();
  auto future = owner.local_fast_put_commit(plan).value();
  owner.client_died();
  EXPECT_TRUE(is_fluxon(owner.get("a").error(), FluxonErrc::store_closed));
  EXPECT_TRUE(is_fluxon(future.wait(0).error(), FluxonErrc::store_closed));
  owner.new_client();
  EXPECT_TRUE(is_fluxon(future.wait(0).error(), FluxonErrc::store_closed)) << "it belonged to the one before";
  EXPECT_TRUE(owner.put("a", value).has_value());
  owner.close();
  EXPECT_TRUE(is_fluxon(owner.put("a", value).error(), FluxonErrc::general));
}

}  // namespace
}  // namespace holdfast::device
