// core/json/memory/memory_words.h - the names of levels and results, for people and as keys.
#ifndef CORE_JSON_MEMORY_MEMORY_WORDS_H_
#define CORE_JSON_MEMORY_MEMORY_WORDS_H_

#include "core/model/memory/load_times.h"
#include "core/model/memory/memory_access.h"

namespace perfd {

struct Words {
  const char* text;
  const char* key;
};

Words LevelWords(MemoryLevel level);
Words TlbWords(TlbResult result);
Words BorderWords(MemoryBorder border);
Words OperationWords(MemoryOperation operation);
Words SnoopWords(SnoopResult result);
Words LockWords(LockState state);

}  // namespace perfd

#endif  // CORE_JSON_MEMORY_MEMORY_WORDS_H_
