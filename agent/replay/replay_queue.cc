#include "agent/replay/replay_queue.h"

#include <pthread.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/link/link_codec.h"

namespace perfd::agent {
namespace {

bool IsOver(const SessionUpdate& update) {
  return update.phase == NodeProgress::Phase::kFinished ||
         update.phase == NodeProgress::Phase::kFailed;
}

}  // namespace

ReplayQueue::ReplayQueue(ReplayTools tools) : tools_(std::move(tools)), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "perfd-replay");
}

ReplayQueue::~ReplayQueue() {
  waiting_.Close();
  {
    MutexLock lock(&mutex_);
    if (session_ != nullptr) session_->Suspend();
  }
  thread_.join();
}

void ReplayQueue::Run() {
  while (true) {
    std::optional<SessionRequest> request = waiting_.Pop(absl::Seconds(1));
    if (waiting_.closed()) return;
    if (request.has_value()) RunOne(*std::move(request));
  }
}

void ReplayQueue::RunOne(SessionRequest request) {
  ReplaySession session(std::move(request), tools_);
  {
    MutexLock lock(&mutex_);
    session_ = &session;
    if (waiting_.closed()) session.Suspend();
    if (cancelled_.contains(session.profile_id())) session.Stop();
  }
  session.Run();
  MutexLock lock(&mutex_);
  cancelled_.erase(session.profile_id());
  session_ = nullptr;
}

void ReplayQueue::Start(SessionRequest request) {
  // At once, also of one that has to wait: perfd does not wait long for ranks.
  SessionUpdate word = FirstUpdate(tools_, request);
  const std::string id = request.profile_id;
  bool known = false;
  {
    MutexLock lock(&mutex_);
    const auto [it, is_new] = last_words_.try_emplace(id, word);
    known = !is_new;
    if (known) word = it->second;
  }
  if (known && !IsOver(word)) return;
  tools_.output->OnUpdate(word);
  // Told before it can run: its own news come after this.
  if (!known && !IsOver(word) && !waiting_.TryPush(std::move(request)))
    tools_.output->OnUpdate(FailedUpdate(
        id, tools_.node,
        absl::ResourceExhaustedError(absl::StrCat(
            kMostWaiting, " profiles wait for this recording already; wait for one to end"))));
}

bool ReplayQueue::Knows(const std::string& profile_id) const {
  MutexLock lock(&mutex_);
  return last_words_.contains(profile_id);
}

void ReplayQueue::Stop(const std::string& profile_id) {
  MutexLock lock(&mutex_);
  if (session_ != nullptr && session_->profile_id() == profile_id)
    session_->Stop();
  else if (last_words_.contains(profile_id) && cancelled_.size() < 2 * kMostWaiting)
    cancelled_.insert(profile_id);
}

void ReplayQueue::Remember(const SessionUpdate& update) {
  MutexLock lock(&mutex_);
  SessionUpdate& word = last_words_[update.profile_id];
  const bool again = IsOver(word);  // the last word, said once more
  std::vector<Notice> notices = again ? std::vector<Notice>() : std::move(word.notices);
  word = update;
  word.notices.insert(word.notices.begin(), notices.begin(), notices.end());
  while (last_words_.size() > kMostLastWords) last_words_.erase(last_words_.begin());
}

std::vector<SessionUpdate> ReplayQueue::LatestUpdate() const {
  MutexLock lock(&mutex_);
  std::vector<SessionUpdate> all;
  for (const auto& [id, update] : last_words_) all.push_back(update);
  return all;
}

int ReplayQueue::running() const {
  MutexLock lock(&mutex_);
  return session_ == nullptr ? 0 : 1;
}

}  // namespace perfd::agent
