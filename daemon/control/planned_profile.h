// daemon/control/planned_profile.h - a profile that is wanted and has its places, between the request and its id.
#ifndef DAEMON_CONTROL_PLANNED_PROFILE_H_
#define DAEMON_CONTROL_PLANNED_PROFILE_H_

#include "core/model/profile.h"
#include "daemon/limits/held_ranks.h"
#include "daemon/limits/limits.h"

namespace perfd::daemon {

// What a profile takes of the limits until it is over.
struct ProfilePlaces {
  Share own;  // of its user; empty: the site asked for it
  Share all;  // empty: only agents in user mode measure
  Payment
      seconds;  // of altered loops, for its whole duration; empty: they are not bounded, or were paid for before a restart
  HeldRanks ranks;
};

struct PlannedProfile {
  ProfileStatus status;  // without an id
  ProfilePlaces places;
};

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_PLANNED_PROFILE_H_
