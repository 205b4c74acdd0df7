// What the monitor's tests share: one blob and one latent, and the ways to put and claim them.
#pragma once

#include <string>
#include <vector>

#include "layer_chain.hpp"

namespace holdfast::sim {

constexpr CopyDirection kOut = CopyDirection::device_to_host;
constexpr CopyDirection kIn = CopyDirection::host_to_device;

class MonitorTest : public LayerChain {
 protected:
  // One layer, no latent: the locator's keys and what they hold after put(keys()).
  const std::string locator = std::string(64, 'a') + ":kv";
  const std::string k = locator + ":L0:k";
  const std::string v = locator + ":L0:v";
  const std::string latent = std::string(64, 'a') + ":lat";
  Names keys() const { return {k, v}; }

  ChunkSource source(std::uint64_t identity = 7) const {
    ChunkSource chunk;
    chunk.node = "world 1 [0]";
    chunk.identity = identity;
    chunk.value_digests = {tensor_digest(0), tensor_digest(kValueBytes)};
    chunk.latent_digest = tensor_digest(0);
    chunk.value_bytes = {kValueBytes, kValueBytes};
    chunk.latent_bytes = kValueBytes;
    return chunk;
  }
  void claim_kv() { monitor.on_claim(Claim::kv, locator, {1}, 2 * kValueBytes); }
  // A blob put and claimed as it should be.
  void ingest() {
    monitor.begin_ingest(source());
    put_and_route(keys());
    claim_kv();
    monitor.end(true);
  }
  void ingest_latent() {
    monitor.begin_ingest(source());
    put_and_route({latent});
    monitor.on_claim(Claim::latent, latent, {}, kValueBytes);
    monitor.end(true);
  }
  void submit(const std::vector<Copy>& copies, CopyDirection direction) {
    static_cast<void>(cuda().copy_batch(direction, copies, stream));
  }
  void restart_owner_and_learn() {
    owner.restart();
    learn_and_register();
  }
  // The owner takes its mappings in turn: after so many restarts the first one is back.
  void come_round() {
    for (std::uint32_t i = 1; i < owner_options().mappings; ++i) restart_owner_and_learn();
    owner.restart();
    ASSERT_TRUE(fluxon().wait_local_segments_ready());
  }
};

}  // namespace holdfast::sim
