// The steps that ask the store for something, and the situations that they are marked with.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "executor_impl.hpp"

namespace holdfast::sim {
namespace {

std::string_view name_of(IngestResult result) {
  switch (result) {
    case IngestResult::published:
      return "published";
    case IngestResult::adopted:
      return "adopted";
    case IngestResult::already_ready:
      return "already ready";
    case IngestResult::elsewhere:
      return "elsewhere";
    case IngestResult::uncached:
      return "uncached";
  }
  return "?";
}

std::uint64_t chunk_bytes(const Geometry& geometry) {
  std::uint64_t bytes = 0;
  for (std::size_t tensor = 0; tensor < geometry.tensors(); ++tensor) {
    bytes += geometry.token_bytes(tensor) * geometry.frame_tokens * geometry.frames_per_chunk;
  }
  return bytes;
}

// Nothing that the store records of a blob tells these layouts apart, so a caller's mistake could not be noticed.
bool same_blobs(const Geometry& real, const Geometry& declared) {
  return real.chunk_shape() == declared.chunk_shape() && chunk_bytes(real) == chunk_bytes(declared);
}
bool same_latents(const Geometry& real, const Geometry& declared) {
  return real.latent_bytes > 0 && real.latent_bytes == declared.latent_bytes;
}
bool indistinguishable(const Geometry& real, const Geometry& declared) {
  return same_blobs(real, declared) && (real.latent_bytes == 0 || same_latents(real, declared));
}

bool goes_back(const WarmUpReached& before, const WarmUpReached& now) {
  return now.touched_bytes < before.touched_bytes || now.registered_bytes < before.registered_bytes ||
         now.touch_total_bytes < before.touch_total_bytes || now.register_total_bytes < before.register_total_bytes ||
         now.touched_bytes > now.touch_total_bytes || now.registered_bytes > now.register_total_bytes;
}

std::uint32_t sink_chunks(const Geometry& geometry) {
  return (geometry.sink_frames + geometry.frames_per_chunk - 1) / geometry.frames_per_chunk;
}

// Incomplete reads of one resume, the last of which leaves it cold.
constexpr std::uint32_t kRetriesMax = 4;

}  // namespace

Executor::Impl::Ending Executor::Impl::execute(const Step& step) {
  switch (step.kind) {
    case StepKind::open:
      return open(step);
    case StepKind::close:
      return close(step);
    case StepKind::generate:
      return generate(step);
    case StepKind::resume:
      return resume(step);
    case StepKind::hold:
      return hold(step);
    case StepKind::unhold:
      return unhold(step);
    case StepKind::evict:
      return evict(step);
    case StepKind::make_room:
      return make_room(step);
    case StepKind::warm_up:
      return warm_up(step);
    case StepKind::pump:
      return pump();
    case StepKind::snapshot:
      return snapshot();
    case StepKind::restart:
      return restart();
    case StepKind::store_evict:
      return store_evict(step);
    case StepKind::owner_restart:
      return owner_restart();
    case StepKind::pass_time:
      return pass_time(step);
  }
  return {.skipped = true, .text = {}};
}

// ---- Sessions.

Executor::Impl::Ending Executor::Impl::open(const Step& step) {
  Ending ending;
  const Geometry& real = trace->geometries[step.geometry];
  const Geometry& declared = trace->geometries[step.declared_geometry];
  const bool mistaken = !(real == declared);
  if ((mistaken && indistinguishable(real, declared)) || sessions_by_id.contains(step.id)) {
    ending.skipped = true;
    return ending;
  }
  if (const Session* session = open_session(step.id, step, real, declared, ending);
      session != nullptr && wants_text()) {
    ending.text += session->path.empty() ? "no chunks" : oracle.describe(session->path.back());
  }
  return ending;
}

Executor::Impl::Session* Executor::Impl::open_session(SessionId id, const Step& step, const Geometry& real,
                                                      const Geometry& declared, Ending& ending) {
  const SessionSpec spec{step.world, real, declared, step.actions};
  Session& session = sessions.emplace_back();
  sessions_by_id[id] = &session;
  session.id = id;
  session.path = oracle.path_of(spec, step.actions);
  session.namespace_id = oracle.namespace_of(step.world, declared);
  session.break_even_k = declared.break_even_k;
  session.mistaken = oracle.layout_of(real) != oracle.layout_of(declared);
  session.unnoticed = session.mistaken && (same_blobs(real, declared) || same_latents(real, declared));
  session.output = result.frame_hashes.size();
  result.frame_hashes.emplace_back();
  result.session_chunks_hit.push_back(0);
  for (const NodeIndex index : session.path) {
    book.know(oracle.node(index), oracle.node(index).depth < sink_chunks(declared));
  }
  session.engine = take_engine();
  if (Status opened =
          session.engine->open(oracle.layout_of(real), session.path, trace->copy_stream ? &hazards.cuda() : nullptr);
      !opened) {
    if (ending.code == 0) ending.code = opened.error().code;
    ending.skipped = true;
    ending.text = "no device memory";
    spare_engines.push_back(std::move(session.engine));
    return nullptr;
  }
  const Status opened =
      operate(Operation::open, ending, [&] { return system->open_session(id, spec, *session.engine); });
  if (!opened) {
    session.engine->close();
    spare_engines.push_back(std::move(session.engine));
    return nullptr;
  }
  session.open = true;
  book.namespace_opened(session.namespace_id);
  return &session;
}

Executor::Impl::Ending Executor::Impl::close(const Step& step) {
  Ending ending;
  Session* session = find(step.of);
  if (session == nullptr) {
    ending.skipped = true;
    return ending;
  }
  close_session(*session, ending);
  return ending;
}

void Executor::Impl::close_session(Session& session, Ending& ending) {
  book.namespace_closed(session.namespace_id);  // its pins may end from now on
  static_cast<void>(operate(Operation::close, ending, [&] { return system->close_session(session.id); }));
  keep_output(session);
  if (device.context_dead() || injector.context_dead()) {
    session.engine->abandon();
  } else {
    session.engine->close();
  }
  spare_engines.push_back(std::move(session.engine));
  session.open = false;
}

// ---- Generating.

Executor::Impl::Ending Executor::Impl::generate(const Step& step) {
  Ending ending;
  Session* session = find(step.of);
  // A dead context computes nothing.
  if (session == nullptr || session->unnoticed || !session->engine->can_generate() || injector.context_dead()) {
    ending.skipped = true;
    return ending;
  }
  const std::optional<IngestOutcome> outcome = generate_chunk(*session, ending);
  if (outcome) {
    ending.first = static_cast<std::uint64_t>(outcome->kv);
    ending.second = static_cast<std::uint64_t>(outcome->latent);
  }
  if (wants_text()) {
    std::string text = oracle.describe(session->path[session->engine->chunks_done() - 1]);
    if (outcome) text += ", blob " + std::string(name_of(outcome->kv));
    if (outcome && session->engine->layout().geometry.latent_bytes != 0) {
      text += ", latent " + std::string(name_of(outcome->latent));
    }
    ending.text = text + (ending.text.empty() ? "" : "; " + ending.text);
  }
  return ending;
}

std::optional<IngestOutcome> Executor::Impl::generate_chunk(Session& session, Ending& ending) {
  StandInEngine& engine = *session.engine;
  static_cast<void>(engine.generate());
  session.generated = true;
  ++result.chunks_generated;
  const NodeIndex index = session.path[engine.chunks_done() - 1];
  const OracleNode& node = oracle.node(index);
  const EngineLayout& layout = engine.layout();
  ClaimBook::Node& known = book_node(index);

  ClaimBook::Footprint footprint;
  ChunkSource& source = doing.source;
  source.node = oracle.describe(index);
  source.identity = node.identity;
  source.depth = node.depth;
  source.pinned = known.sink;
  source.value_digests.assign(engine.value_digests().begin(), engine.value_digests().end());
  source.latent_digest = engine.latent_digest();
  source.value_bytes.clear();
  for (std::size_t tensor = 0; tensor < layout.tensors(); ++tensor) {
    source.value_bytes.push_back(layout.value_bytes(tensor));
    footprint.kv_bytes += layout.value_bytes(tensor);
    footprint.kv_slot_bytes += slot_bytes(layout.value_bytes(tensor));
  }
  source.latent_bytes = layout.geometry.latent_bytes;
  if (source.latent_bytes != 0) footprint.latent_slot_bytes = slot_bytes(source.latent_bytes);
  const bool was_unsettled = monitor.unsettled(node.identity);
  book.note_ingest(known, node.parent == kNoNode ? 0 : oracle.node(node.parent).identity, footprint);

  const std::uint64_t withdrawn_before = book.blob_withdrawals();
  begin_clock(Operation::ingest);
  monitor.begin_ingest(source);
  Result<IngestOutcome> answer = finish(ending, system->chunk_finalized(session.id));
  result.evictions += book.blob_withdrawals() - withdrawn_before;
  if (!answer) {
    if (mentions(answer.error(), Origin::core, static_cast<std::int32_t>(Errc::unsettled))) {
      context.marks.reach(Mark::put_refused_unsettled);
    }
    return std::nullopt;
  }
  doing.told.add(answer->absorbed);
  if (answer->kv == IngestResult::published) result.bytes_to_host += footprint.kv_bytes;
  if (answer->latent == IngestResult::published) result.bytes_to_host += source.latent_bytes;
  if (!injector.client_dead()) {
    if (answer->kv == IngestResult::already_ready) monitor.relied_on(node.identity, Claim::kv);
    if (source.latent_bytes != 0 && answer->latent == IngestResult::already_ready) {
      monitor.relied_on(node.identity, Claim::latent);
    }
  }
  doing.absorptions.put_not_published =
      answer->kv != IngestResult::published || (source.latent_bytes != 0 && answer->latent != IngestResult::published);
  mark_ingest(session, book_node(index), *answer, was_unsettled);  // other steps may have made nodes meanwhile
  return *answer;
}

void Executor::Impl::mark_ingest(const Session& session, const ClaimBook::Node& node, const IngestOutcome& outcome,
                                 bool was_unsettled) {
  static_cast<void>(session);
  if (outcome.kv == IngestResult::published) {
    const std::set<std::uint64_t> sizes(doing.source.value_bytes.begin(), doing.source.value_bytes.end());
    if (sizes.size() == 1) context.marks.reach(Mark::put_one_size);
    if (sizes.size() == 3) context.marks.reach(Mark::put_three_sizes);
    if (*sizes.rbegin() >= kLargeValueBytes) context.marks.reach(Mark::large_values_copied);
  }
  if (outcome.kv == IngestResult::already_ready) context.marks.reach(Mark::put_ready_node);
  if (outcome.kv == IngestResult::adopted || outcome.latent == IngestResult::adopted) {
    context.marks.reach(was_unsettled || node.ever_before_restart ? Mark::leftover_adopted : Mark::put_exists_adopted);
  }
  for (const Error& error : outcome.absorbed) {
    if (!mentions(error, Origin::core, static_cast<std::int32_t>(Errc::unsettled))) continue;
    context.marks.reach(Mark::put_refused_unsettled);
    break;
  }
}

// ---- Resuming.

std::uint32_t Executor::Impl::claimed_chunks(const Session& session, bool latents_too) {
  std::uint32_t count = 0;
  const bool latents = latents_too && session.engine->layout().geometry.latent_bytes != 0;
  for (const NodeIndex index : session.path) {
    const ClaimBook::Node& node = book_node(index);
    if (!node.kv || (latents && !node.latent)) break;
    ++count;
  }
  return count;
}

std::uint32_t Executor::Impl::chunks_claimed_since(const Session& session, std::uint64_t withdrawals) {
  std::uint32_t count = 0;
  for (const NodeIndex index : session.path) {
    const ClaimBook::Node& node = book_node(index);
    if (!node.kv && node.withdrawn_at[static_cast<std::size_t>(Claim::kv)] <= withdrawals) break;
    ++count;
  }
  return count;
}

Executor::Impl::Ending Executor::Impl::resume(const Step& step) {
  Ending ending;
  Session* session = find(step.of);
  if (session == nullptr || session->engine->chunks_done() != 0) {
    ending.skipped = true;
    return ending;
  }
  const std::uint32_t matched = resume_session(*session, ending);
  ending.first = matched;
  if (wants_text()) {
    std::string text = std::to_string(matched) + " of " + std::to_string(session->path.size()) + " chunks";
    if (!session->path.empty()) text += " of " + oracle.describe(session->path.back());
    ending.text = text + (ending.text.empty() ? "" : "; " + ending.text);
  }
  return ending;
}

std::uint32_t Executor::Impl::resume_session(Session& session, Ending& ending) {
  StandInEngine& engine = *session.engine;
  const std::uint32_t ready_before = claimed_chunks(session);
  const std::uint64_t switched_before = times_switched;
  const std::uint64_t withdrawals_before = book.withdrawals();
  engine.begin_resume();
  const Result<ResumeOutcome> answer = operate(Operation::resume, ending, [&] { return system->resume(session.id); });
  if (answer) doing.told.add(answer->absorbed);
  if (answer && !injector.client_dead()) check_retries(session, *answer);
  if (monitor.read_damaged() && !injector.client_dead()) check_damage_told(answer);
  // A dead client's session is nobody's; what it left in the ring is never used.
  if (injector.client_dead()) {
    engine.end_resume_cold();
    return 0;
  }
  if (!answer || answer->matched_chunks == 0) {
    static_cast<void>(oracle.check_cold(engine, !answer));
    engine.end_resume_cold();
    if (!answer && engine.published().emptied) context.marks.reach(Mark::ring_failed_after_latents);
    if (!answer && mentions(answer.error(), Origin::core, static_cast<std::int32_t>(Errc::layout_mismatch))) {
      context.marks.reach(Mark::length_differs);
    }
    mark_resume(session, answer ? *answer : ResumeOutcome{}, ready_before);
    return 0;
  }
  // What others withdrew meanwhile was claimed when it was looked up.
  const std::uint32_t claimed =
      times_switched == switched_before ? claimed_chunks(session) : chunks_claimed_since(session, withdrawals_before);
  const bool right = oracle.check_resume(engine, answer->matched_chunks, claimed);
  engine.end_resume_warm(answer->matched_chunks, right);
  const EngineLayout& layout = engine.layout();
  result.chunks_hit += answer->matched_chunks;
  result.session_chunks_hit[session.output] = answer->matched_chunks;
  const std::uint64_t frames =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(answer->matched_chunks) * layout.geometry.frames_per_chunk,
                              layout.geometry.ring_frames);
  result.bytes_to_device += frames * layout.frame_bytes_total +
                            static_cast<std::uint64_t>(answer->matched_chunks) * layout.geometry.latent_bytes;
  mark_resume(session, *answer, ready_before);
  return answer->matched_chunks;
}

void Executor::Impl::check_retries(const Session& session, const ResumeOutcome& outcome) {
  if (outcome.retries == 0) return;
  context.verdicts.checked(Invariant::index_agrees);
  if (outcome.retries > kRetriesMax) {
    context.violate(Invariant::index_agrees, {},
                    "a resume read again " + std::to_string(outcome.retries) + " times, at most " +
                        std::to_string(kRetriesMax) + " times are its bound",
                    "retries past their bound");
  }
  // Others may have stored something since.
  if (outcome.matched_chunks > 0 || outcome.retries >= kRetriesMax || side_by_side || session.mistaken) return;
  const std::uint32_t left = claimed_chunks(session, true);
  if (left < session.break_even_k) return;
  context.violate(Invariant::index_agrees, {},
                  "a resume is cold after " + std::to_string(outcome.retries) + " incomplete reads, but " +
                      std::to_string(left) + " chunks are claimed with their latents",
                  "no retry");
}

void Executor::Impl::check_damage_told(const Result<ResumeOutcome>& answer) {
  context.verdicts.checked(Invariant::error_told);
  const auto tells = [](const Error& error) {
    return mentions(error, Origin::core, static_cast<std::int32_t>(Errc::corrupt));
  };
  if (answer ? std::ranges::any_of(answer->absorbed, tells) : tells(answer.error())) return;
  context.violate(Invariant::error_told, {}, "a resume was given values that had been damaged, and told nobody",
                  "damage that nobody told of");
}

void Executor::Impl::mark_resume(const Session& session, const ResumeOutcome& outcome, std::uint32_t ready_before) {
  const auto reach_if = [&](bool met, Mark mark) {
    if (met) context.marks.reach(mark);
  };
  const std::uint32_t matched = outcome.matched_chunks;
  const bool restarted = book.incarnation() > 1 && !session.path.empty();
  for (const Error& error : outcome.absorbed) {
    reach_if(mentions(error, Origin::core, static_cast<std::int32_t>(Errc::layout_mismatch)), Mark::length_differs);
  }
  if (matched == 0) {
    reach_if(outcome.retries > 0, Mark::retry_exhausted);
    reach_if(ready_before > 0 && ready_before < session.break_even_k, Mark::break_even_refused);
    reach_if(session.mistaken && ready_before >= session.break_even_k, Mark::length_differs);
    reach_if(restarted && book_node(session.path[0]).ever_before_restart, Mark::restart_resumed_cold);
    return;
  }
  const Geometry& geometry = session.engine->layout().geometry;
  const std::uint64_t frames = static_cast<std::uint64_t>(matched) * geometry.frames_per_chunk;
  const std::uint64_t ring = geometry.ring_frames;
  const std::uint64_t window = ring - geometry.sink_frames;
  reach_if(matched == session.path.size(), Mark::full_hit);
  reach_if(outcome.retries > 0, Mark::shorter_prefix);
  reach_if(geometry.scale_token_bytes > 0, Mark::scales_restored);
  reach_if(geometry.full_length, Mark::ring_full_length);
  reach_if(!geometry.full_length && frames == ring, Mark::ring_exactly_full);
  reach_if(frames > ring && frames <= ring + geometry.frames_per_chunk, Mark::ring_just_rolled);
  reach_if(frames >= ring + window, Mark::ring_deep_rolled);
  reach_if(geometry.sink_frames > geometry.frames_per_chunk, Mark::sink_wider_than_chunk);
  reach_if(!geometry.full_length && window % geometry.frames_per_chunk != 0, Mark::chunk_not_dividing);
  const ClaimBook::Node& last = book_node(session.path[std::min<std::size_t>(matched, session.path.size()) - 1]);
  if (matched < session.path.size()) {
    const std::uint64_t next = oracle.node(session.path[matched]).identity;
    reach_if(last.child_ingested != 0 && last.child_ingested != next, Mark::fork_resumed);
  }
  reach_if(restarted && last.ingested_in < book.incarnation(), Mark::restart_resumed_warm);
}

// ---- References and eviction.

Executor::Impl::Ending Executor::Impl::hold(const Step& step) {
  Ending ending;
  Session* session = find(step.of);
  if (session == nullptr || holds.contains(step.id)) {
    ending.skipped = true;
    return ending;
  }
  const Result<std::uint32_t> held =
      operate(Operation::hold, ending, [&] { return system->hold(session->id, step.id); });
  if (!held || injector.client_dead()) return ending;
  // References are on the chunks whose frames a resume would put into the ring.
  const Geometry& geometry = session->engine->layout().geometry;
  ColdRing ring;
  ring.configure(geometry);
  for (std::size_t i = 0; i < std::min<std::size_t>(*held, session->path.size()) && ring.has_room(); ++i) {
    ring.append_chunk();
  }
  Hold& taken = holds[step.id];
  for (std::size_t position = 0; position < ring.size(); ++position) {
    const std::size_t chunk = ring[position] / geometry.frames_per_chunk;
    const std::uint64_t identity = oracle.node(session->path[chunk]).identity;
    if (!taken.identities.empty() && taken.identities.back() == identity) continue;
    taken.identities.push_back(identity);
    monitor.hold(identity);
  }
  ending.first = *held;
  if (wants_text()) ending.text = std::to_string(*held) + " chunks";
  return ending;
}

Executor::Impl::Ending Executor::Impl::unhold(const Step& step) {
  Ending ending;
  const auto found = holds.find(step.of);
  if (found == holds.end()) {
    ending.skipped = true;
    return ending;
  }
  for (const std::uint64_t identity : found->second.identities) monitor.unhold(identity);
  holds.erase(found);
  monitor.begin(Operation::hold);
  system->unhold(step.of);
  monitor.end(true);
  return ending;
}

Executor::Impl::Ending Executor::Impl::evict(const Step& step) {
  Ending ending;
  Session* session = find(step.of);
  if (session == nullptr || step.depth >= session->path.size()) {
    ending.skipped = true;
    return ending;
  }
  const Result<EvictOutcome> answer =
      operate(Operation::evict, ending, [&] { return system->evict(session->id, step.depth); });
  ClaimBook::Node& node = book_node(session->path[step.depth]);  // other steps may have made nodes meanwhile
  if (!answer) {
    mark_refused(node, answer.error());
    node.eviction_failed |= mentions(answer.error(), Origin::core, static_cast<std::int32_t>(Errc::remove_failed));
    return ending;
  }
  doing.told.add(answer->absorbed);
  ending.first = answer->evicted ? 1 : 0;
  ending.second = answer->freed_bytes;
  if (answer->evicted) {
    ++result.evictions;
    context.marks.reach(Mark::evicted);
    if (node.eviction_failed) context.marks.reach(Mark::eviction_failed_retried);
    node.eviction_failed = false;
  }
  if (wants_text()) {
    ending.text = oracle.describe(session->path[step.depth]) +
                  (answer->evicted ? ", " + std::to_string(answer->freed_bytes) + " bytes" : ", there was no blob");
  }
  return ending;
}

void Executor::Impl::mark_refused(const ClaimBook::Node& node, const Error& error) {
  if (!mentions(error, Origin::core, static_cast<std::int32_t>(Errc::in_use))) return;
  const bool held = std::any_of(holds.begin(), holds.end(), [&](const auto& hold) {
    return std::find(hold.second.identities.begin(), hold.second.identities.end(), node.identity) !=
           hold.second.identities.end();
  });
  context.marks.reach(held && !node.sink ? Mark::evict_refused_referenced : Mark::evict_refused_pinned);
}

Executor::Impl::Ending Executor::Impl::make_room(const Step& step) {
  Ending ending;
  const std::uint64_t withdrawn_before = book.blob_withdrawals();
  const Result<EvictOutcome> answer =
      operate(Operation::make_room, ending, [&] { return system->make_room(step.amount); });
  const std::uint64_t withdrawn = book.blob_withdrawals() - withdrawn_before;
  result.evictions += withdrawn;
  if (answer) {
    doing.told.add(answer->absorbed);
    ending.first = withdrawn;
    ending.second = answer->freed_bytes;
    if (answer->evicted) context.marks.reach(Mark::evicted);
    if (wants_text()) {
      ending.text = std::to_string(withdrawn) + " blobs, " + std::to_string(answer->freed_bytes) + " bytes";
    }
  }
  return ending;
}

// ---- The rest.

Executor::Impl::Ending Executor::Impl::warm_up(const Step& step) {
  Ending ending;
  WarmUpReached last;
  std::uint64_t asked = 0;
  const auto wrong = [&](std::string_view what) {
    context.violate(
        Invariant::progress, {},
        fmt::format("the warm-up of step {} {}: asked {} times, {} of {} bytes touched, {} of {} registered", step.id,
                    what, asked, last.touched_bytes, last.touch_total_bytes, last.registered_bytes,
                    last.register_total_bytes),
        what);
  };
  const auto stopped = [&] { return step.amount > 0 && asked >= step.amount; };
  const auto go_on = [&](const WarmUpReached& reached) {
    if (stopped()) wrong("asked again after it was told to stop");
    if (goes_back(last, reached)) wrong("went back, or beyond its total");
    last = reached;
    ++asked;
    return !stopped();
  };
  const Result<WarmUpOutcome> answer = operate(Operation::warm_up, ending, [&] { return system->warm_up(go_on); });
  context.verdicts.checked(Invariant::progress, asked);
  if (!answer) {
    if (stopped() && last.registered_bytes > 0) context.marks.reach(Mark::warm_up_cancelled);
    return ending;
  }
  doing.told.add(answer->absorbed);
  if (stopped()) wrong("was told to stop, and succeeded");
  if (goes_back(last, answer->reached)) wrong("ended before where it was");
  last = answer->reached;
  if (last.touched_bytes != last.touch_total_bytes || last.registered_bytes != last.register_total_bytes) {
    wrong("succeeded before its end");
  }
  return ending;
}

Executor::Impl::Ending Executor::Impl::pump() {
  Ending ending;
  begin_clock(Operation::pump);
  monitor.begin(Operation::pump);
  const PumpOutcome outcome = system->pump();
  check_clock();
  monitor.end(true);  // an error of one key does not undo what was decided of others
  for (const Error& error : outcome.errors) note_error(ending, error);
  ending.first = outcome.decided;
  if (wants_text()) {
    ending.text = std::to_string(outcome.decided) + " keys decided" + (ending.text.empty() ? "" : "; " + ending.text);
  }
  return ending;
}

Executor::Impl::Ending Executor::Impl::snapshot() {
  Ending ending;
  static_cast<void>(operate(Operation::snapshot, ending, [&] { return system->snapshot(); }));
  return ending;
}

}  // namespace holdfast::sim
