/* deploy/slurm/user_choice.h - what a user asks of perfd on the line of sbatch, salloc or srun.
 *
 * Shape    values only: knows nothing of Slurm, opens nothing, prints nothing.
 * Errors   a text that cannot be a preset's name is not obeyed, and said; nothing here can fail.
 */
#ifndef DEPLOY_SLURM_USER_CHOICE_H_
#define DEPLOY_SLURM_USER_CHOICE_H_

#include <stdbool.h>

enum { kPresetLength = 64 };  // longest name of a preset

struct user_choice {
  bool asked;       // --perfd
  bool refused;     // --no-perfd or --no-profile
  bool bad_preset;  // --perfd=TEXT that cannot be a name
  char preset[kPresetLength + 1];
};

enum user_preference { kNoPreference, kPreferProfile, kPreferNone };

// `preset`: what stood behind the "=", or null. The last one counts, as with Slurm's own options.
void choice_ask(struct user_choice* choice, const char* preset);
void choice_refuse(struct user_choice* choice);

// Refusing wins over asking. A bad name is no wish: the site's policy decides alone.
enum user_preference choice_preference(const struct user_choice* choice);

// What the submission should say about this choice, without the name of the program; null: nothing.
const char* choice_remark(const struct user_choice* choice);

#endif  // DEPLOY_SLURM_USER_CHOICE_H_
