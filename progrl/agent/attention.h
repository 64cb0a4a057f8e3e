// Attention over a few queries at once, in float32, of 16 numbers side by side. Keys lie in blocks of
// 16 tokens, [tokens / 16][HEAD_DIM][16], so that 16 scores are summed up at once; values are
// [tokens][HEAD_DIM]. HEAD_DIM is a multiple of 16.

#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float v16 __attribute__((vector_size(64), aligned(4)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i16 __attribute__((vector_size(64)));

enum { PARTS = HEAD_DIM / 16, HALF = HEAD_DIM / 2 };

static inline v16 load(const float *from) {
  v16 value;
  memcpy(&value, from, sizeof value);
  return value;
}

static inline void store(float *to, v16 value) { memcpy(to, &value, sizeof value); }

static inline float total(v16 a) {
  v8 b = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
  v4 c = __builtin_shufflevector(b, b, 0, 1, 2, 3) + __builtin_shufflevector(b, b, 4, 5, 6, 7);
  return (c[0] + c[2]) + (c[1] + c[3]);
}

// e^x for x <= 0, to a relative error of about 1e-7; 0 below -87.
static inline v16 exponential(v16 x) {
  const v16 log2e = (v16){} + 1.44269504f, low = (v16){} - 87.0f;
  i16 tiny = x < low;
  x = tiny ? low : x;
  i16 n = __builtin_convertvector(x * log2e - 0.5f, i16);  // nearest, since x is not positive
  v16 whole = __builtin_convertvector(n, v16);
  v16 r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  v16 p = 1.9875691500e-4f * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  v16 scale = (v16)((n + 127) << 23);
  return tiny ? (v16){} : p * scale;
}

// 1 / the root mean square of `width` numbers.
static inline float scale_of(const float *x, int width, float eps) {
  v16 squares = {};
  for (int j = 0; j < width; j += 16) squares += load(x + j) * load(x + j);
  return 1.0f / sqrtf(total(squares) / width + eps);
}

// The scores of Q queries with 16 B keys; `values` of the same tokens, where there are any, are sent
// for meanwhile.
template <int Q, int B>
static inline void score(const float *const *queries, const float *keys, const float *values,
                         float *scores, int64_t room) {
  v16 sums[Q][B] = {};
  for (int j = 0; j < HEAD_DIM; j++) {
    for (int b = 0; b < B; b++) {
      const int64_t place = (b * HEAD_DIM + j) * 16;
      v16 key = load(keys + place);
      if (values) __builtin_prefetch(values + place, 0, 2);
      for (int q = 0; q < Q; q++) sums[q][b] += queries[q][j] * key;
    }
  }
  for (int q = 0; q < Q; q++)
    for (int b = 0; b < B; b++) store(scores + q * room + 16 * b, sums[q][b]);
}

// softmax over the first `length` scores, in place; 0 from there to `end`. Not yet divided by their
// sum: returns 1 / it, and where it is asked for the logarithm of the sum of all e^score.
static inline float weigh(float *scores, int64_t length, int64_t end, float *log_total = 0) {
  for (int64_t t = length; t < end; t++) scores[t] = -INFINITY;
  v16 most = load(scores), sum = {};
  for (int64_t t = 16; t < end; t += 16) {
    v16 x = load(scores + t);
    most = x > most ? x : most;
  }
  float top = most[0];
  for (int j = 1; j < 16; j++) top = most[j] > top ? most[j] : top;
  for (int64_t t = 0; t < end; t += 16) {
    v16 weight = exponential(load(scores + t) - top);
    store(scores + t, weight);
    sum += weight;
  }
  const float all = total(sum);
  if (log_total) *log_total = top + logf(all);
  return 1.0f / all;
}

// out [Q][HEAD_DIM] = weights [Q][end] * values, times `by`; `next`, where they are given, are the
// keys that are needed after them.
template <int Q>
static inline void mix(const float *weights, int64_t room, int64_t end, const float *values,
                       const float *next, const float *by, float *const *out) {
  constexpr int W = PARTS % 2 ? 1 : 2;
  for (int part = 0; part < PARTS; part += W) {
    v16 mixed[Q][W] = {};
    for (int64_t t = 0; t < end; t += 8) {
      v16 few[Q][W] = {};
      for (int i = 0; i < 8; i++) {
        const int64_t place = (t + i) * HEAD_DIM + 16 * part;
        for (int w = 0; w < W; w++) {
          v16 value = load(values + place + 16 * w);
          if (next) __builtin_prefetch(next + place + 16 * w, 0, 2);
          for (int q = 0; q < Q; q++) few[q][w] += weights[q * room + t + i] * value;
        }
      }
      for (int q = 0; q < Q; q++)
        for (int w = 0; w < W; w++) mixed[q][w] += few[q][w];
    }
    for (int q = 0; q < Q; q++)
      for (int w = 0; w < W; w++) store(out[q] + 16 * (part + w), mixed[q][w] * by[q]);
  }
}
