#include "agent/pipeline/session_table.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

constexpr int64_t kRetainUpdateNs = 3600 * kNsPerSecond;
constexpr size_t kMaxLastWords = 256;
constexpr size_t kMaxNotices = 256;

}  // namespace

SessionTable::SessionTable(SessionTools tools, SessionOutput* output)
    : tools_(std::move(tools)), output_(output) {}

SessionTable::~SessionTable() {
  EndAll(absl::InfiniteDuration());
}

bool SessionTable::AllOver() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.over; });
}

// What does not answer - a system call that waits for a rank - is not waited for, or one rank could
// keep the agent from ending, and the next one from its work.
bool SessionTable::EndAll(absl::Duration patience) {
  bool all = false;
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    for (auto& [id, entry] : entries_) entry.session->Suspend();
    all = mutex_.AwaitWithTimeout(absl::Condition(this, &SessionTable::AllOver), patience);
    for (const auto& [id, entry] : entries_) {
      if (!entry.over) LogError("{}: does not answer; it is not waited for", id);
    }
  }
  Tidy();
  return all;
}

void SessionTable::Start(SessionRequest request) {
  const std::string id = request.profile_id;
  Tidy();
  // Told without the lock: the output remembers news here.
  if (const auto answer = AnswerInstead(id); answer.has_value()) {
    output_->OnUpdate(*answer);
    return;
  }
  MutexLock lock(&mutex_);
  if (ending_ || entries_.contains(id)) return;
  SessionTools tools = tools_;
  tools.claim_pids = [this, id](const std::vector<int32_t>& pids) { return Claim(id, pids); };
  tools.release_pid = [this, id](int32_t pid) { Release(id, pid); };
  Entry& entry = entries_[id];
  entry.session = std::make_unique<Session>(std::move(request), std::move(tools));
  entry.thread = std::thread([this, id, session = entry.session.get()] {
    LogInfo("{}: begins", id);
    session->Run();
    LogInfo("{}: is over", id);
    OnOver(id);
  });
  pthread_setname_np(entry.thread.native_handle(), "perfd-session");
}

std::optional<SessionUpdate> SessionTable::AnswerInstead(const std::string& profile_id) {
  MutexLock lock(&mutex_);
  if (ending_ || entries_.contains(profile_id)) return std::nullopt;
  // It ended while the daemon was away, and the daemon has not heard: measuring again would count
  // that time twice.
  auto word = last_words_.find(profile_id);
  if (word != last_words_.end() && (word->second.update.phase == NodeProgress::Phase::kFinished ||
                                    word->second.update.phase == NodeProgress::Phase::kFailed)) {
    SessionUpdate update = word->second.update;
    update.notices.clear();  // told after connecting
    return update;
  }
  if (entries_.size() < kMaxSessions) return std::nullopt;
  SessionUpdate update;
  update.profile_id = profile_id;
  update.phase = NodeProgress::Phase::kFailed;
  update.notices.push_back({.severity = Notice::Severity::kError,
                            .code = absl::StatusCode::kResourceExhausted,
                            .node = tools_.node,
                            .text = absl::StrCat("this node already runs ", kMaxSessions,
                                                 " profiles; wait for one to end")});
  return update;
}

std::vector<int32_t> SessionTable::Claim(const std::string& profile_id,
                                         const std::vector<int32_t>& pids) {
  MutexLock lock(&mutex_);
  std::vector<int32_t> taken;
  for (int32_t pid : pids) {
    auto [it, is_new] = claims_.try_emplace(pid, profile_id);
    if (!is_new && it->second != profile_id) taken.push_back(pid);
  }
  return taken;
}

void SessionTable::Release(const std::string& profile_id, int32_t pid) {
  MutexLock lock(&mutex_);
  const auto claim = claims_.find(pid);
  if (claim != claims_.end() && claim->second == profile_id) claims_.erase(claim);
}

void SessionTable::OnOver(const std::string& profile_id) {
  MutexLock lock(&mutex_);
  absl::erase_if(claims_, [&](const auto& claim) { return claim.second == profile_id; });
  auto it = entries_.find(profile_id);
  if (it != entries_.end()) it->second.over = true;
}

void SessionTable::Stop(const std::string& profile_id) {
  MutexLock lock(&mutex_);
  auto it = entries_.find(profile_id);
  if (it != entries_.end()) it->second.session->Stop();
}

void SessionTable::Measure(MeasureOrder order) {
  MutexLock lock(&mutex_);
  auto it = entries_.find(order.profile_id);
  if (it != entries_.end()) it->second.session->Measure(std::move(order));
}

void SessionTable::Remember(const SessionUpdate& update) {
  MutexLock lock(&mutex_);
  LastWord& word = last_words_[update.profile_id];
  word.update = update;
  for (const Notice& notice : update.notices) {
    if (word.notices.size() < kMaxNotices) word.notices.push_back(notice);
  }
  word.at_ns = tools_.clock->MonotonicNs();
  while (last_words_.size() > kMaxLastWords) last_words_.erase(last_words_.begin());
}

std::vector<SessionUpdate> SessionTable::LatestUpdate() {
  MutexLock lock(&mutex_);
  std::vector<SessionUpdate> all;
  for (const auto& [id, word] : last_words_) {
    all.push_back(word.update);
    all.back().notices = word.notices;
  }
  return all;
}

void SessionTable::Tidy() {
  std::vector<Entry> over;
  {
    MutexLock lock(&mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.over) {
        over.push_back(std::move(it->second));
        it = entries_.erase(it);
      } else {
        ++it;
      }
    }
    const int64_t now = tools_.clock->MonotonicNs();
    std::erase_if(last_words_, [&](const auto& word) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return now - word.second.at_ns > kRetainUpdateNs && !entries_.contains(word.first);
    });
  }
  for (Entry& entry : over) entry.thread.join();
}

int SessionTable::running() const {
  MutexLock lock(&mutex_);
  int count = 0;
  for (const auto& [id, entry] : entries_) count += entry.over ? 0 : 1;
  return count;
}

}  // namespace perfd::agent
