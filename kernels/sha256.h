// SPDX-License-Identifier: Apache-2.0
// SHA-256 as one source for GPU and host: the compression of one block, and a
// digest over bytes that a loader hands out word by word. It allocates nothing
// and knows no addresses; what the bytes mean is tree.h's.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define GPUWATCH_BOTH __host__ __device__ __forceinline__
#else
#define GPUWATCH_BOTH inline
#endif

namespace gpuwatch::kernels {

struct ShaState {
  std::uint32_t word[8];
};

GPUWATCH_BOTH ShaState sha_start() {
  return {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

GPUWATCH_BOTH std::uint32_t sha_rotate(std::uint32_t value, int by) { return (value >> by) | (value << (32 - by)); }

GPUWATCH_BOTH std::uint32_t sha_swap(std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(value, 0, 0x0123);
#else
  return __builtin_bswap32(value);
#endif
}

// One block; `w` holds its 16 words as numbers and is used up.
GPUWATCH_BOTH void sha_block(ShaState& state, std::uint32_t (&w)[16]) {
  // A table local to the function: on the GPU the rounds are unrolled and the
  // constants become immediates.
  constexpr std::uint32_t kRound[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::uint32_t a = state.word[0], b = state.word[1], c = state.word[2], d = state.word[3];
  std::uint32_t e = state.word[4], f = state.word[5], g = state.word[6], h = state.word[7];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < 64; ++i) {
    if (i >= 16) {
      const std::uint32_t x = w[(i + 1) & 15];
      const std::uint32_t y = w[(i + 14) & 15];
      w[i & 15] += (sha_rotate(x, 7) ^ sha_rotate(x, 18) ^ (x >> 3)) + w[(i + 9) & 15] +
                   (sha_rotate(y, 17) ^ sha_rotate(y, 19) ^ (y >> 10));
    }
    const std::uint32_t first = h + (sha_rotate(e, 6) ^ sha_rotate(e, 11) ^ sha_rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                                kRound[i] + w[i & 15];
    const std::uint32_t second =
        (sha_rotate(a, 2) ^ sha_rotate(a, 13) ^ sha_rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  state.word[0] += a;
  state.word[1] += b;
  state.word[2] += c;
  state.word[3] += d;
  state.word[4] += e;
  state.word[5] += f;
  state.word[6] += g;
  state.word[7] += h;
}

// Goes on from `state`, which has taken `before` bytes (whole blocks), with
// `length` bytes of `load`, then with the `tail_bytes` of `tail`, and closes the
// digest. Load has: void block(std::uint64_t offset, std::uint32_t (&w)[16]) for
// 64 bytes that are all there, std::uint8_t byte(std::uint64_t offset).
template <typename Load>
GPUWATCH_BOTH void sha_finish(ShaState& state, std::uint64_t before, const Load& load, std::uint64_t length,
                              const std::uint8_t* tail, std::uint32_t tail_bytes) {
  std::uint32_t w[16];
  std::uint64_t done = 0;
  const std::uint64_t message = length + tail_bytes;
  const std::uint64_t blocks = (message + 1 + 8 + 63) / 64;
  for (std::uint64_t block = 0; block < blocks; ++block, done += 64) {
    if (done + 64 <= length) {
      load.block(done, w);
    } else {
      for (int i = 0; i < 16; ++i) {
        std::uint32_t word = 0;
        for (int j = 0; j < 4; ++j) {
          const std::uint64_t at = done + static_cast<std::uint64_t>(4 * i + j);
          std::uint32_t byte = 0;
          if (at < length)
            byte = load.byte(at);
          else if (at < message)
            byte = tail[at - length];
          else if (at == message)
            byte = 0x80;
          word = word << 8 | byte;
        }
        w[i] = word;
      }
      if (block + 1 == blocks) {
        const std::uint64_t bits = (before + message) * 8;
        w[14] = static_cast<std::uint32_t>(bits >> 32);
        w[15] = static_cast<std::uint32_t>(bits);
      }
    }
    sha_block(state, w);
  }
}

}  // namespace gpuwatch::kernels
