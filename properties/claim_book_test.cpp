// The claim book: which nodes are pinned, told by the harness's own knowledge of the store's claims.
#include "holdfast/sim/claim_book.hpp"

#include "monitor_fixture.hpp"

namespace holdfast::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ClaimBookTest : public MonitorTest {
 protected:
  ClaimBookTest() {
    book.reset(false, 0);
    book.know(node_of(7, 0), true);
    book.know(node_of(8, 1), false);
    bind(7, sink_locator);
    bind(8, behind_locator);
  }
  static OracleNode node_of(std::uint64_t identity, std::uint32_t depth) {
    OracleNode node;
    node.identity = identity;
    node.namespace_id = 1;
    node.depth = depth;
    return node;
  }
  // The locator becomes the node's where the node is put.
  void bind(std::uint64_t identity, const std::string& of) {
    ChunkSource chunk = source(identity);
    monitor.begin_ingest(chunk);
    const std::string first = of + ":L0:k";
    const std::string second = of + ":L0:v";
    put_and_route({first, second});
    book.on_claim(Claim::kv, of, {1}, 2 * kValueBytes);
    monitor.end(true);
  }
  // What an eviction of the sink's blob breaks; the claim is made again.
  std::vector<std::string> evict_the_sink() {
    context.verdicts.reset();
    monitor.begin(Operation::evict);
    book.on_withdrawal(Claim::kv, sink_locator);
    monitor.end(true);
    const std::vector<std::string> broken = violated();
    monitor.begin(Operation::restore);
    book.on_claim(Claim::kv, sink_locator, {1}, 2 * kValueBytes);
    monitor.end(true);
    return broken;
  }

  const std::string sink_locator = std::string(64, 'b') + ":kv";
  const std::string behind_locator = std::string(64, 'c') + ":kv";
  Oracle oracle{context};
  ClaimBook book{monitor, oracle};
};

TEST_F(ClaimBookTest, ASinkIsPinnedWhileItsWorldHasASessionOrABlobBehindIt) {
  book.namespace_opened(1);
  EXPECT_THAT(evict_the_sink(), ElementsAre("pinned-stays"));
  book.namespace_closed(1);
  EXPECT_THAT(evict_the_sink(), ElementsAre("pinned-stays")) << "a blob behind the sink is left";
  book.on_withdrawal(Claim::kv, behind_locator);
  EXPECT_THAT(evict_the_sink(), IsEmpty());
}

}  // namespace
}  // namespace holdfast::sim
