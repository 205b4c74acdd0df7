// Mutates a snapshot, bytes or whole lines, and mostly makes its checksum, counts and keys right again: chance alone
// would never get past them.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/hash.hpp"
#include "holdfast/core/keys.hpp"
#include "holdfast/core/snapshot.hpp"
#include "json_mutation.hpp"

namespace holdfast::fuzz {
namespace {

using nlohmann::json;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string hex_member(const json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_member(const json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

class Mutation {
 public:
  Mutation(std::string_view text, unsigned seed) : random_(seed), lines_(lines_of(text)) {}

  // Something about the lines below the header.
  void change_lines() {
    if (lines_.size() < 2) return;
    const std::size_t at = 1 + below(lines_.size() - 1);
    const std::size_t other = 1 + below(lines_.size() - 1);
    const auto here = lines_.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        lines_.insert(here, lines_[other]);
        return;
      case 1:
        lines_.erase(here);
        return;
      case 2:
        std::swap(lines_[at], lines_[other]);
        return;
      default:
        change_members(lines_[at], lines_[other]);
    }
  }

  // The keys follow from the actions, the worlds' counts from the lines, the header from all.
  void repair() {
    NodeKey root;
    std::vector<NodeKey> nodes;
    json* world = nullptr;
    std::vector<json> parsed;
    for (std::size_t i = 1; i < lines_.size(); ++i) parsed.push_back(json::parse(lines_[i], nullptr, false));
    std::uint64_t worlds = 0;
    std::uint64_t all_nodes = 0;
    for (json& line : parsed) {
      if (!line.is_object()) continue;
      if (line.contains("root")) {
        if (const auto digest = digest_from_hex(hex_member(line, "root"))) root.digest = *digest;
        nodes.clear();
        world = &line;
        ++worlds;
        line["nodes"] = 0;
        continue;
      }
      const std::uint64_t parent = number_member(line, "parent");
      const NodeKey above = line.contains("parent") && parent < nodes.size() ? nodes[parent] : root;
      const auto action = bytes_from_hex(hex_member(line, "action"));
      const NodeKey key = node_key(above, action ? *action : "");
      line["key"] = to_hex(key);
      nodes.push_back(key);
      ++all_nodes;
      if (world != nullptr) (*world)["nodes"] = nodes.size();
    }
    std::string content;
    for (std::size_t i = 0; i < parsed.size(); ++i) {
      if (parsed[i].is_object()) lines_[i + 1] = dump_json(parsed[i]);
      content += lines_[i + 1] + '\n';
    }
    std::string checksum = to_hex(std::string(8, '\0'));
    std::uint64_t hash = hash64(content, 0);
    for (auto digit = checksum.rbegin(); digit != checksum.rend(); ++digit, hash /= 16)
      *digit = "0123456789abcdef"[hash % 16];
    const bool second =
        content.find(",\"xxh3\":") != std::string::npos || content.find(",\"parts\":") != std::string::npos;
    const std::uint32_t version = second ? kSnapshotSecondVersion : kSnapshotVersion;
    const json header{{"bytes", content.size()}, {"nodes", all_nodes}, {"schema", kSnapshotSchema},
                      {"worlds", worlds},        {"version", version}, {"xxh3", checksum}};
    if (lines_.empty()) lines_.emplace_back();
    lines_.front() = header.dump();
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + '\n';
    return text;
  }

  std::size_t below(std::size_t bound) { return fuzz::below(random_, bound); }

 private:
  void change_members(std::string& text, const std::string& other_text) {
    json line = json::parse(text, nullptr, false);
    const json other = json::parse(other_text, nullptr, false);
    if (!line.is_object() || !other.is_object()) return;
    const json number = below(4) == 0 ? json(~std::uint64_t{0} >> below(64)) : json(below(8));
    switch (below(8)) {
      case 0:
        line["parent"] = number;
        break;
      case 1:
        line.erase("parent");
        break;
      case 2:
        line["kv"] = {{"bytes", number}, {"layers", below(70)}, {"slot_bytes", below(9) * 4096}};
        if (below(3) == 0) line["kv"]["parts"] = below(3) == 0 ? 2 + below(3) : 4;
        if (below(3) == 0) line["kv"]["xxh3"] = ~std::uint64_t{0} >> below(64);
        break;
      case 3:
        line.erase(below(2) == 0 ? "kv" : "latent");
        break;
      case 4:
        line[line.contains("root") ? "sink_chunks" : "used"] = number;
        break;
      case 5:
        line["used"] = number_member(other, "used") + below(3) - 1;
        break;
      case 6:
        mutate_json(line, random_, {});
        break;
      default:
        line["action"] = to_hex(std::string(below(4), static_cast<char>(below(256))));
    }
    text = dump_json(line);
  }

  Random random_;
  std::vector<std::string> lines_;
};

}  // namespace
}  // namespace holdfast::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t bytes_max,
                                               unsigned seed) {
  namespace fuzz = holdfast::fuzz;
  using fuzz::Mutation;
  const bool by_lines = seed % 2 == 0;
  if (!by_lines) bytes = LLVMFuzzerMutate(data, bytes, bytes_max);
  Mutation mutation({reinterpret_cast<const char*>(data), bytes}, seed);
  if (by_lines) mutation.change_lines();
  if (mutation.below(8) == 0) return bytes;
  mutation.repair();
  return fuzz::put_text(mutation.text(), data, bytes, bytes_max);
}
