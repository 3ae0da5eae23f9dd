// SPDX-License-Identifier: Apache-2.0
#include "identify/sha256_ni.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace gpuwatch::identify {

#if defined(__x86_64__)

namespace {

#define GW_SHA __attribute__((target("sha,sse4.1,ssse3"), always_inline)) inline

alignas(16) constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// The instructions want the words as ABEF and CDGH.
struct State {
  __m128i abef;
  __m128i cdgh;
};

GW_SHA State load_state(const std::uint32_t words[8]) {
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)), 0xB1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words + 4)), 0x1B);
  return {_mm_alignr_epi8(low, high, 8), _mm_blend_epi16(high, low, 0xF0)};
}

GW_SHA void store_state(std::uint32_t words[8], const State& state) {
  __m128i low = _mm_shuffle_epi32(state.abef, 0x1B);
  __m128i high = _mm_shuffle_epi32(state.cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words), _mm_blend_epi16(low, high, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words + 4), _mm_alignr_epi8(high, low, 8));
}

GW_SHA __m128i load_words(const std::uint8_t* data) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)), swap);
}

// Four rounds with message words `m`.
GW_SHA void rounds(State& s, __m128i m, int group) {
  __m128i k = _mm_add_epi32(m, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound + 4 * group)));
  s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, k);
  s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(k, 0x0E));
}

// The next four message words from the last sixteen, oldest in `m0`.
GW_SHA void extend(__m128i& m0, __m128i m1, __m128i m2, __m128i m3) {
  m0 = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(m0, m1), _mm_alignr_epi8(m3, m2, 4)), m3);
}

}  // namespace

bool sha_ni_usable() {
  static const bool usable = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & (1u << 19)) == 0 || (c & (1u << 9)) == 0) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 29)) != 0;
  }();
  return usable;
}

__attribute__((target("sha,sse4.1,ssse3"))) void sha_ni_one(std::uint32_t state[8], const std::uint8_t* data,
                                                            std::size_t blocks) {
  State s = load_state(state);
  for (; blocks > 0; --blocks, data += 64) {
    const State before = s;
    __m128i m[4] = {load_words(data), load_words(data + 16), load_words(data + 32), load_words(data + 48)};
#pragma GCC unroll 16
    for (int group = 0; group < 16; ++group) {
      rounds(s, m[group & 3], group);
      if (group < 12) extend(m[group & 3], m[(group + 1) & 3], m[(group + 2) & 3], m[(group + 3) & 3]);
    }
    s.abef = _mm_add_epi32(s.abef, before.abef);
    s.cdgh = _mm_add_epi32(s.cdgh, before.cdgh);
  }
  store_state(state, s);
}

__attribute__((target("sha,sse4.1,ssse3"))) void sha_ni_two(std::uint32_t state_a[8], const std::uint8_t* data_a,
                                                            std::uint32_t state_b[8], const std::uint8_t* data_b,
                                                            std::size_t blocks) {
  State a = load_state(state_a);
  State b = load_state(state_b);
  for (; blocks > 0; --blocks, data_a += 64, data_b += 64) {
    const State before_a = a;
    const State before_b = b;
    __m128i m[4] = {load_words(data_a), load_words(data_a + 16), load_words(data_a + 32), load_words(data_a + 48)};
    __m128i n[4] = {load_words(data_b), load_words(data_b + 16), load_words(data_b + 32), load_words(data_b + 48)};
#pragma GCC unroll 16
    for (int group = 0; group < 16; ++group) {
      rounds(a, m[group & 3], group);
      rounds(b, n[group & 3], group);
      if (group < 12) {
        extend(m[group & 3], m[(group + 1) & 3], m[(group + 2) & 3], m[(group + 3) & 3]);
        extend(n[group & 3], n[(group + 1) & 3], n[(group + 2) & 3], n[(group + 3) & 3]);
      }
    }
    a.abef = _mm_add_epi32(a.abef, before_a.abef);
    a.cdgh = _mm_add_epi32(a.cdgh, before_a.cdgh);
    b.abef = _mm_add_epi32(b.abef, before_b.abef);
    b.cdgh = _mm_add_epi32(b.cdgh, before_b.cdgh);
  }
  store_state(state_a, a);
  store_state(state_b, b);
}

#else

bool sha_ni_usable() {
  return false;
}
void sha_ni_one(std::uint32_t*, const std::uint8_t*, std::size_t) {}
void sha_ni_two(std::uint32_t*, const std::uint8_t*, std::uint32_t*, const std::uint8_t*, std::size_t) {}

#endif

}  // namespace gpuwatch::identify
