#include "daemon/control/node_session.h"

#include <algorithm>

namespace perfd::daemon {

using Phase = NodeProgress::Phase;

void NodeSession::Connect(const AgentFacts& facts) {
  connected = true;
  keeps_leases = facts.abilities.pause_leases;
  clock = facts.clock;
  if (stream_id != facts.stream_id) {
    stream_id = facts.stream_id;
    stored_sequence = 0;
    // An end that spoke of a spool which is gone cannot be waited for any more.
    if (ended) last_sequence = 0;
  }
  stored_sequence = std::max(stored_sequence, facts.stored_sequence);
  // Windows of before the daemon's restart are known, what the stream lacked then is not: it begins anew.
  if (!first_missing.has_value() && progress.windows > 0)
    BeginGaps(facts.stream_id, facts.stream_missing);
}

void NodeSession::BeginGaps(const std::string& stream, uint64_t gaps) {
  missing_before += missing;
  missing = 0;
  gap_stream = stream;
  first_missing = gaps;
}

void NodeSession::Disconnect(int64_t now_ns) {
  connected = false;
  away_since_ns = now_ns;
  if (!ended && !Failed()) progress.phase = Phase::kDisconnected;
}

void NodeSession::Apply(const SessionUpdate& update) {
  // A node that was given up and speaks again is taken back; what it missed stays in the notices.
  lost = false;
  progress.phase = update.phase;
  progress.ranks = std::max(progress.ranks, update.ranks);
  if (update.threads > 0) progress.threads = update.threads;
  if (update.phase != Phase::kFinished && update.phase != Phase::kFailed) return;
  ended = true;
  ended_badly = update.phase == Phase::kFailed;
  last_sequence = update.last_sequence;
}

void NodeSession::Count(const StoredWindow& window) {
  if (!first_missing.has_value() || gap_stream != window.stream_id)
    BeginGaps(window.stream_id, window.stream_missing);
  ++progress.windows;
  progress.covered_ns += std::max<int64_t>(0, window.duration_ns);
  missing = window.stream_missing > *first_missing ? window.stream_missing - *first_missing : 0;
  if (stream_id.empty()) stream_id = window.stream_id;
  if (stream_id == window.stream_id) stored_sequence = std::max(stored_sequence, window.sequence);
}

void NodeSession::Pass(const RefusedWindow& window) {
  if (stream_id.empty()) stream_id = window.stream_id;
  if (stream_id == window.stream_id) stored_sequence = std::max(stored_sequence, window.sequence);
}

}  // namespace perfd::daemon
