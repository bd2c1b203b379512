#include "core/model/profile.h"

namespace perfd {

const char* ProfileStateName(ProfileState state) {
  switch (state) {
    case ProfileState::kPending:
      return "PENDING";
    case ProfileState::kDiscovering:
      return "DISCOVERING";
    case ProfileState::kSampling:
      return "SAMPLING";
    case ProfileState::kInjecting:
      return "INJECTING";
    case ProfileState::kAnalyzing:
      return "ANALYZING";
    case ProfileState::kDone:
      return "DONE";
    case ProfileState::kPartial:
      return "PARTIAL";
    case ProfileState::kFailed:
      return "FAILED";
    case ProfileState::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

const char* EndReasonKey(EndReason reason) {
  switch (reason) {
    case EndReason::kNone:
      return "";
    case EndReason::kTime:
      return "time";
    case EndReason::kKnown:
      return "known";
    case EndReason::kNothingLearnt:
      return "nothing_learnt";
    case EndReason::kRanksEnded:
      return "ranks_ended";
    case EndReason::kJobEnded:
      return "job_ended";
    case EndReason::kCancelled:
      return "cancelled";
    case EndReason::kNodesLost:
      return "nodes_lost";
  }
  return "";
}

bool IsFinal(ProfileState state) {
  return state >= ProfileState::kDone;
}

bool CanGo(ProfileState from, ProfileState to) {
  if (IsFinal(from)) return false;
  if (to == ProfileState::kDone) return from == ProfileState::kAnalyzing;
  if (IsFinal(to)) return true;
  return to > from;
}

const char* NodePhaseName(NodeProgress::Phase phase) {
  switch (phase) {
    case NodeProgress::Phase::kAsked:
      return "asked";
    case NodeProgress::Phase::kDiscovering:
      return "discovering";
    case NodeProgress::Phase::kSampling:
      return "sampling";
    case NodeProgress::Phase::kAnalyzing:
      return "analyzing";
    case NodeProgress::Phase::kFinished:
      return "finished";
    case NodeProgress::Phase::kFailed:
      return "failed";
    case NodeProgress::Phase::kDisconnected:
      return "disconnected";
  }
  return "unknown";
}

}  // namespace perfd
