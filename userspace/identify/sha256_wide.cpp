// SPDX-License-Identifier: Apache-2.0
#include "identify/sha256_wide.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpuwatch::identify {

#if defined(__x86_64__)

namespace {

#define GW_WIDE __attribute__((target("avx512f,avx512bw"), always_inline)) inline

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Truth tables of vpternlog.
constexpr int kXor3 = 0x96;
constexpr int kChoose = 0xCA;
constexpr int kMajority = 0xE8;

GW_WIDE __m512i add(__m512i a, __m512i b) {
  return _mm512_add_epi32(a, b);
}

GW_WIDE __m512i big_sigma0(__m512i x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, 2), _mm512_ror_epi32(x, 13), _mm512_ror_epi32(x, 22), kXor3);
}
GW_WIDE __m512i big_sigma1(__m512i x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, 6), _mm512_ror_epi32(x, 11), _mm512_ror_epi32(x, 25), kXor3);
}
GW_WIDE __m512i small_sigma0(__m512i x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, 7), _mm512_ror_epi32(x, 18), _mm512_srli_epi32(x, 3), kXor3);
}
GW_WIDE __m512i small_sigma1(__m512i x) {
  return _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, 17), _mm512_ror_epi32(x, 19), _mm512_srli_epi32(x, 10), kXor3);
}

// One block of every lane, turned so that w[i] holds word i of all lanes.
GW_WIDE void load_transposed(__m512i w[16], const std::uint8_t* const data[kWideLanes], std::size_t offset) {
  const __m512i swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL));
  __m512i r[16];
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(data[i] + offset), swap);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4g + c] now holds, in its 128-bit part p, word 4p + c of lanes 4g..4g+3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(r[c], r[c + 4], 0x88);
    const __m512i high01 = _mm512_shuffle_i32x4(r[c], r[c + 4], 0xDD);
    const __m512i low23 = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0x88);
    const __m512i high23 = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0xDD);
    w[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    w[c + 8] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
    w[c + 4] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    w[c + 12] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
  }
}

}  // namespace

bool sha_wide_usable() {
  static const bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return usable;
}

__attribute__((target("avx512f,avx512bw"))) void sha_wide(WideState& state, const std::uint8_t* const data[kWideLanes],
                                                          std::size_t blocks) {
  __m512i s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) s[i] = _mm512_load_si512(state.words[i]);
  for (std::size_t block = 0; block < blocks; ++block) {
    __m512i w[16];
    load_transposed(w, data, 64 * block);
    __m512i v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = s[i];
#pragma GCC unroll 64
    for (int i = 0; i < 64; ++i) {
      // The names a..h rotate instead of the values.
      __m512i& d = v[(3 - i) & 7];
      __m512i& h = v[(7 - i) & 7];
      const __m512i a = v[(0 - i) & 7];
      const __m512i e = v[(4 - i) & 7];
      const __m512i k = _mm512_set1_epi32(static_cast<int>(kRound[i]));
      const __m512i t1 = add(add(h, add(k, w[i & 15])),
                             add(big_sigma1(e), _mm512_ternarylogic_epi32(e, v[(5 - i) & 7], v[(6 - i) & 7], kChoose)));
      d = add(d, t1);
      h = add(t1, add(big_sigma0(a), _mm512_ternarylogic_epi32(a, v[(1 - i) & 7], v[(2 - i) & 7], kMajority)));
      if (i < 48)
        w[i & 15] =
            add(add(w[i & 15], small_sigma0(w[(i + 1) & 15])), add(w[(i + 9) & 15], small_sigma1(w[(i + 14) & 15])));
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) s[i] = add(s[i], v[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm512_store_si512(state.words[i], s[i]);
}

#else

bool sha_wide_usable() {
  return false;
}
void sha_wide(WideState&, const std::uint8_t* const[kWideLanes], std::size_t) {}

#endif

}  // namespace gpuwatch::identify
