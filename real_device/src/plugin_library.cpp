#include "holdfast/real_device/plugin_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "holdfast/sim/files.hpp"

namespace holdfast::device {
namespace {

using Named = std::pair<const char*, bool>;  // whether it is there

// "a, b and c", of what is missing.
std::string missing_of(std::initializer_list<Named> functions) {
  std::string text;
  for (const auto& [name, there] : functions) {
    if (!there) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

// What lies past the end of the library's own stays zero.
template <class Table>
void take_known(Table& into, const Table* from) {
  std::memcpy(&into, from, std::min<std::size_t>(from->struct_size, sizeof into));
}

std::string missing_calls(const holdfast_plugin_api& api) {
  return missing_of({{"open", api.open != nullptr},
                     {"close", api.close != nullptr},
                     {"wait_local_segments_ready", api.wait_local_segments_ready != nullptr},
                     {"local_fast_put_start", api.local_fast_put_start != nullptr},
                     {"local_fast_put_commit", api.local_fast_put_commit != nullptr},
                     {"commit_wait", api.commit_wait != nullptr},
                     {"commit_drop", api.commit_drop != nullptr},
                     {"put_abort", api.put_abort != nullptr},
                     {"get_start", api.get_start != nullptr},
                     {"get_transfer", api.get_transfer != nullptr},
                     {"cancel_get_transfer", api.cancel_get_transfer != nullptr},
                     {"release_views", api.release_views != nullptr},
                     {"remove", api.remove != nullptr},
                     {"put", api.put != nullptr},
                     {"get", api.get != nullptr}});
}

std::string missing_looks(const holdfast_inside& inside) {
  return missing_of({{"peek", inside.peek != nullptr},
                     {"look_at_plan", inside.look_at_plan != nullptr},
                     {"transferable", inside.transferable != nullptr},
                     {"has_room", inside.has_room != nullptr},
                     {"count", inside.count != nullptr},
                     {"segment", inside.segment != nullptr},
                     {"place_of", inside.place_of != nullptr},
                     {"for_each_stored", inside.for_each_stored != nullptr},
                     {"check_all_slots", inside.check_all_slots != nullptr},
                     {"take_incidents", inside.take_incidents != nullptr},
                     {"has_incidents", inside.has_incidents != nullptr},
                     {"next_due_ns", inside.next_due_ns != nullptr},
                     {"run_due", inside.run_due != nullptr}});
}

std::string missing_choices(const holdfast_environment& environment) {
  return missing_of({{"choose_next_commit", environment.choose_next_commit != nullptr},
                     {"choose_next_get_start", environment.choose_next_get_start != nullptr},
                     {"choose_next_abort", environment.choose_next_abort != nullptr},
                     {"choose_next_release_pins", environment.choose_next_release_pins != nullptr},
                     {"choose_next_release_drops_after", environment.choose_next_release_drops_after != nullptr},
                     {"choose_next_cancel_pins", environment.choose_next_cancel_pins != nullptr},
                     {"mount_at", environment.mount_at != nullptr},
                     {"evict", environment.evict != nullptr},
                     {"damage", environment.damage != nullptr},
                     {"restart", environment.restart != nullptr},
                     {"client_died", environment.client_died != nullptr},
                     {"end_client", environment.end_client != nullptr},
                     {"new_client", environment.new_client != nullptr},
                     {"reset", environment.reset != nullptr}});
}

constexpr std::string_view kRemedy = "build it with this program's holdfast/real_device/holdfast_plugin.h";

}  // namespace

Result<std::shared_ptr<const PluginLibrary>> PluginLibrary::load(const std::string& path) {
  const auto refused = [&](const std::string& what) {
    return make_error(Errc::invalid_argument, "--backend", fmt::format("plug-in {}: {}", path, what));
  };
  auto digest = sim::sha256_of_file(path);
  if (!digest) return digest.error();
  const std::shared_ptr<PluginLibrary> library(new PluginLibrary);
  // A name without a slash would be looked for elsewhere.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  library->handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle_ == nullptr) {
    const char* why = dlerror();
    return refused(fmt::format("it cannot be loaded: {}", why == nullptr ? "no reason is given" : why));
  }
  void* entry = dlsym(library->handle_, HOLDFAST_PLUGIN_ENTRY);
  if (entry == nullptr) {
    return refused(fmt::format("it exports no function {}; {}", HOLDFAST_PLUGIN_ENTRY, kRemedy));
  }
  if (const std::string wrong = library->read_table(entry); !wrong.empty()) return refused(wrong);
  const auto text = [](const char* words) { return std::string(words == nullptr ? "" : words); };
  library->info_ = {"fluxon", text(library->api_.name), text(library->api_.version), path, std::move(*digest)};
  return std::shared_ptr<const PluginLibrary>(library);
}

std::string PluginLibrary::read_table(void* entry) {
  const holdfast_plugin_api* table = reinterpret_cast<holdfast_plugin_entry>(entry)();
  if (table == nullptr) return fmt::format("its {}() gives no table", HOLDFAST_PLUGIN_ENTRY);
  if (table->abi_version != HOLDFAST_PLUGIN_ABI_VERSION) {
    return fmt::format("it speaks version {} of the plug-in interface, this program version {}; {}", table->abi_version,
                       HOLDFAST_PLUGIN_ABI_VERSION, kRemedy);
  }
  take_known(api_, table);
  if (const std::string missing = missing_calls(api_); !missing.empty()) {
    return fmt::format("its table of {} bytes lacks {}; only what the header marks OPTIONAL may be missing",
                       table->struct_size, missing);
  }
  if (api_.inside != nullptr) {
    take_known(inside_, api_.inside);
    if (const std::string missing = missing_looks(inside_); !missing.empty()) {
      return fmt::format("its 'inside' lacks {}; give all of it, or null", missing);
    }
  }
  if (api_.environment != nullptr) {
    if (api_.inside == nullptr) return "it has an 'environment' without 'inside'; give both, or null for it";
    take_known(environment_, api_.environment);
    if (const std::string missing = missing_choices(environment_); !missing.empty()) {
      return fmt::format("its 'environment' lacks {}; give all of it, or null", missing);
    }
  }
  return {};
}

PluginLibrary::~PluginLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace holdfast::device
