// client/render/memory/memory_words.h - the names of levels and results, for people and as keys.
#ifndef CLIENT_RENDER_MEMORY_MEMORY_WORDS_H_
#define CLIENT_RENDER_MEMORY_MEMORY_WORDS_H_

#include "core/analysis/memory/memory_figures.h"
#include "core/model/memory/memory_access.h"

namespace perfd::client {

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

}  // namespace perfd::client

#endif  // CLIENT_RENDER_MEMORY_MEMORY_WORDS_H_
