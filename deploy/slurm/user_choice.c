#include "deploy/slurm/user_choice.h"

#include <string.h>

// The name that stands for the policy's own preset (docs/scheduler_hook.md).
static const char kDefault[] = "default";

// Locale does not matter here: names of presets are ASCII in the policy file as well.
static bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

static bool is_name(const char* text, size_t length) {
  if (length == 0 || length > kPresetLength) return false;
  for (size_t i = 0; i < length; ++i)
    if (!is_name_character(text[i])) return false;
  return true;
}

void choice_ask(struct user_choice* choice, const char* preset) {
  choice->asked = true;
  // Slurm writes a missing argument into the environment of a job as "(null)", and steps read that.
  if (preset == NULL || *preset == '\0' || strcmp(preset, "(null)") == 0) preset = kDefault;
  const size_t length = strnlen(preset, kPresetLength + 1);
  choice->bad_preset = !is_name(preset, length);
  memset(choice->preset, 0, sizeof choice->preset);
  if (!choice->bad_preset) memcpy(choice->preset, preset, length);
}

void choice_refuse(struct user_choice* choice) {
  choice->refused = true;
}

enum user_preference choice_preference(const struct user_choice* choice) {
  if (choice->refused) return kPreferNone;
  return choice->asked && !choice->bad_preset ? kPreferProfile : kNoPreference;
}

const char* choice_remark(const struct user_choice* choice) {
  if (choice->asked && choice->refused)
    return "--perfd and --no-perfd are both given: this job is not profiled";
  if (choice->asked && choice->bad_preset)
    return "--perfd=PRESET takes a name of letters, digits and any of '_-.', of at most 64 "
           "characters: ignored";
  return NULL;
}
