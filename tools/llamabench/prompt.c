#include "prompt.h"

__extension__ typedef unsigned __int128 uint128;

// next is a step of PCG with 128 bits of state and the DXSM output function, whose constants are O'Neill's.
static uint64_t next(uint128 *state) {
	const uint128 multiplier = (uint128)0x2360ed051fc65da4 << 64 | 0x4385df649fccf645;
	const uint128 increment = (uint128)0x5851f42d4c957f2d << 64 | 0x14057b7ef767814f;
	const uint64_t cheap = 0xda942042e4dd58b5;
	*state = *state * multiplier + increment;
	uint64_t high = (uint64_t)(*state >> 64), low = (uint64_t)*state;
	high ^= high >> 32;
	high *= cheap;
	high ^= high >> 48;
	return high * (low | 1);
}

// below draws a number under n: by bits for a power of two, else by Lemire's multiplication, as Go does on 64-bit machines.
static uint64_t below(uint128 *state, uint64_t n) {
	if ((n & (n - 1)) == 0)
		return next(state) & (n - 1);
	for (;;) {
		uint128 product = (uint128)next(state) * n;
		if ((uint64_t)product >= n || (uint64_t)product >= -n % n)
			return (uint64_t)(product >> 64);
	}
}

void random_tokens(int32_t *tokens, int n, uint32_t vocab) {
	uint128 state = (uint128)1 << 64;
	for (int i = 0; i < n; i++)
		tokens[i] = (int32_t)below(&state, vocab);
}
