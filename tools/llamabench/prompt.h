// The tokens of `host bench`'s prompt.
#pragma once

#include <stdint.h>

// random_tokens fills in n token ids below vocab: those that Go's math/rand/v2 draws by IntN(vocab) from NewPCG(1, 0).
void random_tokens(int32_t *tokens, int n, uint32_t vocab);
