#include "holdfast/core/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <variant>

#include "holdfast/core/hash.hpp"
#include "holdfast/core/layout.hpp"

namespace holdfast {
namespace {

constexpr std::uint64_t kChecksumSeed = 0;
constexpr std::size_t kMembersMax = 16;
constexpr int kDepthMax = 2;
constexpr std::uint64_t kSumBytesMax = 1ULL << 60;

Error bad_snapshot(std::string detail) { return make_error(Errc::bad_snapshot, "decode_snapshot", std::move(detail)); }

std::string checksum_of(std::string_view content) { return fmt::format("{:016x}", hash64(content, kChecksumSeed)); }

// The members of one line: unsigned numbers and strings, in at most one object within the object. Nothing else is
// taken in, so that hostile nesting ends at once. The first thing wrong is kept, with its place.
class LineReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  LineReader(std::string_view line, std::uint64_t line_number) : line_(line), line_number_(line_number) {
    // Whichever member function ends it early has told why.
    nlohmann::json::sax_parse(line.begin(), line.end(), this);
  }

  // Each takes a member away; what is left at the end is unexpected.
  std::string text(std::string_view name) { return value<std::string>(name, "a string"); }
  std::uint64_t number(std::string_view name, std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) {
    const auto taken = value<std::uint64_t>(name, "an unsigned number");
    if (taken <= max) return taken;
    fail(fmt::format("member {}: {} is above {}", name, taken, max));
    return 0;
  }
  Digest digest(std::string_view name) {
    const std::string hex = text(name);
    if (failed()) return {};
    Result<Digest> digest = digest_from_hex(hex);
    if (digest) return *digest;
    fail(fmt::format("member {}: {}", name, digest.error().detail));
    return {};
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != members_.end(); }
  [[nodiscard]] bool has_object(std::string_view name) const {
    return std::find(objects_.begin(), objects_.end(), name) != objects_.end();
  }

  void fail(std::string why) {
    if (!error_) error_ = bad_snapshot(fmt::format("line {}: {}", line_number_, why));
  }
  [[nodiscard]] bool failed() const { return error_.has_value(); }

  Status finish(std::initializer_list<std::string_view> objects_known = {}) {
    for (const std::string& object : objects_) {
      if (std::find(objects_known.begin(), objects_known.end(), object) == objects_known.end()) {
        fail(fmt::format("unexpected member {}", object));
      }
    }
    if (!members_.empty()) fail(fmt::format("unexpected member {}", members_.front().name));
    if (!unsorted_.empty()) fail(fmt::format("member {}: not in order", unsorted_));
    if (canonical_ != line_) {
      const auto same = std::mismatch(line_.begin(), line_.end(), canonical_.begin(), canonical_.end()).first;
      fail(fmt::format("byte {}: not how this program writes it", same - line_.begin() + 1));
    }
    if (error_) return *error_;
    return {};
  }

  bool null() override { return refuse("null"); }
  bool boolean(bool /*value*/) override { return refuse("a boolean"); }
  bool number_integer(number_integer_t /*value*/) override { return refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override {
    canonical_ += fmt::to_string(value);
    return add(std::uint64_t{value});
  }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return refuse("a fraction"); }
  bool string(string_t& value) override {
    fmt::format_to(std::back_inserter(canonical_), "\"{}\"", value);
    return add(std::move(value));
  }
  bool binary(binary_t& /*value*/) override { return refuse("binary"); }
  bool start_array(std::size_t /*elements*/) override { return refuse("an array"); }
  bool end_array() override { return false; }
  bool start_object(std::size_t /*elements*/) override {
    if (++depth_ > kDepthMax) return refuse("an object nested too deeply");
    canonical_ += '{';
    if (depth_ == 1) return true;
    if (has_object(key_) || has(key_)) return refuse("a second value");
    if (objects_.size() == kMembersMax) return refuse("too many members");
    objects_.push_back(key_);
    prefix_ = key_ + ".";
    return true;
  }
  bool key(string_t& name) override {
    key_ = prefix_ + name;
    std::string& before = names_before_.at(prefix_.empty() ? 0 : 1);
    if (!canonical_.ends_with('{')) {
      canonical_ += ',';
      if (unsorted_.empty() && name <= before) unsorted_ = key_;
    }
    before = name;
    fmt::format_to(std::back_inserter(canonical_), "\"{}\":", name);
    // A point would let a plain member pass for one of an inner object.
    return name.find('.') == std::string::npos || refuse("a name with a point");
  }
  bool end_object() override {
    --depth_;
    prefix_.clear();
    canonical_ += '}';
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    fail(fmt::format("byte {}: not JSON", position));
    return false;
  }

 private:
  using Value = std::variant<std::uint64_t, std::string>;
  struct Member {
    std::string name;
    Value value;
  };

  [[nodiscard]] std::vector<Member>::const_iterator find(std::string_view name) const {
    return std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.name == name; });
  }

  bool refuse(std::string_view what) {
    fail(depth_ == 0 ? fmt::format("{} where an object is expected", what)
                     : fmt::format("member {}: {} is not expected", key_, what));
    return false;
  }

  bool add(Value value) {
    if (depth_ == 0) return refuse("a plain value");
    if (has(key_) || has_object(key_)) return refuse("a second value");
    if (members_.size() == kMembersMax) return refuse("too many members");
    members_.push_back({key_, std::move(value)});
    return true;
  }

  template <class T>
  T value(std::string_view name, std::string_view expected) {
    if (failed()) return {};
    const auto found = find(name);
    if (found == members_.end()) {
      fail(fmt::format("member {} is missing", name));
      return {};
    }
    const T* held = std::get_if<T>(&found->value);
    if (held == nullptr) {
      fail(fmt::format("member {} is not {}", name, expected));
      return {};
    }
    T taken = *held;
    members_.erase(found);
    return taken;
  }

  std::string_view line_;
  std::uint64_t line_number_;
  std::string canonical_;  // what was read so far, as we would write it
  std::array<std::string, kDepthMax> names_before_;
  std::string unsorted_;
  std::vector<Member> members_;
  std::vector<std::string> objects_;
  std::string key_;
  std::string prefix_;
  int depth_ = 0;
  std::optional<Error> error_;
};

// Gives the lines of a text one by one, each within the limit.
class Lines {
 public:
  Lines(std::string_view text, std::uint64_t line_bytes_max) : text_(text), line_bytes_max_(line_bytes_max) {}

  Result<std::string_view> next() {
    ++number_;
    const std::size_t length = text_.substr(at_, line_bytes_max_ + 1).find('\n');
    if (length == std::string_view::npos) {
      const std::size_t left = text_.size() - at_;
      return bad_snapshot(left > line_bytes_max_
                              ? fmt::format("line {}: longer than {} bytes", number_, line_bytes_max_)
                              : fmt::format("line {}: the file ends within it, {} bytes in", number_, left));
    }
    const std::string_view line = text_.substr(at_, length);
    at_ += length + 1;
    return line;
  }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

 private:
  std::string_view text_;
  std::uint64_t line_bytes_max_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0;
};

struct Header {
  std::uint64_t worlds = 0;
  std::uint64_t nodes = 0;
  bool second_version = false;
};

Result<Header> decode_header(Lines& lines, const SnapshotLimits& limits) {
  Result<std::string_view> line = lines.next();
  if (!line) return std::move(line.error());
  LineReader reader(*line, lines.number());
  if (const std::string schema = reader.text("schema"); !reader.failed() && schema != kSnapshotSchema) {
    reader.fail("member schema: this is not a snapshot of this program");
  }
  Header header;
  const std::uint64_t version = reader.number("version");
  header.second_version = version == kSnapshotSecondVersion;
  if (!reader.failed() && version != kSnapshotVersion && !header.second_version) {
    reader.fail(fmt::format("member version: {}, but this program reads {} and {}", version, kSnapshotVersion,
                            kSnapshotSecondVersion));
  }
  const std::uint64_t bytes = reader.number("bytes");
  const std::string checksum = reader.text("xxh3");
  header.worlds = reader.number("worlds", limits.nodes_max);
  header.nodes = reader.number("nodes", limits.nodes_max);
  if (!reader.failed() && bytes != lines.rest().size()) {
    reader.fail(fmt::format("member bytes: {}, but {} bytes follow: cut short, or more than one file", bytes,
                            lines.rest().size()));
  }
  if (!reader.failed() && checksum != checksum_of(lines.rest())) {
    reader.fail("member xxh3: the bytes that follow have another checksum: damaged");
  }
  if (Status status = reader.finish(); !status) return std::move(status.error());
  return header;
}

class Decoder {
 public:
  explicit Decoder(const SnapshotLimits& limits) : limits_(limits) {}

  Result<Snapshot> decode(std::string_view bytes) {
    if (bytes.size() > limits_.bytes_max) {
      return bad_snapshot(fmt::format("{} bytes are more than {}", bytes.size(), limits_.bytes_max));
    }
    Lines lines(bytes, limits_.line_bytes_max);
    Result<Header> header = decode_header(lines, limits_);
    if (!header) return std::move(header.error());
    nodes_left_ = header->nodes;
    Snapshot snapshot;
    for (std::uint64_t i = 0; i < header->worlds; ++i) {
      if (Status status = decode_world(lines, snapshot); !status) return std::move(status.error());
    }
    if (nodes_left_ > 0) {
      return bad_snapshot(fmt::format("line 1: member nodes: {} more than the worlds have", nodes_left_));
    }
    if (of_second_version_ && !header->second_version) {
      return bad_snapshot("line 1: member version: a file with checksums or scales has 2");
    }
    if (!of_second_version_ && header->second_version) {
      return bad_snapshot("line 1: member version: a file without checksums and scales has 1");
    }
    if (!lines.rest().empty()) {
      return bad_snapshot(fmt::format("line {}: {} bytes too many", lines.number() + 1, lines.rest().size()));
    }
    return snapshot;
  }

 private:
  Status decode_world(Lines& lines, Snapshot& snapshot) {
    Result<std::string_view> line = lines.next();
    if (!line) return std::move(line.error());
    LineReader reader(*line, lines.number());
    SnapshotWorld world;
    world.root.digest = reader.digest("root");
    world.sink_chunks =
        static_cast<std::uint32_t>(reader.number("sink_chunks", std::numeric_limits<std::uint32_t>::max()));
    const std::uint64_t nodes = reader.number("nodes", nodes_left_);
    if (!reader.failed() && !keys_.insert(world.root).second) reader.fail("member root: a second one");
    if (!reader.failed() && !snapshot.worlds.empty() && world.root < snapshot.worlds.back().root) {
      reader.fail("member root: before that of the world above");
    }
    if (!reader.failed() && nodes == 0) reader.fail("member nodes: a world without nodes is not written");
    if (Status status = reader.finish(); !status) return status;
    nodes_left_ -= nodes;
    for (std::uint64_t i = 0; i < nodes; ++i) {
      if (Status status = decode_node(lines, world); !status) return status;
    }
    if (Status status = check_ready_below(world, lines.number()); !status) return status;
    snapshot.worlds.push_back(std::move(world));
    return {};
  }

  static Status check_ready_below(const SnapshotWorld& world, std::uint64_t last_line) {
    std::vector<bool> ready(world.nodes.size());
    for (std::size_t i = world.nodes.size(); i > 0; --i) {
      const SnapshotNode& node = world.nodes[i - 1];
      if (node.blob_ready || node.skeleton_ready) ready[i - 1] = true;
      if (!ready[i - 1]) {
        return bad_snapshot(fmt::format("line {}: a node with nothing ready in its subtree is not written",
                                        last_line - (world.nodes.size() - i)));
      }
      if (node.parent >= 0) ready[static_cast<std::size_t>(node.parent)] = true;
    }
    return {};
  }

  Status decode_node(Lines& lines, SnapshotWorld& world) {
    Result<std::string_view> line = lines.next();
    if (!line) return std::move(line.error());
    LineReader reader(*line, lines.number());
    SnapshotNode node;
    node.key.digest = reader.digest("key");
    const std::string action_hex = reader.text("action");
    if (Result<std::string> action = bytes_from_hex(action_hex)) {
      node.action = std::move(*action);
    } else {
      reader.fail("member action: " + action.error().detail);
    }
    node.last_access = reader.number("used");
    if (reader.has("parent")) {
      const std::uint64_t parent = reader.number("parent");
      if (!reader.failed() && parent >= world.nodes.size()) {
        reader.fail(fmt::format("member parent: {} is not among the {} nodes before it", parent, world.nodes.size()));
      }
      node.parent = static_cast<std::int64_t>(parent);
    }
    decode_values(reader, node);
    if (Status status = reader.finish({"kv", "latent"}); !status) return status;

    const NodeKey& parent_key = node.parent < 0 ? world.root : world.nodes[static_cast<std::size_t>(node.parent)].key;
    if (node.key != node_key(parent_key, node.action)) {
      reader.fail("member key: not the key of this parent and action");
    } else if (!keys_.insert(node.key).second) {
      reader.fail("member key: a second node with it");
    }
    check_order(reader, node, world);
    if (Status status = reader.finish({"kv", "latent"}); !status) return status;
    world.nodes.push_back(std::move(node));
    return {};
  }

  // Nodes come level by level, and an access to one is an access to all above it.
  void check_order(LineReader& reader, const SnapshotNode& node, const SnapshotWorld& world) {
    if (!world.nodes.empty() && node.parent < world.nodes.back().parent) {
      reader.fail("member parent: before that of the node above");
    }
    if (node.last_access == 0) return;
    if (!used_.insert(node.last_access).second) reader.fail("member used: a second node with it");
    if (node.parent >= 0 && world.nodes[static_cast<std::size_t>(node.parent)].last_access < node.last_access) {
      reader.fail("member used: above that of its parent");
    }
  }

  void decode_values(LineReader& reader, SnapshotNode& node) {
    if (reader.has_object("kv")) {
      node.blob_ready = true;
      node.blob.nbytes = reader.number("kv.bytes", kSumBytesMax - sum_bytes_);
      node.blob.slot_bytes = reader.number("kv.slot_bytes", kSumBytesMax - sum_slot_bytes_);
      sum_slot_bytes_ += node.blob.slot_bytes;
      node.blob.shape.n_layers = static_cast<std::uint32_t>(reader.number("kv.layers", kMaxLayers));
      node.blob.shape.parts = parts(reader);
      sum_bytes_ += node.blob.nbytes;
      node.blob.checksum = checksum(reader, "kv.xxh3");
    }
    if (reader.has_object("latent")) {
      node.skeleton_ready = true;
      node.skeleton.nbytes = reader.number("latent.bytes", kSumBytesMax - sum_bytes_);
      sum_bytes_ += node.skeleton.nbytes;
      node.skeleton.checksum = checksum(reader, "latent.xxh3");
    }
  }

  std::uint32_t parts(LineReader& reader) {
    if (!reader.has("kv.parts")) return kPlainParts;
    of_second_version_ = true;
    const std::uint64_t told = reader.number("kv.parts");
    if (!reader.failed() && told != kScaledParts) {
      reader.fail(fmt::format("member kv.parts: {} is not {}", told, kScaledParts));
    }
    return kScaledParts;
  }

  GroupChecksum checksum(LineReader& reader, std::string_view name) {
    if (!reader.has(name)) return std::nullopt;
    of_second_version_ = true;
    return reader.number(name);
  }

  const SnapshotLimits& limits_;
  std::uint64_t nodes_left_ = 0;
  std::uint64_t sum_bytes_ = 0;
  std::uint64_t sum_slot_bytes_ = 0;
  bool of_second_version_ = false;  // something in it
  std::unordered_set<NodeKey, NodeKeyHash> keys_;
  std::unordered_set<std::uint64_t> used_;
};

struct TopologyItem {
  const Node* node = nullptr;
  std::size_t parent = 0;  // index among the items
  bool kept = false;
  std::uint64_t written_as = 0;
};

constexpr std::size_t kNoParent = std::numeric_limits<std::size_t>::max();

void append_children(std::vector<TopologyItem>& items, const Node& node, std::size_t index) {
  for (const Node* child = node.first_child(); child != nullptr; child = child->next_sibling()) {
    items.push_back({.node = child, .parent = index});
  }
}

// The nodes with something ready in their subtree, parents first.
std::vector<TopologyItem> topology_of(const Namespace& world) {
  std::vector<TopologyItem> items;
  append_children(items, *world.root(), kNoParent);
  for (std::size_t i = 0; i < items.size(); ++i) append_children(items, *items[i].node, i);
  for (std::size_t i = items.size(); i > 0; --i) {
    TopologyItem& item = items[i - 1];
    item.kept = item.kept || item.node->blob().ready || item.node->skeleton().ready;
    if (item.kept && item.parent != kNoParent) items[item.parent].kept = true;
  }
  std::uint64_t written = 0;
  for (TopologyItem& item : items) {
    if (item.kept) item.written_as = written++;
  }
  return items;
}

SnapshotNode copy_of(const TopologyItem& item, const std::vector<TopologyItem>& items) {
  const Node& node = *item.node;
  SnapshotNode copy;
  copy.key = node.key();
  if (item.parent != kNoParent) copy.parent = static_cast<std::int64_t>(items[item.parent].written_as);
  copy.action = node.action();
  copy.last_access = node.last_access();
  if (const BlobState& blob = node.blob(); blob.ready) {
    copy.blob_ready = true;
    copy.blob = {.nbytes = blob.nbytes,
                 .slot_bytes = blob.slot_bytes,
                 .shape = blob.shape,
                 .committed_at_ns = 0,
                 .checksum = blob.checksum()};
  }
  if (const SkeletonState& skeleton = node.skeleton(); skeleton.ready) {
    copy.skeleton_ready = true;
    copy.skeleton = {.nbytes = skeleton.nbytes, .committed_at_ns = 0, .checksum = skeleton.checksum()};
  }
  return copy;
}

// The last member of its object.
void append_checksum(std::string& out, const GroupChecksum& checksum) {
  if (checksum) fmt::format_to(std::back_inserter(out), ",\"xxh3\":{}", *checksum);
  out += '}';
}

void append_node(std::string& out, const SnapshotNode& node) {
  out += "{\"action\":\"";
  append_hex(out, node.action);
  out += "\",\"key\":\"";
  append_hex(out, bytes_of(node.key.digest));
  out += '"';
  const auto at_end = std::back_inserter(out);
  if (node.blob_ready) {
    fmt::format_to(at_end, ",\"kv\":{{\"bytes\":{},\"layers\":{}", node.blob.nbytes, node.blob.shape.n_layers);
    if (node.blob.shape.parts != kPlainParts) fmt::format_to(at_end, ",\"parts\":{}", node.blob.shape.parts);
    fmt::format_to(at_end, ",\"slot_bytes\":{}", node.blob.slot_bytes);
    append_checksum(out, node.blob.checksum);
  }
  if (node.skeleton_ready) {
    fmt::format_to(at_end, ",\"latent\":{{\"bytes\":{}", node.skeleton.nbytes);
    append_checksum(out, node.skeleton.checksum);
  }
  if (node.parent >= 0) fmt::format_to(at_end, ",\"parent\":{}", node.parent);
  fmt::format_to(at_end, ",\"used\":{}}}\n", node.last_access);
}

bool is_of_second_version(const SnapshotNode& node) {
  const bool blob = node.blob_ready && (node.blob.checksum || node.blob.shape.parts != kPlainParts);
  return blob || (node.skeleton_ready && node.skeleton.checksum);
}

}  // namespace

Snapshot take_snapshot(const Forest& forest) {
  Snapshot snapshot;
  for (const Namespace* world : forest.namespaces()) {
    const std::vector<TopologyItem> items = topology_of(*world);
    SnapshotWorld copy{.root = world->root_key(), .sink_chunks = world->sink_chunks(), .nodes = {}};
    for (const TopologyItem& item : items) {
      if (item.kept) copy.nodes.push_back(copy_of(item, items));
    }
    if (!copy.nodes.empty()) snapshot.worlds.push_back(std::move(copy));
  }
  return snapshot;
}

std::string encode_snapshot(const Snapshot& snapshot) {
  std::string content;
  std::uint64_t nodes = 0;
  bool second_version = false;
  for (const SnapshotWorld& world : snapshot.worlds) {
    nodes += world.nodes.size();
    fmt::format_to(std::back_inserter(content), "{{\"nodes\":{},\"root\":\"{}\",\"sink_chunks\":{}}}\n",
                   world.nodes.size(), to_hex(world.root), world.sink_chunks);
    for (const SnapshotNode& node : world.nodes) {
      append_node(content, node);
      second_version = second_version || is_of_second_version(node);
    }
  }
  std::string bytes =
      fmt::format("{{\"bytes\":{},\"nodes\":{},\"schema\":\"{}\",\"version\":{},\"worlds\":{},\"xxh3\":\"{}\"}}\n",
                  content.size(), nodes, kSnapshotSchema, second_version ? kSnapshotSecondVersion : kSnapshotVersion,
                  snapshot.worlds.size(), checksum_of(content));
  bytes += content;
  return bytes;
}

Result<Snapshot> decode_snapshot(std::string_view bytes, const SnapshotLimits& limits) {
  return Decoder(limits).decode(bytes);
}

void restore_snapshot(const Snapshot& snapshot, Nanos now_ns, Forest& forest) {
  struct Restored {
    Node* node;
    const SnapshotNode* record;
  };
  std::vector<Restored> restored;
  for (const SnapshotWorld& world : snapshot.worlds) {
    Namespace& target = forest.touch_namespace({.root = world.root, .sink_chunks = world.sink_chunks});
    const std::size_t first = restored.size();
    for (const SnapshotNode& record : world.nodes) {
      Node& parent =
          record.parent < 0 ? *target.root() : *restored[first + static_cast<std::size_t>(record.parent)].node;
      restored.push_back({forest.get_or_create(parent, record.action), &record});
    }
  }
  std::stable_sort(restored.begin(), restored.end(),
                   [](const Restored& a, const Restored& b) { return a.record->last_access < b.record->last_access; });
  for (const auto& [node, record] : restored) {
    if (record->skeleton_ready) {
      forest.restore_skeleton(
          *node, {.nbytes = record->skeleton.nbytes, .committed_at_ns = now_ns, .checksum = record->skeleton.checksum});
    }
    if (record->blob_ready) {
      forest.restore_blob(*node, {.nbytes = record->blob.nbytes,
                                  .slot_bytes = record->blob.slot_bytes,
                                  .shape = record->blob.shape,
                                  .committed_at_ns = now_ns,
                                  .checksum = record->blob.checksum});
    }
  }
}

std::string temporary_path(const std::string& path) { return path + ".tmp"; }

}  // namespace holdfast
